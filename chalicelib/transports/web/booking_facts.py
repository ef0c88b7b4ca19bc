"""Facts of a booking and terms of its payment, in words."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.lib import localized
from chalicelib.transports.web import texts
from chalicelib.transports.web.texts import Language


def booking_facts(
    language: Language, booking: Mapping[str, Any], currency: str
) -> list[tuple[str, str, str]]:
    """Return the facts of a booking, each with an icon, a name and a value."""
    zone = booking["timezone"]
    start, end = (datetime.fromisoformat(booking[name]) for name in ("startAt", "endAt"))
    local = [moment.astimezone(ZoneInfo(zone)) for moment in (start, end)]
    facts = [
        ("scroll-text", "book_what", booking["serviceName"]),
        ("calendar-check", "book_when", span_text(language, local[0], end=local[1])),
        ("globe", "book_zone", zone_text(zone, start)),
        ("circle-user", "book_with", booking["resourceName"]),
        ("wallet", "book_price", price_text(language, booking["price"], currency)),
    ]
    return [(icon, texts.translate(language, key), value) for icon, key, value in facts if value]


def payment_facts(  # noqa: PLR0913  the facts
    language: Language,
    booking: Mapping[str, Any],
    currency: str,
    *,
    due: int = 0,
    paid: int | None = None,
    left: int = 0,
    refund_until: str | None = None,
    held_until: str | None = None,
) -> list[tuple[str, str, str]]:
    """Return what of a booking is paid and to be paid, as facts like those of ``booking_facts``.

    Amounts are in minor units of the currency, and moments in ISO 8601.
    """

    def moment(text: str | None) -> str:
        if text is None or (at := datetime.fromisoformat(text)) <= clock.now():
            return ""
        return moment_text(language, at, booking["timezone"])

    facts = [
        ("circle-check", "fact_paid", price_text(language, paid or 0, currency)),
        ("wallet", "fact_left", price_text(language, left, currency)),
        ("undo-2", "fact_refund", moment(refund_until) if due or paid else ""),
        ("clock", "fact_held", moment(held_until) if due else ""),
    ]
    return [(icon, texts.translate(language, key), value) for icon, key, value in facts if value]


def terms_texts(
    language: Language,
    currency: str,
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

    if service.get("priceFrom") is not None:
        # The share of the price of whoever is chosen.
        amount = price_text(language, due, currency)
        return [("credit-card", say("terms_due_from", due=amount))]
    rest = service["price"] - due
    amounts = {
        "due": price_text(language, due, currency),
        "rest": price_text(language, rest, currency),
    }
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
        ("undo-2", refund),
        ("clock", say("terms_hold", time=localized.length(language, service["holdMinutes"]))),
    ]


def price_text(language: Language, amount: int, currency: str, *, zero: bool = False) -> str:
    """Return a price, or "" without a price, unless ``zero`` is to be written."""
    return texts.money(language, amount, currency) if amount or zero else ""


def moment_text(language: Language, moment: datetime, zone: str) -> str:
    """Return a moment in a zone, such as ``15 January, 10:00``."""
    return texts.dated(language, moment.astimezone(ZoneInfo(zone)), "d MMMM, HH:mm")


def zone_text(zone: str, when: datetime) -> str:
    """Return a zone with the offset that it has at a moment, such as ``Europe/Moscow, UTC+3``."""
    return f"{zone.replace('_', ' ')}, {texts.zone(texts.offset(when, zone))}"


def span_text(language: Language, start: datetime, *, end: datetime) -> str:
    """Return local times as ``Friday, 5 March 2027, 14:00`` to ``15:00``."""
    first = texts.dated(language, start, "EEEE, d MMMM y, HH:mm")
    if start.date() == end.date():
        return f"{first}\u2013{texts.dated(language, end, 'HH:mm')}"
    return f"{first} \u2013 {texts.dated(language, end, 'd MMMM, HH:mm')}"
