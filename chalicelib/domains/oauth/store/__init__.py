"""Rows of OAuth clients."""
