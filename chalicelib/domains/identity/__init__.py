"""Accounts, workspaces, members, keys, sessions and the audit log."""
