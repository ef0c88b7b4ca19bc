"""Rows of e-mail."""
