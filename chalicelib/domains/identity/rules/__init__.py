"""Rules for passwords, without I/O."""
