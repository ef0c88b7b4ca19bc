"""Rules for sites and pages, without I/O."""
