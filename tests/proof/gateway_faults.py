"""The functions of the gateways, the errors that they declare, and how long callers wait.

The tests replace the services behind most gateways by a valid response.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from chalicelib.core import deadline
from chalicelib.core.errors import NotConfiguredError, UnavailableError, UpstreamFailedError
from chalicelib.gateways import (
    barcodes,
    dns,
    fetch,
    isolation,
    llm,
    mail,
    master_key,
    max_messenger,
    object_store,
    photos,
    post,
    public_http,
    site_hosts,
    sms,
    telegram,
)
from chalicelib.gateways.fetch import Validators
from chalicelib.gateways.llm import ModelError
from chalicelib.gateways.llm.demo import DemoModel
from chalicelib.gateways.messenger_errors import BusyError, ChatGoneError, MessengerError
from chalicelib.gateways.sms.folder import Folder
from tests.factories.products import png
from tests.fakes.receiver import OK
from tests.proof.faults import DETAIL, Fault, Proceed, raising

Errors = dict[str, Callable[[], BaseException]]
Limit = Callable[[dict[str, Any]], float]

UNDECLARED: Errors = {
    "OSError": lambda: OSError(5, DETAIL),
    "TimeoutError": lambda: TimeoutError(DETAIL),
}
"""Errors that no gateway declares. A defect of a gateway would raise them."""


@dataclass(frozen=True)
class Gateway:
    """A function that leaves the process.

    ``errors`` are its declared errors. ``longest`` returns the longest wait in seconds, by the
    options of the call. ``stub`` takes its place where the tests have no such service. ``streams``
    is true if it returns an iterator, which may fail before and after its first item.
    """

    owner: Any
    name: str
    errors: Errors
    longest: Limit
    stub: Callable[..., Any] | None = None
    streams: bool = False
    writes_objects: bool = False

    def __str__(self) -> str:
        return f"{self.owner.__name__.removeprefix('chalicelib.gateways.')}.{self.name}"

    def faults(self, args: tuple[Any, ...], options: dict[str, Any]) -> Iterator[Fault]:
        """Yield each fault of a call."""
        del args
        seconds = self.longest(options)
        for name, make in {**self.errors, **UNDECLARED}.items():
            if not self.streams:
                yield raising(name, make, seconds)
            else:
                yield Fault(name, lambda _, make=make: _failing_stream(make), seconds)
                yield Fault(
                    f"{name} after the first item",
                    lambda proceed, make=make: _failing_stream(make, proceed),
                    seconds,
                )


def _failing_stream(
    make: Callable[[], BaseException], proceed: Proceed | None = None
) -> Iterator[Any]:
    if proceed is not None:
        yield next(iter(proceed()))
    raise make()


def _deadline_wait(seconds: float) -> Limit:
    """A wait that ends at the request's deadline."""
    return lambda options: deadline.remaining(options.get("within", seconds))


def _always(seconds: float) -> Limit:
    """A wait without a deadline."""
    return lambda _: seconds


def _unavailable() -> BaseException:
    return UnavailableError()


def _model_errors() -> Errors:
    kinds: tuple[llm.FailureKind, ...] = (
        "refused",
        "rate_limited",
        "unavailable",
        "timeout",
        "garbage",
    )
    return {f"ModelError ({kind})": lambda kind=kind: ModelError(kind, DETAIL) for kind in kinds}


def _isolated(function: str, *_: object, **__: object) -> str:
    """Return busy times of a calendar without skipped events, or the text of a file."""
    return "[[[30000000, 30000060]], 0]" if "busy" in function else "Rye bread costs 120 rubles."


PAGE = b"<html><head><title>Bakery</title></head><body><p>Rye bread.</p></body></html>"


def _fetched(url: str, **_: Any) -> fetch.Fetched:
    is_image = Path(url.partition("?")[0]).suffix in {".png", ".jpg", ".jpeg", ".webp", ".gif"}
    kind, body = ("image/png", png()) if is_image else ("text/html; charset=utf-8", PAGE)
    return fetch.Fetched(url, kind, body, Validators.from_headers(url, {}))


_FETCH_ERRORS: Errors = {
    "RefusedUrlError": lambda: public_http.RefusedUrlError(
        "the host is not public", key="not_public"
    ),
    "TooLargeError": lambda: public_http.TooLargeError("expected at most 10 MB", key="too_large"),
    "UpstreamError": lambda: public_http.UpstreamError("the host does not answer", key="too_slow"),
}
_TELEGRAM_ERRORS: Errors = {
    "ChatGoneError": lambda: ChatGoneError("the chat is gone"),
    "BusyError": lambda: BusyError("Telegram", 30),
    "MessengerError": lambda: MessengerError("Telegram cannot be reached"),
    "NotConfiguredError": lambda: NotConfiguredError("There is no bot."),
}
_MAX_ERRORS: Errors = {
    **_TELEGRAM_ERRORS,
    "BusyError": lambda: BusyError("MAX", 1),
    "MessengerError": lambda: MessengerError("MAX cannot be reached"),
}
_SMS_BUSY: Errors = {"SmsBusyError": lambda: sms.SmsBusyError(DETAIL, 60)}
_STORE_ERRORS: Errors = {"UnavailableError": _unavailable}


