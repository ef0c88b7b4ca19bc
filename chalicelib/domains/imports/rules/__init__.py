"""Rules of imports, without I/O."""
