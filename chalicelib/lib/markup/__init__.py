"""Parsers and writers of text formats, and rewriting of URLs within HTML."""
