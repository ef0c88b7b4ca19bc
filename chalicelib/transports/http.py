"""HTTP requests, responses and their common rules, without a framework."""

import hashlib
import logging
import re
import string
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from pydantic_core import from_json

from chalicelib import PRODUCT
from chalicelib.core import deadline, idempotency_keys
from chalicelib.core.errors import (
    AppError,
    InternalError,
    PayloadTooLargeError,
    UnsupportedMediaTypeError,
    ValidationError,
    envelope,
    log_fields,
)

# Largest request body in bytes. Lambda accepts 6 MB, base64 encoding included.
MAX_BODY_BYTES = 5_000_000
# Largest body that a visitor may send, in bytes: a form or a booking.
MAX_PUBLIC_BODY_BYTES = 32_768
# Header with the token of the console's forms, in requests that a page's script sends.
CSRF_HEADER = "x-csrf-token"
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"
HTML_TYPE = "text/html; charset=utf-8"
# For responses that all callers share. An edit is visible within a minute.
CACHED = "public, max-age=60"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HttpRequest:
    """A request.

    >>> HttpRequest("GET", "/", {"cookie": "a=1; b=2"}).cookies
    {'a': '1', 'b': '2'}
    """

    method: str
    route: str
    headers: Mapping[str, str]  # lower-case names
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)  # with repetitions
    path: Mapping[str, str] = field(default_factory=dict)  # decoded
    body: bytes = b""
    client_ip: str = ""
    has_trailing_slash: bool = False  # The path ends with a slash, which routes ignore.
    language: str = ""  # chosen by the reader; without it, ``Accept-Language`` decides
    request_id: str = field(default_factory=lambda: str(uuid4()))

    @property
    def idempotency_key(self) -> str | None:
        return self.headers.get(idempotency_keys.HEADER.lower())

    @property
    def cookies(self) -> dict[str, str]:
        # The first of a name wins, because it is the most specific one (RFC 6265, 5.4).
        # A cookie of a parent domain with the same name would otherwise replace the host's own.
        cookies: dict[str, str] = {}
        for pair in self.headers.get("cookie", "").split(";"):
            name, equals, value = pair.partition("=")
            if equals:
                cookies.setdefault(name.strip(), value.strip())
        return cookies


class HttpResponse(NamedTuple):
    """A response.

    Without caching headers, no cache may store it (``handle``).

    >>> HttpResponse(200, b"{}", {"Content-Type": JSON_TYPE}).whole_body()
    b'{}'
    """

    status: int
    # A stream is sent piece by piece if the server can do that. API Gateway buffers it.
    body: bytes | Iterator[bytes]
    headers: Mapping[str, str] = MappingProxyType({})
    # Fields of the request's log line besides method, route and status.
    log: Mapping[str, Any] = MappingProxyType({})
    cookies: Sequence[str] = ()  # Values of ``Set-Cookie`` headers, as ``set_cookie`` makes them.

    # Both methods run for every response. ``_replace`` takes several times as long.
    def with_log_fields(self, **fields: object) -> "HttpResponse":
        log_fields = {**self.log, **fields}
        return HttpResponse(self.status, self.body, self.headers, log_fields, self.cookies)

    def with_headers(self, headers: Mapping[str, str]) -> "HttpResponse":
        """Return the response with these headers instead of its own."""
        return HttpResponse(self.status, self.body, headers, self.log, self.cookies)

    def whole_body(self) -> bytes:
        """Return the body, reading a stream to its end."""
        if isinstance(self.body, bytes):
            return self.body
        try:
            return b"".join(self.body)
        finally:
            self.close()

    def close(self) -> None:
        """Close a stream, whether it was read to its end or not, as when a client disconnects."""
        close = getattr(self.body, "close", None)
        if close is not None:
            close()


def redirect(location: str, cookies: Sequence[str] = ()) -> HttpResponse:
    """Return a redirect that clients follow with GET, whatever the request's method was.

    >>> redirect("/console?done=saved").headers["Location"]
    '/console?done=saved'
    """
    # The path may have a user's characters, and a header is ASCII.
    headers = {"Location": quote(location, safe=_SAFE_IN_LOCATION)}
    return HttpResponse(303, b"", headers, cookies=cookies)


# Characters that are not escaped. Line breaks are: one would begin another header.
_SAFE_IN_LOCATION = string.punctuation


