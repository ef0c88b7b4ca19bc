"""PynamoDB models and tenant-first functions. Nothing above this layer knows the database."""
