"""Rules of webhooks, without I/O."""
