"""What several domains do with stores and gateways together (ADR 0009)."""
