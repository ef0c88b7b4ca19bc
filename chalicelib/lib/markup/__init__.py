"""Markup: Markdown, CSS, templates, and URLs within HTML."""
