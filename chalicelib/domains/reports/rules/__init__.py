"""Rules without input or output."""
