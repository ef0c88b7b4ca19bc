"""A client's leads, bookings and orders, and the erasure of a client."""
