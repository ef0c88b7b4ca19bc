"""Tooling of the service: the local stack, the operator's commands, packaging and deployment."""
