"""Parsers and writers of formats such as CSV, and rewriting of URLs within HTML."""
