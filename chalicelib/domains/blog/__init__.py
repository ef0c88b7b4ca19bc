"""Posts of the platform's blog."""
