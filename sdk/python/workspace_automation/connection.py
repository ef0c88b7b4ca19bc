"""Connections that repeat a request as long as a repetition can help and cannot do harm."""

import asyncio
import random
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import httpx

from .client import AuthenticatedClient
from .models import Failure, FailureData
from .routes import ARE_REPEATABLE, TAKE_KEY, VERSION

LONGEST_WAIT = 60.0  # Seconds. A longer Retry-After is left to the caller.
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
_KEY = "Idempotency-Key"
_TAKE_KEY = re.compile(rf".*(?:{TAKE_KEY})")
_ARE_REPEATABLE = re.compile(rf".*(?:{ARE_REPEATABLE})")

T_co = TypeVar("T_co", covariant=True)


class ApiError(Exception):
    """The service refused a call or failed. Compare ``code``; the message is for readers.

    ``code`` is empty if something in between responded. ``key`` says why, if the code has several
    reasons.
    """

    def __init__(self, failure: FailureData) -> None:
        super().__init__(failure.message)
        self.code = failure.code
        self.key: str | None = failure.key or None
        self.request_id = failure.request_id
        self.data = failure


class _Success(Protocol[T_co]):
    @property
    def data(self) -> T_co: ...


def data(response: "_Success[T_co] | Failure | None") -> T_co:
    """Return the data of a response, or raise ApiError."""
    if isinstance(response, Failure):
        raise ApiError(response.data)
    if response is None:
        raise RuntimeError("The response has a status that the service does not document.")
    return response.data


def connect(
    base_url: str,
    *,
    api_key: str = "",
    timeout: float = 60.0,
    max_retries: int = 2,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> AuthenticatedClient:
    """Return a client for the functions of ``workspace_automation.api``.

    ``timeout`` is in seconds, and ``max_retries`` the attempts after the first one. Further
    options are those of ``httpx.Client`` and ``httpx.AsyncClient``.
    """
    return _Client(
        base_url=base_url,
        token=api_key,
        headers=dict(headers or {}),
        timeout=httpx.Timeout(timeout),
        raise_on_unexpected_status=True,
        httpx_args={"max_retries": max_retries, **options},
    )


class _Client(AuthenticatedClient):
    """The generated client, with connections that repeat requests and no secret in its text."""

    _loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<client of {self._base_url}>"

    def get_httpx_client(self) -> httpx.Client:
        if self._client is None:
            self._client = _Connection(**self._settings)
        return self._client

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        # Each ``asyncio.run`` has a loop of its own, and connections of an ended one are dead.
        if self._async_client is None or (self._loop and self._loop.is_closed()):
            self._async_client = _AsyncConnection(**self._settings)
            self._loop = _running_loop()
        return self._async_client

    @property
    def _settings(self) -> dict[str, Any]:
        headers = {"User-Agent": f"workspace-automation-python/{VERSION}", **self._headers}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        settings = {"base_url": self._base_url, "headers": headers, "timeout": self._timeout}
        return {**settings, "cookies": self._cookies, **self._httpx_args}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Connection(httpx.Client):
    def __init__(self, max_retries: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.max_retries = max_retries

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        _add_key(request)
        for attempt in count():
            is_last = attempt >= self.max_retries
            try:
                response = super().send(request, **options)
                if response.is_error:
                    response.read()
                wait = _pause(request, response, attempt)
                if wait is None or is_last:
                    return _from_the_service(response)
            except httpx.TransportError:
                if is_last or not _is_repeatable(request):
                    raise
                wait = _growing(attempt)
            time.sleep(wait)
        raise AssertionError  # The last attempt has returned or raised.


class _AsyncConnection(httpx.AsyncClient):
    def __init__(self, max_retries: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.max_retries = max_retries

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        _add_key(request)
        for attempt in count():
            is_last = attempt >= self.max_retries
            try:
                response = await super().send(request, **options)
                if response.is_error:
                    await response.aread()
                wait = _pause(request, response, attempt)
                if wait is None or is_last:
                    return _from_the_service(response)
            except httpx.TransportError:
                if is_last or not _is_repeatable(request):
                    raise
                wait = _growing(attempt)
            await asyncio.sleep(wait)
        raise AssertionError  # The last attempt has returned or raised.


def _add_key(request: httpx.Request) -> None:
    # Each attempt has the same key, so the service carries the call out once.
    if _takes_key(request) and _KEY not in request.headers:
        request.headers[_KEY] = str(uuid4())


def _takes_key(request: httpx.Request) -> bool:
    return request.method == "POST" and _TAKE_KEY.fullmatch(request.url.path) is not None


def _is_repeatable(request: httpx.Request) -> bool:
    # Whether a second execution has the effect of one.
    return request.method != "POST" or _ARE_REPEATABLE.fullmatch(request.url.path) is not None


def _growing(attempt: int) -> float:
    return min(FIRST_PAUSE * 2.0**attempt, LONGEST_PAUSE) * random.uniform(0.75, 1)


def _pause(request: httpx.Request, response: httpx.Response, attempt: int) -> float | None:
    """Return the seconds until the next attempt, or None if there should be none."""
    if not _helps(request, response):
        return None
    asked = _asked_pause(response.headers)
    if asked < 0:
        return _growing(attempt)
    return asked + random.uniform(0, 0.25) if asked <= LONGEST_WAIT else None


def _asked_pause(headers: httpx.Headers) -> float:
    """Return the seconds of ``Retry-After``, or a negative number if there are none.

    Some proxies send a date, which counts from the sender's own clock.
    """
    asked = headers.get("Retry-After", "")
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", asked):
        return float(asked)
    try:
        until = parsedate_to_datetime(asked)
        return (until - parsedate_to_datetime(headers["Date"])).total_seconds()
    except (ValueError, TypeError, KeyError):
        return -1


def _helps(request: httpx.Request, response: httpx.Response) -> bool:
    match response.status_code, _code(response):
        case 429, "rate_limited" | "":  # It was not executed.
            return True
        case 409, "in_progress":  # The first attempt is still running.
            return True
        case status, code:
            has_failed = status >= httpx.codes.INTERNAL_SERVER_ERROR or (
                status == httpx.codes.REQUEST_TIMEOUT
            )
            return has_failed and code != "not_configured" and _is_repeatable(request)


def _from_the_service(response: httpx.Response) -> httpx.Response:
    """Return the response, or raise ApiError for the error page of something in between."""
    if response.is_error and not _code(response):
        message = f"The response has the status {response.status_code}."
        request_id = response.headers.get("X-Request-Id", "")
        raise ApiError(FailureData(status=False, message=message, code="", request_id=request_id))
    return response


def _code(response: httpx.Response) -> str:
    if not response.is_error:
        return ""
    try:
        return str(response.json()["data"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""  # A proxy has responded.
