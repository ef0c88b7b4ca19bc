"""Slugs: the words of a URL, made from titles in any script."""

import re
import secrets
from collections.abc import Container, Iterator, Sequence

MAX_LENGTH = 63
"""A slug may become a host name's label (RFC 1035, 2.3.4)."""

RESERVED = frozenset({"admin", "api", "blog", "console", "files", "www"})
"""Names that a site, which may be a host beside the platform's own, cannot have.

Within a site, a category tree or the blog, these words are as good as any other.
"""

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def slugify(title: str, fallback: str) -> str:
    """Return the slug of a title, transliterated to ASCII.

    ``fallback`` when no letter or digit is left of it.
    """
    from anyascii import anyascii  # noqa: PLC0415  its tables load only when a slug is made

    words = re.findall(r"[a-z0-9]+", anyascii(title).lower().replace("'", ""))
    slug = "-".join(words)[:MAX_LENGTH].strip("-")
    return slug or fallback


def candidates(slug: str) -> Iterator[str]:
    """Yield ``slug``, ``slug-2`` … ``slug-5``, then three with random ends, none too long."""
    ends = ["", "-2", "-3", "-4", "-5"]
    ends += ["-" + "".join(secrets.choice(_ALPHABET) for _ in range(6)) for _ in range(3)]
    for end in ends:
        yield slug[: MAX_LENGTH - len(end)].rstrip("-") + end


def first_free(options: Sequence[str], taken: Container[str], reserved: Container[str]) -> str:
    """Return the first option that is neither taken nor reserved.

    The random last ones practically always are free.
    """
    free = (option for option in options if option not in taken and option not in reserved)
    return next(free, options[-1])
