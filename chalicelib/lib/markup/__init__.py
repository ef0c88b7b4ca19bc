"""Text formats: Markdown, CSS, CSV, templates, and URLs within HTML."""
