"""The Lambda zip: how it is built, trimmed and checked."""
