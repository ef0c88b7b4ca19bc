"""Bots, their keys, limits and widget events."""
