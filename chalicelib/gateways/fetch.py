"""Downloads from URLs that users provide, protected against server-side request forgery.

A host is resolved once. All of its IP addresses must be public, and the connection uses one of the
checked addresses, so a second DNS answer cannot redirect it to an internal host.
Tests replace ``connect`` and ``_tls``, and the resolver in ``gateways.dns``.
"""

import gzip
import http.client
import io
import socket
import ssl
import string
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from http import HTTPStatus
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote, urljoin

from chalicelib import USER_AGENT
from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways import dns
from chalicelib.gateways.validators import Validators
from chalicelib.lib import public_urls
from chalicelib.lib.public_urls import PublicUrl

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_BYTES = 10 * 2**20
"""Largest body in bytes, both compressed and decompressed."""
TOTAL_SECONDS = 15.0
"""Time from the call to the last byte, redirects included."""
STEP_SECONDS = 5.0
"""Time to connect (all addresses together), for the TLS handshake, and for each read."""
MAX_REDIRECTS = 3
MAX_ADDRESSES = 3
"""IP addresses of a host that are tried."""

_OVERHEAD = 2**20
"""Bytes allowed for headers and for the framing of chunks."""
_CHUNK = 2**16
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchError(Exception):
    """A URL was not fetched.

    ``reason`` is a clause for the user who provided the URL: what was expected and what was
    received. It never contains an IP address that a host resolved to.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RefusedUrlError(FetchError):
    """The URL, or one that it redirects to, may not be fetched. An error of the caller (400)."""


class TooLargeError(FetchError):
    """The body is larger than allowed (413)."""


class UpstreamError(FetchError):
    """The server cannot be reached, is too slow, or does not answer as expected (502)."""


class Fetched(NamedTuple):
    """A downloaded body. ``url`` is its URL after redirects.

    ``content_type`` is the declared type with its parameters, or empty. The content may be of
    another type. If the server answered that nothing has changed, ``unchanged`` is true and the
    body is empty.
    """

    url: str
    content_type: str
    body: bytes
    validators: Validators
    unchanged: bool = False


connect: Callable[[tuple[str, int], float], socket.socket] = socket.create_connection
"""Open a connection to a checked IP address and port within some seconds. Raises OSError."""


class Hosts:
    """Results of connecting to hosts, shared by the threads of one import or batch.

    If a host does not exist or accepts no connection, only one thread tries to connect. The others
    wait for it and raise the same error. HTTP errors of a host do not count as failures here.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._states: defaultdict[tuple[str, int], _HostState] = defaultdict(_HostState)

    def connect(self, parsed: PublicUrl, deadline: "_Deadline") -> socket.socket:
        """Return a connection to a checked address, with TLS if the URL is https."""
        with self._lock:
            state = self._states[parsed.host, parsed.port]
        with state.lock:
            if state.failure is not None:
                raise state.failure
            if not state.reachable:
                try:
                    connection = _open_connection(parsed, deadline)
                except Exception as failure:
                    state.failure = failure
                    raise
                state.reachable = True
                return connection
        return _open_connection(parsed, deadline)


class _HostState:
    """Whether a host accepts connections on a port, and the error if it does not."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.reachable = False
        self.failure: Exception | None = None


def fetch(  # noqa: PLR0913  all of them are options of one request
    url: str,
    *,
    allow_http: bool = False,
    max_bytes: int = MAX_BYTES,
    within: float = TOTAL_SECONDS,
    accept: str = "*/*",
    hosts: Hosts | None = None,
    validators: Validators | None = None,
) -> Fetched:
    """GET a public URL that a user provided.

    Neither cookies nor credentials are sent. Proxies and .netrc of the environment are not used.
    The function is thread-safe. There are no retries, but if a connection fails, the next address
    of the host is tried.

    Args:
        url: a URL that ``public_urls.parse`` accepts.
        allow_http: whether http is allowed, also in redirects.
        max_bytes: largest body, decompressed.
        within: seconds for everything, from the DNS look-up to the last byte.
        accept: value of the Accept header.
        hosts: results of earlier connections in the same import or batch.
        validators: those of an earlier answer. The server at their URL may then answer that
            nothing has changed.

    Raises:
        RefusedUrlError: malformed, or not on the public internet, or redirected to such a URL.
        TooLargeError: more than ``max_bytes``.
        UpstreamError: no answer in time, more than three redirects, a status other than 2xx, ….
    """
    deadline, hosts = _Deadline(within), hosts or Hosts()
    parsed = _parse(url, allow_http=allow_http)
    for _ in range(1 + MAX_REDIRECTS):
        known = validators if validators and validators.url == str(parsed) else None
        headers = {"Accept": accept, **(known.conditions if known else {})}
        with (
            _clear_errors(parsed.host, within),
            hosts.connect(parsed, deadline) as sock,
            _requested(_BoundedSocket(sock, deadline, max_bytes), parsed, headers) as response,
        ):
            if known and response.status == HTTPStatus.NOT_MODIFIED:
                return Fetched(str(parsed), "", b"", known, unchanged=True)
            if response.status not in _REDIRECTS:
                body = _body(response, parsed.host, max_bytes)
                content_type = response.headers.get("Content-Type", "")
                return Fetched(
                    str(parsed), content_type, body, Validators.of(str(parsed), response.headers)
                )
        parsed = _redirect_target(parsed, response.headers.get("Location"), allow_http=allow_http)
    msg = f"expected at most {MAX_REDIRECTS} redirects; {parsed.host} would be one more"
    raise UpstreamError(msg)


class _Deadline(Deadline):
    """A deadline that raises TimeoutError once it has passed."""

    def left(self, at_most: float = inf) -> float:
        """Return the remaining seconds, at most ``at_most``.

        Raises:
            TimeoutError: the deadline has passed.
        """
        if not (left := super().left(at_most)):
            raise TimeoutError
        return left


class _BoundedSocket(io.RawIOBase):
    """A socket that limits the time and the number of bytes received.

    Both limits apply below http.client, which has none of its own. It reads headers in any number
    of pieces, skips any number of interim answers and trailers, and accepts a negative length.
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
        """Return the file object that ``http.client.HTTPResponse`` requires of a socket."""
        return io.BufferedReader(self)


