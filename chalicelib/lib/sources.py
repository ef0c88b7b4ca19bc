"""Traffic sources of visitors."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chalicelib.core.text import one_line

DIRECT = "direct"  # source of visits without a campaign and without a link from another host
MAX_CHARACTERS = 200
MAX_URL = 500
PHONE_DIGITS = 10  # Digits of a phone number. Dates in names of campaigns have fewer.


def source_of(
    page: str | None, *, referrer: str | None, campaign: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the traffic source to store, from unverified values of the visitor."""
    tags = {
        name: line
        for name, value in campaign.items()
        if isinstance(value, str) and (line := one_line(value, MAX_CHARACTERS))
    }
    source, foreign = tags.get("source", "").lower(), referring_host(page, referrer=referrer)
    is_contact = "@" in source or sum(map(str.isdigit, source)) >= PHONE_DIGITS
    # Statistics count by ``name``, which is the campaign's source. If that is the contact of a
    # visitor, ``name`` is the referring host instead, because statistics outlive an erasure.
    # Without a referring host, or if the page has the same host, ``name`` is ``direct``. The query
    # and fragment of the page are removed, because they may contain tokens and names.
    return {
        "name": (source if source and not is_contact else foreign) or DIRECT,
        "page": drop_query(page),
        "referrer": _host(referrer),
        "campaign": tags or None,
    }


def referring_host(page: str | None, *, referrer: str | None) -> str | None:
    """Return the referring host, or None if it is unknown or the host of the page itself."""
    host = _host(referrer)
    return host if host != _host(page) else None


def _host(url: str | None) -> str | None:
    try:
        host = urlsplit(url or "").hostname
    except ValueError:
        return None
    return one_line(host.removeprefix("www."), MAX_CHARACTERS) or None if host else None


def drop_query(url: str | None) -> str | None:
    """Return a URL without its query and fragment, or None if it is not a URL of http or https."""
    try:
        parts = urlsplit(url or "")
        host = parts.hostname or ""
        # Reading the port raises ValueError if it is not a number up to 65535.
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not host:
        return None
    return one_line(f"{parts.scheme}://{host}{port}{parts.path}", MAX_URL) or None
