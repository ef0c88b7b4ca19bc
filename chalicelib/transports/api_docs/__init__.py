"""The API reference as pages and as ``docs/reference.md``, built only from the OpenAPI document.

``model`` reads the document. ``samples`` writes example calls in curl, Python and MCP. ``prose``
converts the guides' Markdown to HTML. ``search`` searches the reference. ``web.docs`` serves the
result as pages.
"""
