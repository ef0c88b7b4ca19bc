"""Clients: list, get, update, and erase for good."""

from chalicelib.domains.clients import erasure, records

__all__ = ["erasure", "records"]
