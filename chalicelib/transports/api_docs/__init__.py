"""The API reference: its pages and ``docs/reference.md``, built from the OpenAPI document alone.

``model`` reads the document. ``samples`` writes example calls in curl, Python and MCP. ``prose``
converts the guides' Markdown to HTML. ``search`` searches the reference. ``web.docs`` serves the
result as pages.
"""
