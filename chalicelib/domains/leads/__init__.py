"""Leads: list, find, work through their statuses, orders, statistics."""
