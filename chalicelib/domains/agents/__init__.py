"""Bots: their records, keys and limits."""

from chalicelib.domains.agents import keys, limits, records

__all__ = ["keys", "limits", "records"]
