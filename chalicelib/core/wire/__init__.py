"""Models of requests and responses: parsing, normalisation and JSON Schema."""
