"""Logic without I/O."""
