"""The endpoints of OAuth, by which people connect AI clients to the tool server."""
