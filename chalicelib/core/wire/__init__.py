"""Models of what callers send and receive: parsing, normalisation and JSON Schema."""
