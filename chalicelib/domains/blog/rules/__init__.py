"""Rules of the blog, without I/O."""
