"""Services: their records, and help with filling them in."""
