"""Texts of e-mails to clients about their bookings, and which mail follows an event.

They contain nothing that the visitor wrote. Otherwise a stranger could send anything from the
service's address to any address.
"""

from collections.abc import Collection
from datetime import date, datetime
from functools import cache
from typing import NamedTuple

from chalicelib.domains.notifications.rules import who_is_told
from chalicelib.domains.notifications.rules.messages import LOCALE, TEMPLATES, mailed_name
from chalicelib.domains.notifications.rules.who_is_told import ClientKind
from chalicelib.lib import localized, po_files, quotes
from chalicelib.lib.currencies import RUB
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails
from chalicelib.lib.markup.brands import Brand
from chalicelib.lib.markup.mails import RenderedMail

Kind = ClientKind
# Kinds about a booking that its client may still move or cancel.
_MANAGED = {"confirmed", "pending", "moved", "reminder", "link"}
_BEFORE_CONFIRMATION = {"pending_payment", "cancelled"}


class Refund(NamedTuple):
    """What an e-mail shows of a refund."""

    amount: int  # minor units
    reason: str | None  # if it is known


class BookingFacts(NamedTuple):
    """Facts of a booking that an e-mail shows. Amounts are in minor units."""

    brand: Brand  # as in ``mail_brands``
    service: str
    resource: str
    starts_at: datetime  # in the zone of the staff member
    timezone: str
    price: int
    page_url: str | None  # the client's own link
    pay_url: str | None = None  # the page that pays the booking, if it can be paid online
    refund: Refund | None = None
    due: int = 0  # what is due now
    due_until: datetime | None = None
    paid: int = 0
    currency: str = RUB


class AgainFacts(NamedTuple):
    """What an e-mail shows that asks to book again."""

    brand: Brand  # as in ``mail_brands``
    service: str
    resource: str
    visited_on: date
    agreed_on: date
    page_url: str
    unsubscribe_url: str


def kind_of(
    events: Collection[str], previous_status: str | None, status: str, *, was_held: bool = False
) -> Kind | None:
    """Return the e-mail that follows the events of a unit of work, or None.

    ``events`` are the types of the booking's events, ``previous_status`` is the former status, if
    the events changed it, and ``status`` the current one, which may be newer. ``was_held`` is set
    if the booking was made as an unpaid one, so that its confirmation has another e-mail.
    """
    created, moved, changed = "booking.created", "booking.moved", "booking.status_changed"
    is_new = created in events
    if is_new and was_held and status == "confirmed":
        return None
    if is_new:
        return who_is_told.client_kind(created, status=status)
    if status == "cancelled":
        is_cancellation = previous_status not in {None, "cancelled"}
        return who_is_told.client_kind(changed, status=status) if is_cancellation else None
    if previous_status in _BEFORE_CONFIRMATION:
        return who_is_told.client_kind(changed, status=status)
    return who_is_told.client_kind(moved, status=status) if moved in events else None


def short_text(language: Language, kind: Kind, facts: BookingFacts) -> str:
    """Return a message about a booking as plain lines, the business first and the link last."""
    texts = _catalogue(language).texts
    if kind not in {"confirmed", "pending"}:
        facts = facts._replace(due=0, due_until=None, paid=0)
    lines = [f"{name}: {value}" for name, value in fact_pairs(language, facts)]
    url = facts.pay_url if kind == "pending" and facts.pay_url else facts.page_url
    return "\n".join(
        [facts.brand.name, str(texts[f"client_{kind}"]), *lines, *([url] if url else [])]
    )


def mail(language: Language, kind: Kind, facts: BookingFacts) -> RenderedMail:
    """Return an e-mail about a booking."""
    texts = _catalogue(language).texts
    if kind not in {"confirmed", "pending"}:
        facts = facts._replace(due=0, due_until=None, paid=0)
    title = str(texts[f"client_{kind}"])
    action, url = "client_action", facts.page_url
    if kind == "link":
        action = "client_link_action"
    elif kind == "pending" and facts.pay_url is not None:
        action, url = "client_pay_action", facts.pay_url
    elif kind not in _MANAGED:
        action = "client_view_action"
    return mails.render(
        TEMPLATES,
        "client",
        language,
        brand=facts.brand,
        subject_line=f"{title}: {mailed_name(facts.service)}, {facts.starts_at:%d.%m %H:%M}",
        title=title,
        about=quotes.nest(_about(language, kind, facts.refund).format(workspace=facts.brand.name)),
        facts=fact_pairs(language, facts),
        page_url=url,
        action=str(texts[action]),
    )


def again_mail(language: Language, facts: AgainFacts) -> RenderedMail:
    """Return the e-mail that asks to book again. It says why it came, and how to unsubscribe."""
    texts = _catalogue(language).texts
    title = str(texts["client_again"])
    pairs = [
        ("service", mailed_name(facts.service)),
        ("resource", mailed_name(facts.resource)),
        ("visited", localized.day(language, facts.visited_on)),
    ]
    return mails.render(
        TEMPLATES,
        "again",
        language,
        brand=facts.brand,
        subject_line=f"{title}: {mailed_name(facts.service)}",
        title=title,
        about=quotes.nest(str(texts["client_again_about"]).format(workspace=facts.brand.name)),
        facts=[(str(texts[f"fact_{key}"]), value) for key, value in pairs],
        page_url=facts.page_url,
        action=str(texts["client_again_action"]),
        agreed_on=localized.day(language, facts.agreed_on),
        unsubscribe_url=facts.unsubscribe_url,
    )


def _about(language: Language, kind: Kind, refund: Refund | None) -> str:
    texts = _catalogue(language).texts
    keys = [f"refund_reason_{refund.reason}"] if refund and refund.reason else []
    return " ".join(str(texts[key]) for key in (*keys, f"client_{kind}_about"))


def fact_pairs(language: Language, facts: BookingFacts) -> list[tuple[str, str]]:
    """Return the service, time, staff member and price of a booking as names and values."""
    texts = _catalogue(language).texts
    pairs = [
        ("service", mailed_name(facts.service)),
        ("time", _time(language, facts)),
        ("resource", mailed_name(facts.resource)),
        ("price", _money(language, facts.price, facts)),
        ("refund", _money(language, facts.refund.amount, facts) if facts.refund else ""),
        *_payment_pairs(language, facts),
    ]
    return [(str(texts[f"fact_{key}"]), value) for key, value in pairs if value]


def _payment_pairs(language: Language, facts: BookingFacts) -> list[tuple[str, str]]:
    in_advance = facts.due or facts.paid
    rest = facts.price - in_advance if in_advance else 0
    until = facts.due_until if facts.due else None
    return [
        ("due", _money(language, facts.due, facts)),
        ("until", localized.weekday_and_time(language, until) if until else ""),
        ("paid", _money(language, facts.paid, facts)),
        ("rest", _money(language, max(0, rest), facts)),
    ]


def _money(language: Language, amount: int, facts: BookingFacts) -> str:
    return localized.money(language, amount, facts.currency) if amount else ""


def _time(language: Language, facts: BookingFacts) -> str:
    # The reader may be in another zone.
    offset = f"{facts.starts_at:%z}"
    local_time = localized.weekday_and_time(language, facts.starts_at)
    return f"{local_time} ({facts.timezone}, UTC{offset[:3]}:{offset[3:]})"


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "messages")
