"""Rows, listings and queries of leads and forms."""
