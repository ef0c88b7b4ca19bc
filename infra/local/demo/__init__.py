"""The demo workspace of ``make dev``."""