def _object_seconds(_: dict[str, Any]) -> float:
    """All attempts of S3 that begin before the deadline."""
    seconds = object_store.CONNECT_SECONDS + object_store.READ_SECONDS
    seconds_left = deadline.remaining(object_store.ATTEMPTS * seconds)
    return seconds * ceil(seconds_left / seconds)


def _object_call(name: str, *, writes: bool = False) -> Gateway:
    owner = object_store.FolderStore
    return Gateway(owner, name, _STORE_ERRORS, _object_seconds, writes_objects=writes)


GATEWAYS: tuple[Gateway, ...] = (
    Gateway(fetch, "fetch", _FETCH_ERRORS, _deadline_wait(fetch.TOTAL_SECONDS), _fetched),
    Gateway(post, "post", _FETCH_ERRORS, _deadline_wait(post.TOTAL_SECONDS), lambda *_, **__: OK),
    Gateway(
        telegram,
        "send",
        _TELEGRAM_ERRORS,
        _deadline_wait(telegram.SECONDS),
        lambda *_, **__: None,
    ),
    Gateway(
        telegram, "bot_name", _TELEGRAM_ERRORS, _deadline_wait(telegram.SECONDS), lambda: "bot"
    ),
    Gateway(telegram, "webhook_secret", _TELEGRAM_ERRORS, _always(8)),
    Gateway(telegram, "is_configured", _TELEGRAM_ERRORS, _always(8)),
    Gateway(telegram, "start_url", _TELEGRAM_ERRORS, _deadline_wait(telegram.SECONDS)),
    Gateway(
        max_messenger,
        "send",
        _MAX_ERRORS,
        _deadline_wait(max_messenger.SECONDS),
        lambda *_, **__: None,
    ),
    Gateway(max_messenger, "start_url", _MAX_ERRORS, _deadline_wait(max_messenger.SECONDS)),
    Gateway(max_messenger, "bot_name", _MAX_ERRORS, _deadline_wait(max_messenger.SECONDS)),
    Gateway(max_messenger, "webhook_secret", _MAX_ERRORS, _always(8)),
    Gateway(max_messenger, "is_configured", _MAX_ERRORS, _always(8)),
    Gateway(
        sms,
        "send",
        {
            **_SMS_BUSY,
            "SmsRefusedError": lambda: sms.SmsRefusedError(DETAIL),
            "SmsRefusedError (account)": lambda: sms.SmsRefusedError(DETAIL, by_account=True),
            "SmsUnknownError": lambda: sms.SmsUnknownError(DETAIL),
            "NotConfiguredError": lambda: NotConfiguredError("SMS are off."),
        },
        _deadline_wait(sms.SECONDS),
    ),
    Gateway(Folder, "find_lost", _SMS_BUSY, _deadline_wait(sms.SECONDS)),
    Gateway(Folder, "delivery", _SMS_BUSY, _deadline_wait(sms.SECONDS)),
    Gateway(
        mail,
        "send",
        {
            "MailRefusedError": lambda: mail.MailRefusedError(DETAIL),
            "MailDelayedError": lambda: mail.MailDelayedError(DETAIL, 60),
            "NotConfiguredError": lambda: NotConfiguredError("Mail is switched off."),
            "ValueError": lambda: ValueError(DETAIL),
        },
        _always(11),
        lambda _: None,
    ),
    Gateway(
        dns,
        "lookup_txt",
        {"DnsUnavailableError": dns.DnsUnavailableError},
        _always(dns.TIMEOUT_SECONDS),
        lambda _: frozenset(),
    ),
    Gateway(
        barcodes,
        "look_up",
        {"LookupFailedError": lambda: barcodes.LookupFailedError("the source cannot be reached")},
        _deadline_wait(barcodes.TOTAL_SECONDS),
        lambda *_, **__: None,
    ),
    Gateway(
        photos.Openverse,
        "search",
        {"UpstreamFailedError": lambda: UpstreamFailedError("The photo search failed.")},
        _deadline_wait(photos.TOTAL_SECONDS),
    ),
    Gateway(
        master_key,
        "master_key",
        {
            "NotConfiguredError": lambda: NotConfiguredError("There is no key."),
            "UnavailableError": _unavailable,
        },
        _always(8),
    ),
    Gateway(
        isolation,
        "call",
        {
            "RaisedError": lambda: isolation.RaisedError("no_text", "the file is empty", {}),
            "TooSlowError": lambda: isolation.TooSlowError(DETAIL),
            "IsolationError": lambda: isolation.IsolationError(DETAIL),
        },
        _always(isolation.SECONDS),
        _isolated,
    ),
    Gateway(site_hosts.LocalHosts, "serve", _STORE_ERRORS, _always(8)),
    Gateway(site_hosts.LocalHosts, "release", _STORE_ERRORS, _always(8)),
    Gateway(
        DemoModel,
        "stream",
        _model_errors(),
        lambda options: deadline.remaining(options.get("seconds", llm.STREAM_SECONDS)),
        streams=True,
    ),
    _object_call("put", writes=True),
    _object_call("get"),
    _object_call("delete", writes=True),
    _object_call("delete_under", writes=True),
)
