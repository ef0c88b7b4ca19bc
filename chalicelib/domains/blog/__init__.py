"""The platform's blog: its posts, for ADMIN accounts and for readers."""
