"""Hosts of customers' sites, whose requests the edge leads to the pages of one site on AWS.

``SITE_HOSTS=local`` lets this server do the same for every domain that a site has proven, and for
all names below ``localhost``.
"""

from fnmatch import fnmatchcase
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from chalicelib.core.settings import settings
from chalicelib.domains.sites.store.sites import find_domain_claim
from chalicelib.gateways.site_hosts import LOCALHOST

SHARED = ("/api/agents/public/chat-stream*", "/api/public/*", "/widget.js", "/files/?*")
"""Patterns of the paths that hosts of sites have besides pages. Those of the edge are the same."""


def site_path(path: str, host: str) -> str:
    """Return the path under which the service has the page that a host was asked for.

    A page's path is one segment, so that no path leads to the API or the console.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.rstrip(".").lower()
    if not _is_site(name) or any(fnmatchcase(path, pattern) for pattern in SHARED):
        return path
    page = path.strip("/").replace("/", "%2F")
    return f"/s/{quote(name)}" + (f"/{page}" if page else "")


def _is_site(host: str) -> bool:
    """Whether a host is a site's. Other names of this machine lead to the service."""
    if settings().site_hosts != "local" or host in {"", urlsplit(settings().public_url).hostname}:
        return False
    return host.endswith(LOCALHOST) or (
        "." in host and not _is_address(host) and find_domain_claim(host) is not None
    )


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
