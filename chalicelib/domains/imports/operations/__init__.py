"""Declare the operations of imports, one module per record type or verb."""
