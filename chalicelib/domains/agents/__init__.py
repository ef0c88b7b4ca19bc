"""Bots: their records, keys and limits."""
