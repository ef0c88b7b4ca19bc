"""The endpoints of OAuth, by which users connect AI clients to the tool server."""
