"""Products: their records, their order, changes of many at once, and help with filling them in."""
