"""Leads: list, find, work through their statuses, orders, statistics."""

from chalicelib.domains.leads import changes, orders, records, stats

__all__ = ["changes", "orders", "records", "stats"]