def set_cookie(name: str, *, value: str, max_age: int) -> str:
    """Return the ``Set-Cookie`` value of a cookie that scripts cannot read; age 0 deletes it.

    Browsers return it on every path, and only over TLS (or to their own machine). Requests from
    other sites carry it only when a visitor follows a link. It can therefore be named ``__Host-…``,
    and no other host can set it (RFC 6265bis, 4.1.3). Raises ValueError for characters that a
    cookie cannot have (RFC 6265, 4.1.1).
    """
    # A semicolon in a value would add attributes, and a line break another header.
    if not _COOKIE.fullmatch(f"{name}={value}"):
        raise ValueError("a cookie has letters, digits and a few signs; encode the rest")
    return f"{name}={value}; Max-Age={max_age}; Path=/; Secure; HttpOnly; SameSite=Lax"


_COOKIE = re.compile(r"[\w!#$%&'*+.^`|~-]+=[!#-+\--:<-\[\]-~]*", re.ASCII)


def etag(body: bytes, *, strong: bool = False) -> str:
    """Return the entity tag of a body, ``strong`` only for one that is never compressed."""
    # Tags are weak, because the gateway and the edge may compress the body. Ranges need a strong
    # tag (RFC 9110, 8.8.1).
    return f'{"" if strong else "W/"}"{hashlib.sha256(body).hexdigest()[:32]}"'


