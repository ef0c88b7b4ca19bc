"""Rows, listings and queries of files and folders."""
