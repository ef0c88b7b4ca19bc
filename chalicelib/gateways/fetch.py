"""Downloads from URLs that users provide, protected against server-side request forgery.

``gateways.public_http`` checks each connection, also after a redirect.
"""

import gzip
import http.client
import io
import re
import string
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from typing import NamedTuple, Self
from urllib.parse import quote, urljoin

from chalicelib.gateways.public_http import (
    BoundedSocket,
    Hosts,
    RefusedUrlError,
    StrictDeadline,
    UpstreamError,
    clear_errors,
    requested,
    too_large,
)
from chalicelib.lib import public_urls
from chalicelib.lib.public_urls import PublicUrl

_SENDABLE = re.compile("[ -~]{1,500}")  # Visible ASCII may be sent back in headers.


class Validators(NamedTuple):
    """Headers by which a later request finds out whether a body has changed (RFC 9110, 13)."""

    url: str
    etag: str = ""
    last_modified: str = ""

    @classmethod
    def from_headers(cls, url: str, headers: Message) -> Self:
        """Return the validators of a response, without values that cannot be sent back."""
        values = (str(headers.get(name, "")).strip() for name in ("ETag", "Last-Modified"))
        return cls(url, *(value if _SENDABLE.fullmatch(value) else "" for value in values))

    @property
    def conditions(self) -> dict[str, str]:
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


MAX_BYTES = 10 * 2**20  # both compressed and decompressed
TOTAL_SECONDS = 15.0  # from the call to the last byte, redirects included
STEP_SECONDS = 5.0  # for each read
MAX_REDIRECTS = 3

_OVERHEAD = 2**20  # bytes for headers and for the framing of chunks
_CHUNK = 2**16
_MAX_AGE = re.compile(r'max-age="?([0-9]{1,9})"?', re.ASCII)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Fetched(NamedTuple):
    """A downloaded body."""

    url: str  # after redirects
    content_type: str  # As declared, with parameters, or empty. The content may be of another type.
    body: bytes
    validators: Validators
    unchanged: bool = False  # The server answered that nothing has changed. The body is empty.
    fresh_for: int = 0  # seconds for which a cache may use it (``max-age``)


def fetch(  # noqa: PLR0913  all of them are options of one request
    url: str,
    *,
    allow_http: bool = False,
    max_bytes: int = MAX_BYTES,
    timeout_seconds: float = TOTAL_SECONDS,
    accept: str = "*/*",
    redirects: int = MAX_REDIRECTS,
    hosts: Hosts | None = None,
    validators: Validators | None = None,
) -> Fetched:
    """GET a public URL that a user provided, without cookies, credentials, proxies and .netrc.

    Thread-safe. There are no retries, but if a connection fails, the next address of the host is
    tried.

    Args:
        url: a URL that ``public_urls.parse`` accepts.
        allow_http: whether http is allowed, also in redirects.
        max_bytes: largest body, decompressed.
        timeout_seconds: for everything, from the DNS look-up to the last byte.
        accept: value of the Accept header.
        redirects: how many redirects are followed.
        hosts: results of earlier connections in the same import or batch.
        validators: those of an earlier response, whose body may be unchanged.

    Raises:
        RefusedUrlError: malformed, or not on the public internet, or redirected to such a URL.
        TooLargeError: more than ``max_bytes``.
        UpstreamError: no response in time, too many redirects, a status other than 2xx, ….
    """
    deadline, hosts = StrictDeadline(timeout_seconds), hosts or Hosts()
    parsed = _parse(url, allow_http=allow_http)
    # The values of another URL could report that a body is unchanged which was never downloaded.
    for _ in range(1 + redirects):
        stored_validators = validators if validators and validators.url == str(parsed) else None
        headers = {
            "Accept": accept,
            **(stored_validators.conditions if stored_validators else {}),
            "Accept-Encoding": "gzip",
        }
        with (
            clear_errors(parsed.host, timeout_seconds, step=STEP_SECONDS),
            hosts.connect(parsed, deadline) as sock,
            requested(
                "GET",
                parsed,
                headers,
                BoundedSocket(sock, deadline, max_bytes, overhead=_OVERHEAD, step=STEP_SECONDS),
            ) as response,
        ):
            if stored_validators and response.status == HTTPStatus.NOT_MODIFIED:
                return Fetched(str(parsed), "", b"", stored_validators, unchanged=True)
            if response.status not in _REDIRECTS:
                body = _body(response, parsed.host, max_bytes)
                content_type = response.headers.get("Content-Type", "")
                return Fetched(
                    str(parsed),
                    content_type,
                    body,
                    Validators.from_headers(str(parsed), response.headers),
                    fresh_for=fresh_seconds(response.headers.get("Cache-Control", "")),
                )
        parsed = _redirect_target(parsed, response.headers.get("Location"), allow_http=allow_http)
    msg = f"expected at most {redirects} redirects; {parsed.host} would be one more"
    raise UpstreamError(msg, key="too_many_redirects")


def fresh_seconds(cache_control: str) -> int:
    """Return the seconds of ``max-age`` in ``Cache-Control``, 0 if a body must not be stored."""
    directives = [directive.strip().lower() for directive in cache_control.split(",")]
    if "no-store" in directives or "no-cache" in directives:
        # Both directives allow a cached body only after another request (RFC 9111, 5.2.2).
        return 0
    matches = [_MAX_AGE.fullmatch(directive) for directive in directives]
    return next((int(match[1]) for match in matches if match), 0)


def _parse(url: str, *, allow_http: bool) -> PublicUrl:
    try:
        return public_urls.parse(url, allow_http=allow_http)
    except ValueError as error:
        raise RefusedUrlError(str(error), key="invalid_url") from None


def _redirect_target(parsed: PublicUrl, location: str | None, *, allow_http: bool) -> PublicUrl:
    if not location:
        msg = f"{parsed.host} sent a redirect without a URL"
        raise UpstreamError(msg, key="redirect_without_url")
    # http.client decodes headers as Latin-1, whatever their real encoding is.
    location = quote(location, safe=string.punctuation, encoding="latin-1")
    with suppress(ValueError):  # invalid brackets: ``parse`` raises a clearer error below
        location = urljoin(str(parsed), location)
    try:
        return public_urls.parse(location, allow_http=allow_http)
    except ValueError as error:
        msg = f"{parsed.host} redirects to a URL that is refused: {error}"
        raise RefusedUrlError(msg, key="refused_redirect") from None


def _body(response: http.client.HTTPResponse, host: str, max_bytes: int) -> bytes:
    # The size limit applies while the body is decompressed.
    if not 200 <= response.status <= 299:  # noqa: PLR2004  the statuses of success
        msg = f"expected status 200 from {host}, received {response.status}"
        raise UpstreamError(msg, key="status")
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip", ""}:
        msg = (
            f"expected a response from {host} that is uncompressed or compressed with gzip, "
            "received another compression"
        )
        raise UpstreamError(msg, key="compression")
    # A declared length saves the download of a body that is too large. It may be missing or wrong,
    # so the loop below counts as well.
    if (response.length or 0) > max_bytes:
        raise too_large(max_bytes)
    stream = gzip.GzipFile(fileobj=response) if encoding.endswith("gzip") else response
    body = io.BytesIO()
    # The size is checked while the body grows, because a few kilobytes can decompress to gigabytes.
    while chunk := stream.read(_CHUNK):
        if body.tell() + len(chunk) > max_bytes:
            raise too_large(max_bytes)
        body.write(chunk)
    # The server closed the connection before the declared length, so the body is cut.
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return body.getvalue()
