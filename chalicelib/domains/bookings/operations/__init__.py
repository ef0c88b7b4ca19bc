"""Declare the operations of bookings, one module per record type or verb."""
