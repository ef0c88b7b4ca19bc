"""Declare the operations of chats, one module per record type or verb."""
