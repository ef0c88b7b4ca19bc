"""Rows of notifications."""
