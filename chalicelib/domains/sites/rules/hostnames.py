"""Validate custom domains and the TXT record that proves their owner.

URLs of sites and their pages.
"""

from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

_FORBIDDEN_CHARACTERS = frozenset("/:@?#*%\\ \t\r\n")


@cache
def _public_suffixes() -> Any:  # noqa: ANN401  the library has no types
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def normalize(name: str, *own_hosts: str) -> str:
    """Return a host name in lower case and punycode, without a final dot.

    Raises:
        ValueError: the name is not a plain host name (a URL, port, path, wildcard or IP address),
            is invalid, is a public suffix such as co.uk, or is one of the platform's ``own_hosts``
            or below one.
    """
    import idna

    name = name.strip()
    if _FORBIDDEN_CHARACTERS & set(name):
        raise ValueError("expected a host name without a scheme, port, path or wildcard")
    try:
        host = idna.encode(name, uts46=True).decode().rstrip(".")
    except idna.IDNAError:
        msg = (
            "expected labels of 1 to 63 letters, digits and hyphens, without a hyphen at the "
            "start or end"
        )
        raise ValueError(msg) from None
    last = host.rpartition(".")[2]
    if last.isdigit() or last.startswith("0x"):  # Browsers read it as an IPv4 address.
        raise ValueError("expected a host name, not an IP address")
    if "." not in host:
        raise ValueError("expected a full host name, such as www.example.com")
    if _public_suffixes().is_public(host):
        raise ValueError("expected your own host name, received a public suffix")
    if any(f".{host}".endswith(f".{own_host}") for own_host in filter(None, own_hosts)):
        raise ValueError("expected your own host name, received a name of the platform")
    return host


def is_apex(host: str) -> bool:
    """Return whether a host is the name that is registered, such as example.co.uk."""
    return bool(_public_suffixes().privatesuffix(host) == host)


def txt_record_name(domain: str) -> str:
    """Return the host name of the TXT record that proves ownership of a domain."""
    return f"_svc-verify.{domain}"


def txt_record_value(token: str) -> str:
    """Return the value of the TXT record that proves ownership of a domain."""
    return f"svc-verify={token}"


def site_url(slug: str, public_url: str, sites_domain: str) -> str:
    """Return the URL of a site: its own host below the sites' domain if configured, else ``/s/``.

    With a host of its own, the untrusted pages of a site share no cookies with the service.
    """
    return f"https://{slug}.{sites_domain}" if sites_domain else f"{public_url}/s/{slug}"


def own_url(domain: str, public_url: str, *, local: bool) -> str:
    """Return the URL of a site on its own domain.

    The ``local`` server serves it with its own scheme and port.
    """
    if not local:
        return f"https://{domain}"
    parts = urlsplit(public_url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{domain}{port}"


def page_slug(
    url: str | None, public_url: str, site_slug: str, domain: str | None, sites_domain: str = ""
) -> str | None:
    """Return the slug of a site's page by its URL: "" for the home page, None for other URLs.

    Pages are at the root of the site's own host, or under ``/s/<site>`` of the service.
    """
    try:
        parts = urlsplit(url or "")
        host = parts.hostname
    except ValueError:
        return None
    path = unquote(parts.path)
    own_hosts = {domain, f"{site_slug}.{sites_domain}" if sites_domain else None} - {None}
    if host in own_hosts:
        return path.strip("/")
    root = f"/s/{site_slug}"
    if parts.netloc != urlsplit(public_url).netloc or not f"{path}/".startswith(f"{root}/"):
        return None
    return path.removeprefix(root).strip("/")
