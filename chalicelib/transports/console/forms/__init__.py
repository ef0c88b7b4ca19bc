"""Pages of forms."""
