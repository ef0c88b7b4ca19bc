"""Documents: what an index is made of."""

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

FORMAT = 1
"""The version of passages, stems and index files. Increase it to have all indexes built again."""
_PAGE = "page:"


class Document(NamedTuple):
    """A text with its place. ``key`` is the key of its object, which never changes."""

    source_id: str
    title: str
    url: str
    key: str


def page_source(page_id: str) -> str:
    """Return the id under which passages of a site's page are indexed."""
    return f"{_PAGE}{page_id}"


def is_page(source_id: str) -> bool:
    """Whether passages with this source id are those of a site's page."""
    return source_id.startswith(_PAGE)


def fingerprint(documents: Iterable[Document]) -> str:
    """Return a hash that changes whenever an index of the documents would."""
    return sha256(json.dumps([FORMAT, *documents]).encode()).hexdigest()
