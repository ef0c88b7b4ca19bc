"""``make dev``: the local database, server, demo workspace and made-up records."""
