"""Logic that several operations share."""
