"""Requests for JSON to configured services, bounded in time and size, with a safe parser.

The operator configures the services, so the proxies and certificates of the environment apply.
Never use this module for URLs from users, which may point to internal hosts: use ``fetch``.
"""

import json
import re
from collections.abc import Container, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from chalicelib import USER_AGENT
from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways.retry_after import retry_after_seconds

MAX_BYTES = 2**20  # Real responses take less than a tenth.
MAX_URL = 2048

_CHUNK = 2**16
_TOO_MANY_REQUESTS = 429


class JsonApiError(Exception):
    """A service did not return a usable response."""

    def __init__(
        self,
        service: str,
        *,
        what: str,
        retry_after: int | None = None,
        is_unsent: bool = False,
    ) -> None:
        super().__init__(f"{service} {what}")
        self.reason = f"{service} {what}"  # a clause that begins with the service's name
        self.retry_after = retry_after  # seconds, if the service sent them
        # The service has certainly not carried out the request.
        self.is_unsent = is_unsent


class JsonResponse(NamedTuple):
    status: int
    body: object


def services(setting: str) -> dict[str, str]:
    """Return the base URLs of ``<name>=<base URL> …`` by name, in order, or raise ValueError."""
    urls = {}
    for entry in setting.split():
        name, _, url = entry.partition("=")
        if not name or not url.startswith(("https://", "http://")):
            msg = f"expected services as <name>=<base URL>, received {entry!r}"
            raise ValueError(msg)
        urls[name] = url.rstrip("/")
    return urls


def get_json(
    service: str,
    *,
    url: str,
    query: Mapping[str, str | int],
    deadline: Deadline,
    statuses: Container[int] = frozenset({200}),
) -> object:
    """GET a URL without a query, and return the JSON of the response. Redirects are not followed.

    ``statuses`` are those of responses whose body is returned. Raises JsonApiError for no response
    in time, another status, more than a megabyte, or no JSON.
    """
    return request_json(
        service,
        method="GET",
        url=url,
        content={"params": dict(query)},
        deadline=deadline,
        statuses=statuses,
    ).body


def post_json(
    service: str,
    *,
    url: str,
    body: Mapping[str, object],
    deadline: Deadline,
    statuses: Container[int] = frozenset({200}),
) -> object:
    """POST a JSON object and return the JSON of the response, like ``get_json``.

    A request without a response in time may have been carried out.
    """
    return request_json(
        service,
        method="POST",
        url=url,
        content={"json": dict(body)},
        deadline=deadline,
        statuses=statuses,
    ).body


def request_json(  # noqa: PLR0913  the parts of a request
    service: str,
    *,
    method: str,
    url: str,
    content: Mapping[str, Any],
    deadline: Deadline,
    statuses: Container[int],
) -> JsonResponse:
    """Send a request, and return the status and the JSON of the response, like ``get_json``.

    ``content`` has arguments of ``requests.request`` such as ``auth``, ``headers`` and ``data``.
    """
    if deadline.passed:
        what = "was not called, because the time limit was reached"
        raise JsonApiError(service, what=what, is_unsent=True)
    response: Future[tuple[int, bytes]] = Future()

    def work() -> None:
        try:
            response.set_result(
                _send(
                    service,
                    method=method,
                    url=url,
                    content=content,
                    deadline=deadline,
                    statuses=statuses,
                )
            )
        except BaseException as error:  # noqa: BLE001  raised again in the calling thread
            response.set_exception(error)

    # Socket timeouts bound neither the DNS look-up nor headers that arrive byte by byte. The limit
    # on waiting for this thread bounds everything.
    Thread(target=work, name=f"{method} {service}", daemon=True).start()
    try:
        status, raw = response.result(deadline.seconds_left())
    except TimeoutError:
        raise _too_slow(service) from None
    try:
        return JsonResponse(status, json.loads(raw))
    except (ValueError, RecursionError):
        # Deeply nested JSON exceeds Python's recursion limit.
        raise JsonApiError(service, what="sent a response that is not JSON") from None


def _too_slow(service: str, *, is_unsent: bool = False) -> JsonApiError:
    return JsonApiError(service, what="did not answer in time", is_unsent=is_unsent)


def _send(  # noqa: PLR0913  the parts of a request
    service: str,
    *,
    method: str,
    url: str,
    content: Mapping[str, Any],
    deadline: Deadline,
    statuses: Container[int],
) -> tuple[int, bytes]:
    import requests
    from urllib3.exceptions import HTTPError, NewConnectionError

    headers = {
        **content.get("headers", {}),
        "User-Agent": f"{USER_AGENT} (+{settings().public_url})",
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # so that MAX_BYTES applies to the body itself
    }
    try:
        with requests.request(
            method,
            url,
            **{**content, "headers": headers},
            timeout=max(deadline.seconds_left(), 0.001),
            # A redirect could lead to a host that the operator has not configured.
            allow_redirects=False,
            stream=True,
        ) as response:
            if response.status_code not in statuses:
                raise _status_error(
                    service, response.status_code, response.headers.get("Retry-After")
                )
            body = bytearray()
            while chunk := response.raw.read1(_CHUNK, decode_content=False):
                body += chunk
                if len(body) > MAX_BYTES:
                    raise JsonApiError(service, what=f"sent more than {MAX_BYTES // 2**20} MB")
                if deadline.passed:
                    raise _too_slow(service)
            return response.status_code, bytes(body)
    except requests.Timeout as error:
        raise _too_slow(service, is_unsent=isinstance(error, requests.ConnectTimeout)) from None
    except requests.ConnectionError as error:
        # The cause of an attempt that has found no server (urllib3).
        cause = getattr(error.args[0] if error.args else None, "reason", None)
        is_unsent = isinstance(cause, NewConnectionError)
        raise JsonApiError(service, what="cannot be reached", is_unsent=is_unsent) from None
    except (requests.RequestException, HTTPError, OSError):
        raise JsonApiError(service, what="cannot be reached") from None


def _status_error(service: str, status: int, retry_after: str | None) -> JsonApiError:
    wait = retry_after_seconds(retry_after)
    if status == _TOO_MANY_REQUESTS:
        what = "has reached its rate limit"
        return JsonApiError(service, what=what, retry_after=wait, is_unsent=True)
    return JsonApiError(service, what=f"answered with status {status}", retry_after=wait)


# White space, control characters, Bidi_Control characters, and surrogates.
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


def text(value: object, limit: int) -> str | None:
    """Return a string on one line with at most ``limit`` characters, or None if it is empty."""
    if not isinstance(value, str):
        return None
    return _UNPRINTABLE.sub(" ", value).strip()[:limit].strip() or None


def link(value: object, *schemes: str) -> str | None:
    """Return the value if it is a URL with a host and one of the schemes (https by default)."""
    if not isinstance(value, str) or len(value) > MAX_URL or _UNPRINTABLE.search(value):
        return None
    try:
        parts = urlsplit(value)
        host = parts.hostname
    except ValueError:
        return None
    is_web_url = parts.scheme in (schemes or ("https",)) and host and "@" not in parts.netloc
    return value if is_web_url else None
