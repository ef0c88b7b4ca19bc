"""Check that URLs from users lead to the public internet."""

import re
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import quote

MAX_LENGTH = 4096  # characters; signed URLs of files reach about 2500
MAX_PORT: Final = 65_535
PORTS: Final = {"http": 80, "https": 443}

_URL = re.compile(r"(?is)([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?")
_LOOPBACK_URL = re.compile(
    r"(?is)http://(?:localhost|127\.0\.0\.1)(?::([0-9]{1,5}))?(/[^?#]*)?(\?[^#]*)?(?:#.*)?"
)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(?::([0-9]{0,5}))?", re.ASCII)
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)+[a-z0-9_-]{1,63}")
# Names that the public DNS never has (RFC 6761, 6762, 7686 and 8375; ICANN on .internal).
_PRIVATE_NAME = re.compile(r"(?:.*\.)?(?:localhost|local|internal|home\.arpa|onion|invalid)")
# Matches the last label of a host that browsers read as an IPv4 address (WHATWG URL).
_IPV4_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")
_SAFE_IN_TARGET = "!$%&'()*+,-./:;=?@[]_~"

# The IPv6 block from which public networks get their addresses. It excludes loopback, link-local,
# unique local, site-local and multicast addresses. It also excludes addresses that contain an IPv4
# address: mapped, compatible and NAT64 addresses.
_GLOBAL_UNICAST = ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    ip_network(block)
    for block in (
        # Networks that ipaddress treats as global in some versions of Python
        "168.63.129.16/32",  # the platform agent of Azure, reachable from every virtual machine
        "192.0.0.0/24",  # protocol assignments (RFC 6890); metadata service of Oracle Cloud
        "192.88.99.0/24",  # relays into 6to4 (RFC 7526)
        "224.0.0.0/4",  # multicast
        "2001::/23",  # protocol assignments, such as Teredo, which carries an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",  # documentation (RFC 9637)
    )
)
_ISATAP = 0x5EFE


def is_public(address: str) -> bool:
    """Whether an IP address is on the public internet, by the IANA registries (RFC 6890)."""
    ip = ip_address(address)
    # This is stricter than ``ipaddress``: an IPv6 address that contains an IPv4 address is never
    # public, because a translator or tunnel may forward it to a private network.
    if isinstance(ip, IPv6Address) and (ip not in _GLOBAL_UNICAST or _is_isatap(ip)):
        return False
    return ip.is_global and not any(ip in block for block in _NOT_PUBLIC)


def _is_isatap(ip: IPv6Address) -> bool:
    # The last 32 bits are the IPv4 address of a tunnel (RFC 5214, 6.1).
    return (int(ip) >> 32) & 0xFDFFFFFF == _ISATAP


class PublicUrl(NamedTuple):
    """The parts of a URL."""

    scheme: str
    # A name in lower case and punycode without a final dot, or an IP address without brackets.
    host: str
    port: int
    target: str  # the path and the query as percent-encoded ASCII

    @property
    def is_ip_address(self) -> bool:
        return _is_ip(self.host)

    @property
    def is_private_address(self) -> bool:
        return self.is_ip_address and not is_public(self.host)

    @property
    def authority(self) -> str:
        """Return the Host header, which has the port unless it is the default one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(url: str, *, allow_http: bool = False) -> PublicUrl:
    """Return the parts of a URL that may be fetched, without its fragment, or raise ValueError.

    The host must be a full host name, an IPv4 address in four decimal numbers, or an IPv6 address
    in brackets. Unusual forms are refused, because resolvers interpret them differently. The caller
    still has to resolve a host name and check its IP addresses.
    """
    url = url.strip(" \t\r\n")
    if len(url) > MAX_LENGTH:
        msg = f"expected at most {MAX_LENGTH} characters, not {len(url)}"
        raise ValueError(msg)
    if _FORBIDDEN.search(url):
        raise ValueError("expected a URL without backslashes, line breaks and control characters")
    schemes = "http:// or https://" if allow_http else "https://"
    match = _URL.fullmatch(url)
    if match is None:
        msg = f"expected a full URL that begins with {schemes}"
        raise ValueError(msg)
    scheme, authority, path, query = match[1].lower(), match[2], match[3], match[4] or ""
    if scheme not in PORTS or (scheme == "http" and not allow_http):
        msg = f"expected a URL that begins with {schemes}, not with {scheme[:20]}:"
        raise ValueError(msg)
    host, port = _host_and_port(authority, PORTS[scheme])
    return PublicUrl(scheme, host, port, quote((path or "/") + query, safe=_SAFE_IN_TARGET))


def parse_loopback(url: str) -> PublicUrl | None:
    """Return the parts of an http URL of this machine, or None. Only for development."""
    url = url.strip(" \t\r\n")
    match = _LOOPBACK_URL.fullmatch(url)
    if match is None or len(url) > MAX_LENGTH or _FORBIDDEN.search(url):
        return None
    port, target = int(match[1] or PORTS["http"]), (match[2] or "/") + (match[3] or "")
    if not 1 <= port <= MAX_PORT:
        return None
    return PublicUrl("http", "127.0.0.1", port, quote(target, safe=_SAFE_IN_TARGET))


def _host_and_port(authority: str, default_port: int) -> tuple[str, int]:
    if "@" in authority:
        raise ValueError("expected a URL without a user name or password before the host")
    if not authority or authority.startswith(":"):
        raise ValueError("expected a host name, such as www.example.com, after the two slashes")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise ValueError("expected a host name, optionally with a port, after the two slashes")
    port = int(match[2] or default_port)
    # Other ports lead to services such as databases and mail servers, which a user must not reach.
    if port not in PORTS.values():
        msg = f"expected port 80 or 443, not {port}"
        raise ValueError(msg)
    return _host(match[1]), port


def _host(name: str) -> str:
    if name.startswith("["):
        if "%" in name or not _is_ip(name[1:-1]) or ":" not in name:
            raise ValueError("expected an IPv6 address, without a zone, between the brackets")
        return str(ip_address(name[1:-1]))
    host = _ascii(name.lower()).removesuffix(".")
    # Resolvers read a single number or a hexadecimal one as an IPv4 address, too.
    if _IPV4_LABEL.fullmatch(host.rpartition(".")[2]):
        if not _is_ip(host):
            raise ValueError("expected an IPv4 address as four decimal numbers, such as 192.0.2.1")
        return host
    if not _HOST.fullmatch(host):
        raise ValueError("expected a full host name, such as www.example.com")
    if _PRIVATE_NAME.fullmatch(host):
        msg = f"expected a host on the public internet, not a host under .{host.rpartition('.')[2]}"
        raise ValueError(msg)
    return host


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    import idna

    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode()
    except idna.IDNAError:
        raise ValueError("expected a valid host name, not an invalid international name") from None


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
