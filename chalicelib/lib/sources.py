"""Where a visitor came from: the page, the referrer's host, the campaign of the link."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from chalicelib.core.text import one_line

DIRECT = "direct"
"""The source of who came by no link from elsewhere."""
MAX_CHARACTERS = 200
MAX_URL = 500


def source_of(
    page: str | None, referrer: str | None, campaign: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what is kept of where a visitor came from; all of it is only what the visitor says.

    ``name`` is what statistics count it under: the campaign's source, else the referrer's host
    unless it is the page's own, else ``direct``. Of the page, its query and fragment, where tokens
    and names may be, are left out.
    """
    kept = {
        name: line
        for name, value in campaign.items()
        if isinstance(value, str) and (line := one_line(value, MAX_CHARACTERS))
    }
    foreign = referring_host(page, referrer)
    return {
        "name": kept.get("source", "").lower() or foreign or DIRECT,
        "page": without_query(page),
        "referrer": _host(referrer),
        "campaign": kept or None,
    }


def referring_host(page: str | None, referrer: str | None) -> str | None:
    """Return the host that led to a page, None if that was its own, or nobody says."""
    host = _host(referrer)
    return host if host != _host(page) else None


def _host(url: str | None) -> str | None:
    try:
        host = urlsplit(url or "").hostname
    except ValueError:
        return None
    return one_line(host.removeprefix("www."), MAX_CHARACTERS) or None if host else None


def without_query(url: str | None) -> str | None:
    """Return the URL of a page as it is kept, or None if it is none."""
    try:
        parts = urlsplit(url or "")
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not host:
        return None
    return one_line(f"{parts.scheme}://{host}{port}{parts.path}", MAX_URL) or None
