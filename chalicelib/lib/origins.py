"""Origins of web pages, as browsers send them (Fetch, 3.2): scheme, host and port."""

from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def normal_origin(text: str) -> str:
    """Return an origin in the form that browsers send: lower case, punycode, no default port.

    Raises:
        ValueError: it is none.
    """
    expected = "expected an origin such as https://www.example.com"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
        # The codec knows IDNA 2003; a name that only IDNA 2008 has can be given in punycode.
        host = (parts.hostname or "").encode("idna").decode().lower()
    except ValueError:  # a port that is no number, a label that is too long
        raise ValueError(expected) from None
    if parts.scheme not in _DEFAULT_PORTS or not host or set(host) & set(" %*_\\"):
        raise ValueError(expected)
    if parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment:
        msg = f"{expected}, without a path"
        raise ValueError(msg)
    if ":" in host:
        host = f"[{host}]"
    shown = "" if port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{port}"
    return f"{parts.scheme}://{host}{shown}"
