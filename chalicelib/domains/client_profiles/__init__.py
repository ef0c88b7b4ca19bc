"""What a workspace has of a client, and how that is erased."""
