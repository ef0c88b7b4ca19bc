"""Rows of sums."""
