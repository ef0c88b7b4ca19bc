"""Wire models and operation handlers of accounts, workspaces, keys and sessions."""
