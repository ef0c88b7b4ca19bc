"""Writes the skeleton of a noun: its store, operations, pages, translations, demo and tests."""
