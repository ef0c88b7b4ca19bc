"""The URLs of sites and their pages (contract, Console and public surfaces)."""

from urllib.parse import unquote, urlsplit


def page_slug(url: str | None, public_url: str, site_slug: str, domain: str | None) -> str | None:
    """Return the slug of a site's page by its URL, "" for the home page; None if it is none's.

    Pages lie under ``/s/<site>`` of the service, and at the root of the site's own domain.
    """
    try:
        parts = urlsplit(url or "")
        host = parts.hostname
    except ValueError:
        return None
    path = unquote(parts.path)
    if host is not None and host == domain:
        return path.strip("/")
    root = f"/s/{site_slug}"
    if parts.netloc != urlsplit(public_url).netloc or not f"{path}/".startswith(f"{root}/"):
        return None
    return path.removeprefix(root).strip("/")
