"""Declare the operations of exports, one module per record type or verb."""
