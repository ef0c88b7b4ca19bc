"""Rows, listings and queries."""
