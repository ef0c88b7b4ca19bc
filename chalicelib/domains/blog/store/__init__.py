"""Rows, listings and queries of the blog."""
