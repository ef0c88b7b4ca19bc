"""The database layer, which has no knowledge of any domain."""
