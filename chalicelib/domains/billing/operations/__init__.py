"""Declare the operations of billing, one module per record type or verb."""
