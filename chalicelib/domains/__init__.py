"""Concepts of the product, one folder each, layered as operations > flows > store > rules."""
