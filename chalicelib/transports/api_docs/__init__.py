"""The API reference, made of the OpenAPI document alone: what its pages and docs/reference.md say.

``model`` reads the document, ``samples`` writes calls in curl, Python and MCP, ``prose`` turns the
guides' Markdown into HTML, ``search`` finds things. ``web.docs`` serves it all as pages.
"""
