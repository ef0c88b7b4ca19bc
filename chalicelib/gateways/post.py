"""POST requests to URLs that users provide, protected against server-side request forgery.

The connection is one that ``gateways.public_http`` has checked. Redirects are not followed, and any
status is a reply. With ``WEBHOOKS_TO_LOOPBACK``, a developer's receiver on this machine can be
reached too.
"""

import http.client
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from chalicelib.core import deadline
from chalicelib.core.settings import settings
from chalicelib.gateways.public_http import (
    BoundedSocket,
    FetchError,
    RefusedUrlError,
    StrictDeadline,
    clear_errors,
    open_connection,
    open_socket,
    requested,
)
from chalicelib.gateways.retry_after import retry_after_seconds
from chalicelib.lib import public_urls
from chalicelib.lib.public_urls import PublicUrl

TOTAL_SECONDS = 15.0  # from the call to the last byte of the reply
MAX_READ = 2**16  # bytes of a reply that are read, with its headers
MAX_KEPT = 2**10  # bytes of the body that a reply keeps

_CHUNK = 2**13


class PostReply(NamedTuple):
    """The response of a server, with the beginning of its body."""

    status: int
    body: bytes
    retry_after: int | None  # requested seconds, at most 24 hours
    milliseconds: int


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float = TOTAL_SECONDS
) -> PostReply:
    """POST a body to a URL that a user provided, without cookies, credentials and proxies.

    Thread-safe. There are no retries, but if a connection fails, the next address of the host is
    tried. The reply depends only on the status line and the headers: of a body that is too long,
    too slow or broken, it has the part that was received. ``headers`` are ASCII without line breaks
    and include the Content-Type. ``timeout_seconds`` is for everything, from the DNS look-up to the
    last byte.

    Raises:
        RefusedUrlError: malformed, or not on the public internet.
        TooLargeError: the headers of the response are longer than ``MAX_READ``.
        UpstreamError: no status and headers in time, or no valid ones.
    """
    begun, limit = deadline.monotonic(), StrictDeadline(timeout_seconds)
    parsed = parse_url(url)
    request_headers = {"Accept-Encoding": "identity", **headers, "Content-Length": str(len(body))}
    with (
        clear_errors(parsed.host, timeout_seconds, step=timeout_seconds),
        _connect(parsed, limit) as sock,
        requested(
            "POST",
            parsed,
            request_headers,
            BoundedSocket(sock, limit, MAX_READ, step=timeout_seconds),
            body,
        ) as response,
    ):
        return PostReply(
            status=response.status,
            body=_beginning_of_body(response),
            retry_after=retry_after_seconds(response.headers.get("Retry-After")),
            milliseconds=round((deadline.monotonic() - begun) * 1000),
        )


def parse_url(url: str) -> PublicUrl:
    """Return the parts of a URL that ``post`` accepts, or raise RefusedUrlError.

    Its addresses are checked at each request.
    """
    if settings().webhooks_to_loopback and (local := public_urls.parse_loopback(url)):
        return local
    try:
        parsed = public_urls.parse(url)
    except ValueError as error:
        raise RefusedUrlError(str(error), key="invalid_url") from None
    if _is_own(parsed.host):
        raise RefusedUrlError(
            "expected a URL of another service, not of this service", key="own_url"
        )
    return parsed


def _is_own(host: str) -> bool:
    current = settings()
    own_hosts = {urlsplit(url).hostname for url in (current.public_url, current.chat_url)}
    sites = current.sites_domain
    return host in own_hosts or bool(sites and f".{host}".endswith(f".{sites}"))


def _connect(parsed: PublicUrl, limit: StrictDeadline) -> socket.socket:
    if parsed.scheme == "http":  # ``parse_url`` allows http only to this machine.
        return open_socket([parsed.host], parsed.port, limit)
    return open_connection(parsed, limit)


def _beginning_of_body(response: http.client.HTTPResponse) -> bytes:
    beginning = b""
    with suppress(FetchError, OSError, http.client.HTTPException, ValueError):
        # Reading up to ``MAX_READ`` lets the server finish.
        while chunk := response.read1(_CHUNK):
            beginning += chunk[: MAX_KEPT - len(beginning)]
    return beginning
