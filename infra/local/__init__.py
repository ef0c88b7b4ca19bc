"""Local development with ``make dev``: the database, the server, the demo and sample data."""
