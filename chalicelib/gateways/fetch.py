"""Files and pages from addresses that users give, which must not lead inside (security.md).

A host is resolved once; every address it has must be public, and the connection goes to one of
those very addresses. Tests replace ``connect`` and ``_tls``, and the resolver in ``gateways.dns``.
"""

import gzip
import http.client
import io
import socket
import ssl
import string
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote, urljoin

from chalicelib import USER_AGENT
from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways import dns
from chalicelib.lib import public_urls
from chalicelib.lib.public_urls import PublicUrl

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_BYTES = 10 * 2**20
"""What a body may come to, compressed and not."""
TOTAL_SECONDS = 15.0
"""From the call to the last byte, redirects included."""
STEP_SECONDS = 5.0
"""For connecting (all addresses together), for the TLS handshake, and for every read."""
MAX_REDIRECTS = 3
MAX_ADDRESSES = 3
"""How many of a host's addresses are tried."""

_OVERHEAD = 2**20
"""Bytes for headers and the framing of chunks."""
_CHUNK = 2**16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchError(Exception):
    """A URL was not fetched.

    ``reason`` is a clause for the user, who gave the URL: what was expected and what came. It names
    no address that a host resolved to.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RefusedUrlError(FetchError):
    """The URL, or one it redirects to, may not be fetched: the caller's mistake (400)."""


class TooLargeError(FetchError):
    """The body is larger than allowed (413)."""


class UpstreamError(FetchError):
    """The server is not there, too slow, or does not answer as expected (502)."""


class Fetched(NamedTuple):
    """What came. ``url`` is where it came from, after redirects.

    ``content_type`` is as declared, with parameters; empty if it was not. The content may be of
    another type.
    """

    url: str
    content_type: str
    body: bytes


connect: Callable[[tuple[str, int], float], socket.socket] = socket.create_connection
"""Open a connection to a checked IP address and port within some seconds. Raises OSError."""


class Hosts:
    """What one piece of work learns of the hosts it fetches from, in any of its threads.

    A host that takes no connection, or is none, is asked once: others wait for the first to
    connect, and fail as it did. What a host answers over a connection is no matter here.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._doors: defaultdict[tuple[str, int], _Door] = defaultdict(_Door)

    def connect(self, place: PublicUrl, deadline: "_Deadline") -> socket.socket:
        """Return a connection to a checked address, under TLS if the URL says so."""
        with self._lock:
            door = self._doors[place.host, place.port]
        with door.lock:
            if door.failure is not None:
                raise door.failure
            if not door.open:
                try:
                    connection = _connected(place, deadline)
                except Exception as failure:
                    door.failure = failure
                    raise
                door.open = True
                return connection
        return _connected(place, deadline)


class _Door:
    """Whether a host takes connections at a port, once that is known; if not, why."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.open = False
        self.failure: Exception | None = None


def fetch(  # noqa: PLR0913  what may be said of it
    url: str,
    *,
    http_too: bool = False,
    max_bytes: int = MAX_BYTES,
    within: float = TOTAL_SECONDS,
    accept: str = "*/*",
    hosts: Hosts | None = None,
) -> Fetched:
    """GET a public URL that a user gave.

    Neither cookies nor credentials are sent; no proxy or .netrc of the environment is used. Safe in
    threads. Nothing is tried twice, except further addresses of a host that does not connect.

    Args:
        url: as ``public_urls.parse`` takes it.
        http_too: whether http is allowed, also for redirects.
        max_bytes: what the body may come to, decompressed.
        within: seconds for all of it, from the name lookup to the last byte.
        accept: the Accept header.
        hosts: what is known of them from other fetches of the same work.

    Raises:
        RefusedUrlError: malformed, or not to the public internet, or redirected to such a URL.
        TooLargeError: more than ``max_bytes``.
        UpstreamError: no answer in time, more than three redirects, a status other than 2xx, ….
    """
    deadline, hosts = _Deadline(within), hosts or Hosts()
    place = _parse(url, http_too=http_too)
    for _ in range(1 + MAX_REDIRECTS):
        with (
            _worded(place.host, within),
            hosts.connect(place, deadline) as sock,
            _asked(_Wire(sock, deadline, max_bytes), place, accept) as response,
        ):
            if response.status not in _REDIRECTS:
                body = _body(response, place.host, max_bytes)
                return Fetched(str(place), response.headers.get("Content-Type", ""), body)
        place = _redirected(place, response.headers.get("Location"), http_too=http_too)
    msg = f"expected at most {MAX_REDIRECTS} redirects; {place.host} would be one more"
    raise UpstreamError(msg)


class _Deadline(Deadline):
    """A deadline that ends what is under way."""

    def left(self, at_most: float = inf) -> float:
        """Return the seconds left, or fewer. Raises TimeoutError if none are."""
        if not (left := super().left(at_most)):
            raise TimeoutError
        return left


