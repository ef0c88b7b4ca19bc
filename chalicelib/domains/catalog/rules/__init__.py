"""Rules of the catalogue, without I/O."""
