"""Pure rules of notifications."""