class _Wire(io.RawIOBase):
    """What a server sends, within what is left of the time and of the bytes.

    Both limits stand below http.client, which reads headers in as many pieces as they come, skips
    interim answers and trailers without end, and trusts lengths: a negative one reads it all.
    """

    def __init__(self, sock: socket.socket, deadline: _Deadline, max_bytes: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._left = max_bytes + _OVERHEAD

    def readable(self) -> Literal[True]:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._sock.settimeout(self._deadline.left(STEP_SECONDS))
        count = self._sock.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise _too_large(self._max_bytes)
        return count

    def send(self, data: bytes) -> None:
        self._sock.settimeout(self._deadline.left(STEP_SECONDS))
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return what ``http.client.HTTPResponse`` asks of a socket."""
        return io.BufferedReader(self)


def _parse(url: str, *, http_too: bool) -> PublicUrl:
    try:
        return public_urls.parse(url, http_too=http_too)
    except ValueError as error:
        raise RefusedUrlError(str(error)) from None


def _redirected(place: PublicUrl, location: str | None, *, http_too: bool) -> PublicUrl:
    if not location:
        msg = f"{place.host} answered with a redirect that leads nowhere"
        raise UpstreamError(msg)
    # http.client reads headers as Latin-1, whatever they are in.
    location = quote(location, safe=string.punctuation, encoding="latin-1")
    with suppress(ValueError):  # brackets that hold no address; parse says so in better words
        location = urljoin(str(place), location)
    try:
        return public_urls.parse(location, http_too=http_too)
    except ValueError as error:
        msg = f"{place.host} redirects to a URL that is refused: {error}"
        raise RefusedUrlError(msg) from None


@contextmanager
def _worded(host: str, within: float) -> Iterator[None]:
    """Turn what libraries raise into a clause without their words."""
    try:
        yield
    except dns.DnsUnavailableError:
        msg = f"no name server could say where {host} is; try again later"
        raise UpstreamError(msg) from None
    except TimeoutError:
        msg = (
            f"{host} was too slow: expected an answer within {STEP_SECONDS:g} seconds "
            f"and all of it within {within:g}"
        )
        raise UpstreamError(msg) from None
    except ssl.SSLCertVerificationError:
        msg = f"{host} has no valid certificate: it is expired, self-signed or for another host"
        raise UpstreamError(msg) from None
    except ssl.SSLError:
        msg = f"{host} does not speak https as expected (TLS 1.2 or newer)"
        raise UpstreamError(msg) from None
    except (http.client.HTTPException, gzip.BadGzipFile, zlib.error, EOFError, ValueError):
        msg = f"{host} sent a broken or incomplete answer; expected HTTP"
        raise UpstreamError(msg) from None
    except OSError:
        msg = f"{host} does not accept the connection or broke it"
        raise UpstreamError(msg) from None


def _addresses(place: PublicUrl, deadline: _Deadline) -> list[str]:
    """Return the host's addresses, asked for once, if every one of them is public."""
    if place.is_address:
        found = [place.host]
    else:
        found = dns.lookup_addresses(place.host, deadline.left(dns.TIMEOUT_SECONDS))
    if not found:
        msg = f"no host is called {place.host}; check the spelling"
        raise UpstreamError(msg)
    if not all(map(public_urls.is_public, found)):
        msg = f"expected an address on the public internet; {place.host} is not"
        raise RefusedUrlError(msg)
    return found[:MAX_ADDRESSES]


def _reached(place: PublicUrl, deadline: _Deadline) -> socket.socket:
    """Return a connection to the first address that takes one."""
    *others, last = _addresses(place, deadline)
    share = STEP_SECONDS / (len(others) + 1)
    for address in others:
        try:
            return connect((address, place.port), deadline.left(share))
        except OSError:
            continue
    return connect((last, place.port), deadline.left(share))


def _connected(place: PublicUrl, deadline: _Deadline) -> socket.socket:
    """Return a connection to a checked address, under TLS as the host that the URL names."""
    sock = _reached(place, deadline)
    if place.scheme == "http":
        return sock
    try:
        sock.settimeout(deadline.left(STEP_SECONDS))  # for the handshake as a whole
        return _tls().wrap_socket(sock, server_hostname=place.host)
    except BaseException:
        sock.close()
        raise


@cache
def _tls() -> ssl.SSLContext:
    import certifi  # noqa: PLC0415  only fetching reads the certificates (40 ms)

    return ssl.create_default_context(cafile=certifi.where())


@contextmanager
def _asked(wire: _Wire, place: PublicUrl, accept: str) -> Iterator[http.client.HTTPResponse]:
    """Send the request and yield the answer, read up to its body; close it whatever happens.

    Left to the garbage collector, it may be finalised after the wire that it wants to flush, which
    Python 3.13 reports as an error of its own.
    """
    # Host and target are ASCII without spaces and line breaks: public_urls.parse made them.
    request = (
        f"GET {place.target} HTTP/1.1\r\n"
        f"Host: {place.authority}\r\n"
        f"User-Agent: {USER_AGENT} (+{settings().public_url})\r\n"
        f"Accept: {accept}\r\n"
        "Accept-Encoding: gzip\r\n"
        "Connection: close\r\n"
        "\r\n"
    )
    wire.send(request.encode("ascii"))
    with http.client.HTTPResponse(wire) as response:  # type: ignore[arg-type] # asks for makefile
        response.begin()
        yield response


def _body(response: http.client.HTTPResponse, host: str, max_bytes: int) -> bytes:
    """Return the body, decompressed while it is counted."""
    if not 200 <= response.status <= 299:  # noqa: PLR2004  the statuses of success
        msg = f"{host} answered with status {response.status}; expected 200"
        raise UpstreamError(msg)
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip", ""}:
        msg = f"{host} compressed its answer in a way it was not asked for; expected gzip or none"
        raise UpstreamError(msg)
    if (response.length or 0) > max_bytes:
        raise _too_large(max_bytes)
    stream = gzip.GzipFile(fileobj=response) if encoding.endswith("gzip") else response
    body = io.BytesIO()
    while chunk := stream.read(_CHUNK):
        if body.tell() + len(chunk) > max_bytes:
            raise _too_large(max_bytes)
        body.write(chunk)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return body.getvalue()


def _too_large(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"expected at most {max_bytes / 2**20:g} MB; there is more")
