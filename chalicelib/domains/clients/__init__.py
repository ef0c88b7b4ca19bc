"""Client records, their orders and their erasure."""
