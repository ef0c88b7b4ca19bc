"""Slugs for URLs, made from titles in any script."""

import re
import secrets
from collections.abc import Container, Iterator, Sequence

MAX_LENGTH = 63  # characters; a slug may become a host name's label (RFC 1035, 2.3.4)

# A site cannot have these, because it may become a subdomain of the platform. Pages, categories and
# posts can.
RESERVED = frozenset({"admin", "api", "blog", "console", "files", "www"})

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def slugify(title: str, *, fallback: str) -> str:
    """Return the slug of a title in ASCII, or ``fallback`` if it has no letters or digits."""
    from anyascii import anyascii

    words = re.findall(r"[a-z0-9]+", anyascii(title).lower().replace("'", ""))
    # The cut may end in a hyphen, which a host name's label must not have.
    slug = "-".join(words)[:MAX_LENGTH].strip("-")
    return slug or fallback


def candidates(slug: str) -> Iterator[str]:
    """Yield ``slug``, ``slug-2`` … ``slug-5``, then three with random endings, none too long."""
    ends = ["", "-2", "-3", "-4", "-5"]
    ends += ["-" + "".join(secrets.choice(_ALPHABET) for _ in range(6)) for _ in range(3)]
    for end in ends:
        yield slug[: MAX_LENGTH - len(end)].rstrip("-") + end


def first_free(
    options: Sequence[str], used_slugs: Container[str], *, reserved: Container[str]
) -> str:
    """Return the first option that is neither taken nor reserved, or else the last option."""
    free = (option for option in options if option not in used_slugs and option not in reserved)
    # The last ones of ``candidates`` have random endings, so they are almost always free.
    return next(free, options[-1])
