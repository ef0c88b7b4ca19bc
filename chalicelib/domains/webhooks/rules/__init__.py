"""Rules for webhooks, without I/O."""
