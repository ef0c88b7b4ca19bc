"""What runs around the service: the local stack, the operator's commands, packaging, deployment."""
