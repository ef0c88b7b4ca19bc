"""Imported HTML of a page, and the URL of that page."""

from typing import Any

from chalicelib.domains.sites.rules.html_import import (
    ImportedHtml,
    read,
)

HERE = "https://example.com/shop/page.html"
"""URL that the pages of these tests come from."""


def page(html: str | bytes, **options: Any) -> ImportedHtml:
    return read(html, base_url=HERE, **options)
