"""Declare the operations of clients, one module per record type or verb."""
