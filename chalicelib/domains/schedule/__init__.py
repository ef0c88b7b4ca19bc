"""When the staff works, and which bookings a change of that touches."""
