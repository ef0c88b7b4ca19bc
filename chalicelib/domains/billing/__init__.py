"""Manage the money of accounts and charge requests."""
