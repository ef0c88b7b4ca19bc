"""Clients: list, get, update, and erase for good."""
