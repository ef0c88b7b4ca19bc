"""Origins of web pages, as browsers send them: scheme, host and port (WHATWG Fetch, 3.2)."""

from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def normalize_origin(text: str) -> str:
    """Return an origin in the form that browsers send: lower case, punycode, no default port.

    Raises:
        ValueError: the text is not an origin.
    """
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
        msg = f"{expected}, without a user name, path, query or fragment"
        raise ValueError(msg)
    if ":" in host:
        host = f"[{host}]"
    port_suffix = "" if port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{port}"
    return f"{parts.scheme}://{host}{port_suffix}"
