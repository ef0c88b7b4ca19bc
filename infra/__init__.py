"""Tooling for running, operating, packaging and deploying the service."""
