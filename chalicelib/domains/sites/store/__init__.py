"""Rows, listings and queries of sites and pages."""
