"""Imports of products, services and clients from tables, by one flow."""
