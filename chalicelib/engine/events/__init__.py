"""Events: what changes tell owners, visitors and other systems (ADR 60)."""
