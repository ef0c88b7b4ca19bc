"""Rules of exports, without I/O."""
