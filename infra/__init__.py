"""What runs around the service: the local stand, the operator's commands, packaging, deployment."""
