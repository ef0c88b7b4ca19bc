"""Listing, counting, search and look-ups of records."""
