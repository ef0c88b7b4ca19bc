"""Clients of external services."""
