"""Bookings: find slots, book, move, set the status, list and read."""
