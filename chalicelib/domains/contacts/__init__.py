"""One client per person: find or create the client of a person."""