def add_vary(headers: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the headers with one more request header in ``Vary``."""
    if "Vary" not in headers:
        return {**headers, "Vary": name}
    names = [name.strip() for name in headers["Vary"].split(",") if name.strip()]
    return {**headers, "Vary": ", ".join(dict.fromkeys([*names, name]))}


def failure(error: AppError, request_id: str, **headers: str) -> HttpResponse:
    """Return the response to a failed request."""
    body = envelope(error, request_id)
    return HttpResponse(
        error.status,
        body,
        {"Content-Type": JSON_TYPE, **headers, **error.headers},
        log_fields(error),
    )


Fail = Callable[[AppError, HttpRequest], HttpResponse]  # Returns the response to a failed request.


def in_envelope(error: AppError, request: HttpRequest) -> HttpResponse:
    """Return the response to a failed request, as all paths but the tool servers have it."""
    return failure(error, request.request_id)


def handle(
    request: HttpRequest, handler: Callable[[HttpRequest], HttpResponse], fail: Fail = in_envelope
) -> HttpResponse:
    """Run a handler, and log one line.

    The response has a request id, and ``fail`` writes failures. If the client already has the
    ``ETag`` of a 200, the response is a 304. Responses without ``Cache-Control`` and ``ETag`` are
    never cached. No browser guesses the type of a response.
    """
    started = time.perf_counter()
    try:
        # API Gateway gives up after 29 seconds, so calls to others must end before that.
        with deadline.within(deadline.REQUEST_SECONDS):
            response = _not_modified(request, handler(request))
    except AppError as error:
        response = fail(error, request)
    except Exception:
        log.exception(
            "a handler crashed", extra={"requestId": request.request_id, "route": request.route}
        )
        response = fail(InternalError(), request)
    log.info(
        "request",
        extra={
            "requestId": request.request_id,
            "method": request.method,
            "route": request.route,
            "status": response.status,
            "ms": round((time.perf_counter() - started) * 1000, 1),
            **response.log,
        },
    )
    headers = {**response.headers, "X-Request-Id": request.request_id}
    if (
        "Content-Type" in headers
    ):  # JSON may quote callers, and must not be shown as a page of this host.
        headers["X-Content-Type-Options"] = "nosniff"
    if isinstance(response.body, bytes):  # the gateway and the edge compress these
        headers = add_vary(headers, "Accept-Encoding")
    if headers.keys().isdisjoint({"Cache-Control", "ETag"}):
        headers["Cache-Control"] = "no-store"
    return response.with_headers(headers)


def _not_modified(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    # If ``If-None-Match`` has the response's tag, weak or not (RFC 9110, 13.1.2).
    requested = request.headers.get("if-none-match", "")
    tag = response.headers.get("ETag", "").removeprefix("W/")
    if (
        not tag
        or response.status not in {HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT}
        or request.method not in {"GET", "HEAD"}
        or (requested.strip() != "*" and tag not in _ENTITY_TAG.findall(requested))
    ):
        return response
    response.close()
    headers = {name: value for name, value in response.headers.items() if name != "Content-Type"}
    return response._replace(status=304, body=b"", headers=headers)


_ENTITY_TAG = re.compile(r'"[^"]*"')


def check_sender(request: HttpRequest) -> None:
    """Raise ValidationError for requests that this service sends, as webhooks to its own forms."""
    # The event of such a request would cause the next one. The check does not depend on the host:
    # the service may be reached by names that it does not know.
    if request.headers.get("user-agent", "").startswith(f"{PRODUCT}/"):
        msg = (
            "User-Agent: expected another caller than this service. A webhook cannot call the "
            "service that sent it."
        )
        raise ValidationError(msg, key="own_caller")


def check_body(
    request: HttpRequest,
    *others: str,
    limit: int = MAX_BODY_BYTES,
    if_too_large: str | None = None,
) -> None:
    """Refuse bodies that are too large or not JSON, before any other check.

    ``others`` are further accepted content types; a missing type counts as JSON. ``if_too_large``
    is advice for the error.

    Raises:
        PayloadTooLargeError: the body has more than ``limit`` bytes.
        UnsupportedMediaTypeError: the content type is another one.
    """
    check_size(request, limit, if_too_large)
    # A compressed body of a few kilobytes could become gigabytes, so no body is decompressed.
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if request.body and coding != "identity":
        msg = (
            f'The body has the Content-Encoding "{coding[:80]}", which is not supported. Send '
            "the body without Content-Encoding."
        )
        raise UnsupportedMediaTypeError(msg, key="content_encoding")
    kind = media_type(request)
    if (
        request.body
        and kind not in {JSON_TYPE, *others}
        and not (kind.startswith("application/") and kind.endswith("+json"))
    ):
        accepted = [JSON_TYPE, *others]
        msg = f'Content-Type: expected {" or ".join(accepted)}, received "{kind[:80]}".'
        raise UnsupportedMediaTypeError(msg, key="content_type")


def media_type(request: HttpRequest) -> str:
    """Return the content type of a request without parameters. A missing type counts as JSON."""
    return request.headers.get("content-type", JSON_TYPE).partition(";")[0].strip().lower()


def prefers_html(request: HttpRequest) -> bool:
    """Whether the client prefers a page, as browsers do that follow a link or send a form."""
    # A client that accepts both, as many scripts do, gets JSON.
    accepted = {
        part.partition(";")[0].strip().lower()
        for part in request.headers.get("accept", "").split(",")
    }
    return "text/html" in accepted and JSON_TYPE not in accepted


def check_size(
    request: HttpRequest, limit: int = MAX_BODY_BYTES, if_too_large: str | None = None
) -> None:
    """Raise PayloadTooLargeError for a body of more than ``limit`` bytes."""
    if len(request.body) > limit:
        raise body_too_large(len(request.body), limit=limit, advice=if_too_large)


def body_too_large(
    size: int, *, limit: int = MAX_BODY_BYTES, advice: str | None = None
) -> PayloadTooLargeError:
    """Return the error for a body over the limit, with advice to the caller."""
    advice = advice or "Send less data in one call."
    return PayloadTooLargeError(
        f"The body has {size:,} bytes, but the maximum is {limit:,}. {advice}", key="body"
    )


# Matches any number too large for a float. Bodies without a match need no further check.
_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?0*[0-9]{2}|[0-9]{200}")


def parse_json(body: bytes) -> Any:  # noqa: ANN401  any JSON value
    """Parse JSON, after a byte order mark if there is one (RFC 8259, 8.1).

    Raises:
        ValueError: the JSON is malformed, or not supported (``json_faults``). Its text continues a
            sentence that begins with "The body".
    """
    try:
        value = from_json(body.removeprefix(BOM_UTF8), allow_inf_nan=False)
    except ValueError as error:
        from chalicelib.transports.json_faults import fault_of

        raise ValueError(fault_of(body.removeprefix(BOM_UTF8), error)) from None
    if _MAY_OVERFLOW.search(body) and not _finite(value):
        msg = "contains a number above 1.8e308; send a smaller number, or a string"
        raise ValueError(msg)
    return value


def _finite(value: object) -> bool:
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(_finite, value.values()))
        case list():
            return all(map(_finite, value))
        case _:
            return True


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object, ``{}`` from an empty body, or raise ValidationError."""
    if not body.strip():
        return {}
    try:
        value = parse_json(body)
    except ValueError as error:
        msg = f"The body {error}."
        raise ValidationError(msg, key="malformed_body") from None
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else "not an object or an array"
        msg = f"The body must be a JSON object, such as {{}}; it is {what}."
        raise ValidationError(msg, key="malformed_body")
    return value
