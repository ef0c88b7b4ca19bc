"""Format cards on which a visitor confirms a proposal, in the visitor's language.

The service renders a card from checked arguments, never from a model's text. A card asks for what
its operation still needs.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from chalicelib.lib import localized, po_files
from chalicelib.lib.localized import Language

LOCALE = Path(__file__).parent / "locale"  # PO files, with one folder per language
NAME, PHONE, EMAIL = "name", "phone", "email"
CONTACT = "contact"  # a phone number or an e-mail address


class Field(NamedTuple):
    """A field that the visitor fills in on a card."""

    name: str
    label: str
    type: str = "text"
    required: bool = True
    options: tuple[str, ...] = ()  # of a select


class Person(NamedTuple):
    name: str | None = None
    phone: str | None = None
    email: str | None = None

    def known(self, language: Language) -> list[tuple[str, str]]:
        return [
            (text(language, label), value)
            for label, value in self._asdict().items()
            if value is not None
        ]

    def missing(self, language: Language) -> list[Field]:
        """Return the fields for a name and for a contact, unless they are known."""
        fields = [] if self.name else [Field(NAME, text(language, NAME))]
        if self.phone is None and self.email is None:
            fields.append(Field(CONTACT, text(language, "contact_hint")))
        return fields


class Line(NamedTuple):
    """A line of an order, with the price of one piece in minor units."""

    name: str
    quantity: int
    price: int


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "cards")


def text(language: Language, key: str, **values: object) -> str:
    """Return a template with values in its placeholders."""
    return str(_catalogue(language).texts[key]).format(**values)


def booking(  # noqa: PLR0913  the fields of a booking
    language: Language,
    *,
    service: str,
    local: datetime,
    zone: str,
    staff: str,
    minutes: int,
    price: int,
    currency: str,
    person: Person,
    privacy_url: str | None,
    due: int = 0,
    refund_until_min: int | None = None,
    hold_minutes: int | None = None,
) -> dict[str, Any]:
    """Return the card of a booking, which starts at ``local`` in ``zone``.

    ``due`` is paid in advance, and refunded until ``refund_until_min`` minutes before the start.
    The unpaid booking is held for ``hold_minutes``.
    """
    rest = _price(language, price - due, currency)
    details = [
        ("when", f"{localized.weekday_and_time(language, local)} ({zone})"),
        ("staff", staff),
        ("duration", text(language, "minutes", minutes=minutes)),
        ("price", _price(language, price, currency)),
        *([("due", _price(language, due, currency))] if due else []),
        *([("rest", rest)] if 0 < due < price else []),
        *([("refund", _refund(language, refund_until_min))] if due else []),
    ]
    return _card(
        language,
        "booking",
        title=text(language, "book", service=service),
        details=[
            *((text(language, key), value) for key, value in details),
            *person.known(language),
        ],
        fields=person.missing(language),
        note=text(language, "not_held_unpaid", minutes=hold_minutes)
        if due
        else text(language, "not_held"),
        consent=text(language, "consent"),
        privacy_url=privacy_url,
    )


def order(  # noqa: PLR0913  the fields of an order
    language: Language,
    *,
    lines: Sequence[Line],
    currency: str,
    known_fields: Iterable[tuple[str, str]],
    fields: Sequence[Field],
    consent: str | None,
    privacy_url: str | None,
) -> dict[str, Any]:
    """Return the card of an order. ``known_fields`` are labels and values of known fields."""
    details = [
        (
            line.name,
            text(
                language,
                "line",
                quantity=line.quantity,
                price=localized.money(language, line.price, currency),
            ),
        )
        for line in lines
    ]
    total = sum(line.quantity * line.price for line in lines)
    details.append((text(language, "total"), _price(language, total, currency)))
    return _card(
        language,
        "order",
        title=text(language, "order"),
        details=[*details, *known_fields],
        fields=fields,
        note=text(language, "not_ordered"),
        consent=consent or text(language, "consent"),
        privacy_url=privacy_url,
    )


def _refund(language: Language, minutes: int | None) -> str:
    if not minutes:
        return text(language, "refund_always")
    return text(language, "refund_until", time=localized.length(language, minutes))


def _price(language: Language, amount: int, currency: str) -> str:
    return localized.money(language, amount, currency) if amount else text(language, "free")


def _card(  # noqa: PLR0913  the fields of a card
    language: Language,
    kind: str,
    *,
    title: str,
    details: Iterable[tuple[str, str]],
    fields: Iterable[Field],
    note: str,
    consent: str,
    privacy_url: str | None,
) -> dict[str, Any]:
    return {
        "kind": kind,
        "language": language,
        "title": title,
        "details": [{"label": label, "value": value} for label, value in details],
        "fields": [{**field._asdict(), "options": list(field.options)} for field in fields],
        "note": note,
        "consent": {"text": consent, "url": privacy_url},
        "confirm": text(language, f"confirm_{kind}"),
        "cancel": text(language, "cancel"),
    }
