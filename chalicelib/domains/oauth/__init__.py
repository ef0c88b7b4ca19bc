"""Signing in from AI clients: OAuth clients, consent and tokens (OAuth 2.1)."""
