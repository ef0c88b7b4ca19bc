"""Webhooks: signed requests that report events to other systems."""