def _parse(url: str, *, allow_http: bool) -> PublicUrl:
    try:
        return public_urls.parse(url, allow_http=allow_http)
    except ValueError as error:
        raise RefusedUrlError(str(error)) from None


def _redirect_target(parsed: PublicUrl, location: str | None, *, allow_http: bool) -> PublicUrl:
    if not location:
        msg = f"{parsed.host} answered with a redirect that leads nowhere"
        raise UpstreamError(msg)
    # http.client decodes headers as Latin-1, whatever their real encoding is.
    location = quote(location, safe=string.punctuation, encoding="latin-1")
    with suppress(ValueError):  # invalid brackets: ``parse`` raises a clearer error below
        location = urljoin(str(parsed), location)
    try:
        return public_urls.parse(location, allow_http=allow_http)
    except ValueError as error:
        msg = f"{parsed.host} redirects to a URL that is refused: {error}"
        raise RefusedUrlError(msg) from None


@contextmanager
def _clear_errors(host: str, within: float) -> Iterator[None]:
    """Turn errors of libraries into an ``UpstreamError`` with a clear reason."""
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


def _addresses(parsed: PublicUrl, deadline: _Deadline) -> list[str]:
    """Resolve the host once and return its addresses.

    Raises:
        RefusedUrlError: at least one address is not public.
        UpstreamError: the host does not exist.
    """
    if parsed.is_ip_address:
        found = [parsed.host]
    else:
        found = dns.lookup_addresses(parsed.host, deadline.left(dns.TIMEOUT_SECONDS))
    if not found:
        msg = f"no host is called {parsed.host}; check the spelling"
        raise UpstreamError(msg)
    if not all(map(public_urls.is_public, found)):
        msg = f"expected an address on the public internet; {parsed.host} is not"
        raise RefusedUrlError(msg)
    return found[:MAX_ADDRESSES]


def _open_socket(parsed: PublicUrl, deadline: _Deadline) -> socket.socket:
    """Return a connection to the first address that accepts one."""
    *others, last = _addresses(parsed, deadline)
    share = STEP_SECONDS / (len(others) + 1)
    for address in others:
        try:
            return connect((address, parsed.port), deadline.left(share))
        except OSError:
            continue
    return connect((last, parsed.port), deadline.left(share))


def _open_connection(parsed: PublicUrl, deadline: _Deadline) -> socket.socket:
    """Return a connection to a checked address. With TLS, the certificate must match the URL."""
    sock = _open_socket(parsed, deadline)
    if parsed.scheme == "http":
        return sock
    try:
        sock.settimeout(deadline.left(STEP_SECONDS))  # for the handshake as a whole
        return _tls().wrap_socket(sock, server_hostname=parsed.host)
    except BaseException:
        sock.close()
        raise


@cache
def _tls() -> ssl.SSLContext:
    import certifi  # noqa: PLC0415  reading the certificates takes 40 ms

    return ssl.create_default_context(cafile=certifi.where())


@contextmanager
def _requested(
    sock: _BoundedSocket, parsed: PublicUrl, headers: Mapping[str, str]
) -> Iterator[http.client.HTTPResponse]:
    """Send the request, yield the response with its headers read, and always close it.

    Without the explicit close, the garbage collector may finalise the response after its socket.
    The response then fails to flush, which Python 3.13 reports as an error.
    """
    # public_urls.parse guarantees that host and target are ASCII without spaces and line breaks.
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = (
        f"GET {parsed.target} HTTP/1.1\r\n"
        f"Host: {parsed.authority}\r\n"
        f"User-Agent: {USER_AGENT} (+{settings().public_url})\r\n"
        f"{lines}"
        "Accept-Encoding: gzip\r\n"
        "Connection: close\r\n"
        "\r\n"
    )
    sock.send(request.encode("ascii"))
    with http.client.HTTPResponse(sock) as response:  # type: ignore[arg-type] # uses makefile only
        response.begin()
        yield response


def _body(response: http.client.HTTPResponse, host: str, max_bytes: int) -> bytes:
    """Return the decompressed body. The size limit applies while it is decompressed."""
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
