"""Build the API reference as pages and as ``docs/reference.md``, only from the OpenAPI document."""
