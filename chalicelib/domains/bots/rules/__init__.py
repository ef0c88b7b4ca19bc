"""Rules of bots, without I/O."""
