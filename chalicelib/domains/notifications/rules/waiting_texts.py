"""Texts of messages to those who wait for a free time (ADR 142).

They contain nothing that a visitor wrote, like those about bookings (``client_mail_texts``).
"""

from datetime import date, datetime
from functools import cache
from typing import Literal, NamedTuple

from chalicelib.domains.notifications.rules.messages import LOCALE, TEMPLATES, mailed_name
from chalicelib.lib import localized, po_files, quotes
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import mails
from chalicelib.lib.markup.brands import Brand
from chalicelib.lib.markup.mails import RenderedMail

WaitingKind = Literal["waiting", "offer"]


class WaitingFacts(NamedTuple):
    """What a message shows of the waiting."""

    brand: Brand  # as in ``mail_brands``
    service: str
    resource: str  # "" if any will do
    day: date
    offered_until: datetime | None  # in the zone of the day
    page_url: str  # shows the offer, and ends the waiting


def short_text(language: Language, kind: WaitingKind, facts: WaitingFacts) -> str:
    """Return a message as plain lines, the business first and the link last."""
    texts = _catalogue(language).texts
    lines = [f"{name}: {value}" for name, value in _pairs(language, facts)]
    about = _about(language, kind, facts)
    return "\n".join(
        [facts.brand.name, str(texts[f"client_{kind}"]), *lines, about, facts.page_url]
    )


def mail(language: Language, kind: WaitingKind, facts: WaitingFacts) -> RenderedMail:
    """Return an e-mail to one who waits."""
    texts = _catalogue(language).texts
    title = str(texts[f"client_{kind}"])
    service = mailed_name(facts.service)
    return mails.render(
        TEMPLATES,
        "client",
        language,
        brand=facts.brand,
        subject_line=f"{title}: {service}, {facts.day:%d.%m}",
        title=title,
        about=_about(language, kind, facts),
        facts=_pairs(language, facts),
        page_url=facts.page_url,
        action=str(texts[f"client_{kind}_action"]),
    )


def _about(language: Language, kind: WaitingKind, facts: WaitingFacts) -> str:
    text = str(_catalogue(language).texts[f"client_{kind}_about"])
    return quotes.nest(text.format(workspace=facts.brand.name))


def _pairs(language: Language, facts: WaitingFacts) -> list[tuple[str, str]]:
    texts, until = _catalogue(language).texts, facts.offered_until
    pairs = [
        ("service", mailed_name(facts.service)),
        ("day", localized.day(language, facts.day)),
        ("resource", mailed_name(facts.resource)),
        ("offered_until", localized.weekday_and_time(language, until) if until else ""),
    ]
    return [(str(texts[f"fact_{key}"]), value) for key, value in pairs if value]


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "messages")
