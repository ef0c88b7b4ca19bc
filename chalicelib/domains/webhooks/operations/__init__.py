"""Declare the operations of webhooks, one module per record type or verb."""
