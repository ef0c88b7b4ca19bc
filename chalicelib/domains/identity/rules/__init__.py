"""Rules for passwords, codes of a second factor and tokens, without I/O."""
