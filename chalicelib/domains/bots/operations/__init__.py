"""Declare the operations of bots, one module per record type or verb."""
