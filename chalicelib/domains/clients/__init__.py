"""Clients: how they are found by their contacts, created, listed and changed."""
