"""Capture forms: their records, and what visitors submit with them."""

from chalicelib.domains.forms import records, submission

__all__ = ["records", "submission"]
