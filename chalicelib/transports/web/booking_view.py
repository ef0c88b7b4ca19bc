"""Calls and facts that the booking page shares with the page behind a booking's link."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic_core import from_json

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY
from chalicelib.lib import localized
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import HttpRequest
from chalicelib.transports.web import month_view, texts
from chalicelib.transports.web.texts import Language


def call(
    request: HttpRequest, operation: str, arguments: Mapping[str, Any], key: str = ""
) -> dict[str, Any]:
    """Call an operation for a visitor and return ``data`` of its envelope.

    Raises:
        AppError: as the operation documents.
    """
    reply = invoke(
        REGISTRY[operation],
        visitor(request),
        lambda: arguments,
        request_id=request.request_id,
        idempotency_key=key or None,
    )
    data: dict[str, Any] = from_json(reply.body)["data"]
    return data


def query_value(request: HttpRequest, name: str) -> str:
    """Return the last value of a query parameter, or "" if it is missing."""
    return (list(request.query.get(name, ())) or [""])[-1]


def price_text(language: Language, kopecks: int) -> str:
    """Return a price, or "" without a price."""
    return texts.money(language, kopecks) if kopecks else ""


def moment_of(text: str) -> datetime | None:
    """Return the moment that a link or form names, or None if it is malformed."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def terms_texts(
    language: Language,
    service: Mapping[str, Any],
    start: datetime | None = None,
    zone: str = "UTC",
) -> list[tuple[str, str]]:
    """Return what is paid in advance for a service, when it is refunded and how long it is held.

    Each sentence has an icon. Without ``start``, the end of refunds is a length of time before it.
    """
    due, minutes = service["amountDue"], service["refundUntilMin"]
    if not due:
        return []

    def say(key: str, **values: object) -> str:
        return texts.translate(language, key, **values)

    rest = service["price"] - due
    amounts = {"due": price_text(language, due), "rest": price_text(language, rest)}
    last = None if start is None else start - timedelta(minutes=minutes)
    if last is not None and last <= clock.now():
        refund = say("terms_no_refund")
    elif last is not None:
        refund = say("terms_refund_by", when=moment_text(language, last, zone))
    elif minutes:
        refund = say("terms_refund_until", time=localized.length(language, minutes))
    else:
        refund = say("terms_refund_always")
    return [
        ("credit-card", say("terms_deposit" if rest else "terms_due", **amounts)),
        ("arrow-left", refund),
        ("clock", say("terms_hold", time=localized.length(language, service["holdMinutes"]))),
    ]


def payment_facts(  # noqa: PLR0913  the facts
    language: Language,
    booking: Mapping[str, Any],
    *,
    due: int = 0,
    paid: int | None = None,
    left: int = 0,
    refund_until: str | None = None,
    held_until: str | None = None,
) -> list[tuple[str, str, str]]:
    """Return what of a booking is paid and to be paid, as facts like those of ``booking_facts``.

    Amounts are in kopecks, and moments in ISO 8601.
    """

    def moment(text: str | None) -> str:
        if text is None or (at := datetime.fromisoformat(text)) <= clock.now():
            return ""
        return moment_text(language, at, booking["timezone"])

    facts = [
        ("circle-check", "fact_paid", price_text(language, paid or 0)),
        ("credit-card", "pay_due", price_text(language, due)),
        ("wallet", "fact_left", price_text(language, left)),
        ("arrow-left", "fact_refund", moment(refund_until) if due or paid else ""),
        ("clock", "fact_held", moment(held_until) if due else ""),
    ]
    return [(icon, texts.translate(language, key), value) for icon, key, value in facts if value]


def moment_text(language: Language, moment: datetime, zone: str) -> str:
    """Return a moment in a zone, such as ``15 January, 10:00``."""
    return texts.dated(language, moment.astimezone(ZoneInfo(zone)), "d MMMM, HH:mm")


def booking_facts(language: Language, booking: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the facts of a booking, each with an icon, a name and a value."""
    zone = booking["timezone"]
    start, end = (datetime.fromisoformat(booking[name]) for name in ("startAt", "endAt"))
    local = [moment.astimezone(ZoneInfo(zone)) for moment in (start, end)]
    facts = [
        ("scroll-text", "book_what", booking["serviceName"]),
        ("calendar-check", "book_when", month_view.span_text(language, local[0], local[1])),
        ("globe", "book_zone", month_view.zone_text(zone, start)),
        ("circle-user", "book_with", booking["resourceName"]),
        ("wallet", "book_price", price_text(language, booking["price"])),
    ]
    return [(icon, texts.translate(language, key), value) for icon, key, value in facts if value]
