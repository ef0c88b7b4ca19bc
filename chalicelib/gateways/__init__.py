"""What leaves the process: models, object store, safe fetcher, DNS, open databases."""
