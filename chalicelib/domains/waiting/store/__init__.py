"""Rows of waiting lists."""
