"""``invoke``, the only way to run an operation, and the Context that handlers take."""
