"""Declare the operations of knowledge, one module per record type or verb."""
