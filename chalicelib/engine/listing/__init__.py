"""Listing, counting, search and look-ups of records: index entries and queries."""
