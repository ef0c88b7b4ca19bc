"""Rows, listings and queries of the catalogue."""
