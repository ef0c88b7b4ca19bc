"""The tools of a booking page, and the operations of its owner."""
