"""The streaming chat."""
