"""Declare the operations of payments, one module per record type or verb."""
