"""Capture forms: their records, and what visitors submit with them."""
