"""Calls and facts that the booking page shares with the page behind a booking's link."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic_core import from_json

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
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


def length_text(language: Language, minutes: int) -> str:
    """Return a length of time, such as ``1 h 30 min``."""
    hours, rest_of_hour = divmod(minutes, 60)
    parts = [
        texts.translate(language, key, amount=amount)
        for key, amount in (("book_hours", hours), ("book_minutes", rest_of_hour))
        if amount
    ]
    return " ".join(parts)


def moment_of(text: str) -> datetime | None:
    """Return the moment that a link or form names, or None if it is malformed."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


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
