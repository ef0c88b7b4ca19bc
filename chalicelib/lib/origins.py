"""Origins of web pages in the form that browsers send (WHATWG Fetch, 3.2)."""

import re
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")  # names of the own machine (RFC 8252, 7.3 and 8.3)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_ORIGIN = re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")


def is_loopback(origin: str) -> bool:
    """Return whether an origin is a page of the own machine, on any port."""
    return _LOOPBACK_ORIGIN.fullmatch(origin) is not None


def spellings(url: str) -> tuple[str, ...]:
    """Return a URL, and the same URL with each other name of the local machine if it has one."""
    scheme, _, host_and_path = url.partition("://")
    host = next(
        (name for name in LOOPBACK if re.match(rf"{re.escape(name)}(?![^:/])", host_and_path)), None
    )
    if host is None:
        return (url,)
    others = (name for name in LOOPBACK if name != host)
    return (url, *(f"{scheme}://{name}{host_and_path.removeprefix(host)}" for name in others))


def normalize_origin(text: str) -> str:
    """Return an origin as browsers send it, in lower case and punycode, or raise ValueError."""
    expected = "expected an origin such as https://www.example.com"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
        # The codec supports IDNA 2003. A name that only IDNA 2008 allows can be sent as punycode.
        host = (parts.hostname or "").encode("idna").decode().lower()
    except ValueError:  # the port is not a number, or a label is too long
        raise ValueError(expected) from None
    if parts.scheme not in _DEFAULT_PORTS or not host or set(host) & set(" %*_\\"):
        raise ValueError(expected)
    if parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment:
        msg = f"{expected} without a user name, path, query or fragment"
        raise ValueError(msg)
    if ":" in host:
        host = f"[{host}]"
    port_suffix = "" if port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{port}"
    return f"{parts.scheme}://{host}{port_suffix}"
