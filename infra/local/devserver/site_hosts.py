"""Select the hosts for which the local server responds.

On AWS, the edge leads requests to a customer's site to its pages. ``SITE_HOSTS=local`` lets this
server do the same for every domain that a site has proven, and for all names below ``localhost``.
"""

from fnmatch import fnmatchcase
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from chalicelib.core.errors import AppError
from chalicelib.core.settings import settings
from chalicelib.domains.sites.store.sites import find_domain_claim
from chalicelib.gateways.site_hosts import LOCALHOST

SHARED = ("/api/agents/public/chat-stream*", "/api/public/*", "/widget.js", "/files/?*")
"""Patterns of the paths that hosts of sites have besides pages. The edge has the same patterns."""


class MisdirectedRequestError(AppError):
    """The request is for a host that this server does not serve (RFC 9110, 15.5.20)."""

    status = 421
    code = "misdirected_request"


def check_host(host: str) -> None:
    """Refuse a request for a host that is not of this machine, nor of a site here.

    A web page can let a name of its own lead to 127.0.0.1, and would then read this server as if it
    were its own (DNS rebinding). No page can do that with an address or a name without a dot.

    Raises:
        MisdirectedRequestError: the server does not serve the host.
    """
    name = _name(host)
    current = settings()
    allowed_hosts = current.allowed_hosts | {"", urlsplit(current.public_url).hostname}
    if name in allowed_hosts or "." not in name or _is_address(name) or name.endswith(LOCALHOST):
        return
    if current.site_hosts == "local" and find_domain_claim(name) is not None:
        return
    msg = (
        f"This server does not answer for {name[:100]}. Add it to ALLOWED_HOSTS, or use localhost."
    )
    raise MisdirectedRequestError(msg)


def site_path(path: str, *, host: str) -> str:
    """Return the path under which the service has the page that a host was asked for.

    A page's path is one segment, so that no path leads to the API or the console.
    """
    name = _name(host)
    if not _is_site(name) or any(fnmatchcase(path, pattern) for pattern in SHARED):
        return path
    page = path.strip("/").replace("/", "%2F")
    return f"/s/{quote(name)}" + (f"/{page}" if page else "")


def _name(host: str) -> str:
    """Return a host in lower case without its port and without a final dot."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name.rstrip(".").lower()


def _is_site(host: str) -> bool:
    """Whether a host belongs to a site and not to the service."""
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
