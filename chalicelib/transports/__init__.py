"""How callers reach the operations. The only layer that knows Chalice."""
