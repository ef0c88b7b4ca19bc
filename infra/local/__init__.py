"""Local development with ``make dev``."""
