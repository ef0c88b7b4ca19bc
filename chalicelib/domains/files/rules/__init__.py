"""Rules for files and images, without I/O."""
