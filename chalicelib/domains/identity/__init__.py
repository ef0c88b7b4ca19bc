"""Accounts, workspaces, their members and their API keys."""

from chalicelib.domains.identity import accounts, keys, members, workspaces

__all__ = ["accounts", "keys", "members", "workspaces"]
