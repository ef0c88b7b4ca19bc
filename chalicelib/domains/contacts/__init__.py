"""Find or create the client with given contact details."""
