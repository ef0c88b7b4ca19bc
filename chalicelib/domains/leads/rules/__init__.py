"""Rules for forms, without I/O."""
