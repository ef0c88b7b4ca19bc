"""Events that owners, visitors and other systems are notified of (ADR 60)."""
