"""Pure logic without I/O."""
