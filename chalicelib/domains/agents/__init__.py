"""Bots: their records, keys and limits."""

from chalicelib.domains.agents import keys, limits, public, records

__all__ = ["keys", "limits", "public", "records"]
