"""Rows and queries of accounts, workspaces, keys and sessions."""
