"""Accounts, workspaces, their members and their API keys."""
