"""Clients of external services: models, object store, safe fetcher, DNS, open databases."""
