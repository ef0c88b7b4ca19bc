"""Base classes and helpers for the models of requests and responses."""
