"""Connections to hosts on the public internet, protected against server-side request forgery.

A host is resolved once. All of its IP addresses must be public, and the connection uses one of the
checked addresses, so a second DNS response cannot redirect it to an internal host.
"""

import gzip
import http.client
import io
import socket
import ssl
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Literal

from chalicelib import USER_AGENT
from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways import dns
from chalicelib.lib import public_urls
from chalicelib.lib.public_urls import PublicUrl

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STEP_SECONDS = 5.0  # to connect (all addresses together) and for the TLS handshake
MAX_ADDRESSES = 3  # of a host that are tried


class FetchError(Exception):
    """A request for a URL that a user provided has failed.

    ``reason`` is a clause for that user: what was expected and what was received. It never contains
    an IP address that a host resolved to. ``key`` is the kind of the failure, such as ``too_slow``.
    """

    def __init__(self, reason: str, *, key: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key


class RefusedUrlError(FetchError):
    """The URL, or one that it redirects to, may not be requested: an error of the caller (400)."""


class TooLargeError(FetchError):
    """The response is larger than allowed (413)."""


class UpstreamError(FetchError):
    """The server cannot be reached, is too slow, or sends an unexpected response (502)."""


# Opens a connection to a checked IP address and port within some seconds. Raises OSError. Tests
# replace it.
connect: Callable[[tuple[str, int], float], socket.socket] = socket.create_connection


class Hosts:
    """Results of connecting to hosts, shared by the threads of one import or batch.

    If a host does not exist or accepts no connection, only one thread tries to connect. The others
    wait, and raise the same error. HTTP errors of a host do not count as failures here.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._states: defaultdict[tuple[str, int], _HostState] = defaultdict(_HostState)

    def connect(self, parsed: PublicUrl, deadline: "StrictDeadline") -> socket.socket:
        """Return a connection to a checked address, with TLS if the URL is https."""
        with self._lock:
            state = self._states[parsed.host, parsed.port]
        with state.lock:
            if state.failure is not None:
                raise state.failure
            if not state.reachable:
                try:
                    connection = open_connection(parsed, deadline)
                except Exception as failure:
                    state.failure = failure
                    raise
                state.reachable = True
                return connection
        return open_connection(parsed, deadline)


class _HostState:
    def __init__(self) -> None:
        self.lock = Lock()
        self.reachable = False
        self.failure: Exception | None = None


class StrictDeadline(Deadline):
    """A deadline that raises TimeoutError once it has passed."""

    def seconds_left(self, at_most: float = inf) -> float:
        if not (seconds := super().seconds_left(at_most)):
            raise TimeoutError
        return seconds


class BoundedSocket(io.RawIOBase):
    """A socket that limits the time and the number of bytes received.

    Both limits apply below http.client, which has no limits of its own: it reads headers in any
    number of pieces, skips any number of interim responses and trailers, and accepts a negative
    length.
    """

    def __init__(
        self,
        sock: socket.socket,
        deadline: StrictDeadline,
        max_bytes: int,
        *,
        overhead: int = 0,  # bytes in addition to ``max_bytes``, which errors name
        step: float,  # seconds of each read and of sending the request
    ) -> None:
        self._sock = sock
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._left = max_bytes + overhead
        self._step = step

    def readable(self) -> Literal[True]:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._sock.settimeout(self._deadline.seconds_left(self._step))
        count = self._sock.recv_into(buffer)
        self._left -= count
        if self._left < 0:
            raise too_large(self._max_bytes)
        return count

    def send(self, data: bytes) -> None:
        self._sock.settimeout(self._deadline.seconds_left(self._step))
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)  # which http.client requires


@contextmanager
def clear_errors(host: str, timeout_seconds: float, *, step: float) -> Iterator[None]:
    """Turn errors of libraries into an ``UpstreamError`` with a clear reason.

    ``timeout_seconds`` and ``step`` are the limits in seconds for the whole and for each read.
    """
    try:
        yield
    except dns.DnsUnavailableError:
        msg = f"the DNS servers did not answer for {host}; try again later"
        raise UpstreamError(msg, key="dns_unavailable") from None
    except TimeoutError:
        msg = (
            f"{host} was too slow: expected a response within {step:g} seconds, complete within "
            f"{timeout_seconds:g}"
        )
        raise UpstreamError(msg, key="too_slow") from None
    except ssl.SSLCertVerificationError:
        msg = f"{host} has no valid certificate: it is expired, self-signed or for another host"
        raise UpstreamError(msg, key="invalid_certificate") from None
    except ssl.SSLError:
        msg = f"{host} does not support HTTPS with TLS 1.2 or newer"
        raise UpstreamError(msg, key="no_tls") from None
    except (http.client.HTTPException, gzip.BadGzipFile, zlib.error, EOFError, ValueError):
        msg = f"{host} sent a malformed or incomplete HTTP response"
        raise UpstreamError(msg, key="malformed_response") from None
    except OSError:
        msg = f"{host} refused or closed the connection"
        raise UpstreamError(msg, key="connection_closed") from None


def _addresses(parsed: PublicUrl, deadline: StrictDeadline) -> list[str]:
    if parsed.is_ip_address:
        addresses = [parsed.host]
    else:
        addresses = dns.lookup_addresses(parsed.host, deadline.seconds_left(dns.TIMEOUT_SECONDS))
    if not addresses:
        msg = f"the host {parsed.host} does not exist; check the spelling"
        raise UpstreamError(msg, key="unknown_host")
    # One private address is enough to refuse the host, because the connection may use any address.
    if not all(map(public_urls.is_public, addresses)):
        msg = f"expected a host on the public internet, received {parsed.host}"
        raise RefusedUrlError(msg, key="not_public")
    return addresses[:MAX_ADDRESSES]


def open_socket(addresses: Sequence[str], port: int, deadline: StrictDeadline) -> socket.socket:
    """Return a connection to the first address that accepts one."""
    # The last address gets its error raised, so that the caller learns why no connection was made.
    *others, last = addresses
    share = STEP_SECONDS / (len(others) + 1)
    for address in others:
        try:
            return connect((address, port), deadline.seconds_left(share))
        except OSError:
            continue
    return connect((last, port), deadline.seconds_left(share))


def open_connection(parsed: PublicUrl, deadline: StrictDeadline) -> socket.socket:
    """Return a connection to a checked address. With TLS, the certificate must match the URL."""
    sock = open_socket(_addresses(parsed, deadline), parsed.port, deadline)
    if parsed.scheme == "http":
        return sock
    try:
        sock.settimeout(deadline.seconds_left(STEP_SECONDS))  # for the handshake as a whole
        return _tls().wrap_socket(sock, server_hostname=parsed.host)
    except BaseException:
        # A failed handshake must not leave the connection open until garbage collection.
        sock.close()
        raise


@cache
def _tls() -> ssl.SSLContext:
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


@contextmanager
def requested(
    method: str,
    parsed: PublicUrl,
    headers: Mapping[str, str],
    sock: BoundedSocket,
    body: bytes = b"",
) -> Iterator[http.client.HTTPResponse]:
    """Send a request, yield the response with its headers read, and always close it.

    Names and values of ``headers`` must be ASCII without line breaks.
    """
    # public_urls.parse guarantees that host and target are ASCII without spaces and line breaks.
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = (
        f"{method} {parsed.target} HTTP/1.1\r\n"
        f"Host: {parsed.authority}\r\n"
        f"User-Agent: {USER_AGENT} (+{settings().public_url})\r\n"
        f"{lines}"
        "Connection: close\r\n"
        "\r\n"
    )
    sock.send(request.encode("ascii") + body)
    # Without the explicit close, the garbage collector may finalise the response after its socket.
    # The response then fails to flush, which Python 3.13 reports as an error.
    with http.client.HTTPResponse(sock) as response:  # type: ignore[arg-type] # uses makefile only
        response.begin()
        yield response


def too_large(max_bytes: int) -> TooLargeError:
    """Return the error for a response of more than ``max_bytes``."""
    return TooLargeError(
        f"expected at most {max_bytes / 2**20:g} MB, received more", key="too_large"
    )
