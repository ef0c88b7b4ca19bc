"""The Lambda zip: building, trimming and checking."""
