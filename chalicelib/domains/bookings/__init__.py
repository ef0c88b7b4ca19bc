"""Bookings: find slots, book, move, set the status, list and read."""

from chalicelib.domains.bookings import changes, free_slots, public, records

__all__ = ["changes", "free_slots", "public", "records"]
