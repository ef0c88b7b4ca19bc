"""Pages of what the owner offers and publishes, such as products, files and posts."""
