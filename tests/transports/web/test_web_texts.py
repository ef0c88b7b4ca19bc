"""Messages of pages in both languages, and formats of numbers, dates and money."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, Literal, TypeAliasType, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib import core
from chalicelib.domains.booking_page.operations.cancel_and_move import ManagedBooking
from chalicelib.domains.bookings.flows.slot_list import SlotList
from chalicelib.domains.exports.operations.exports import ExportOut
from chalicelib.domains.identity.operations.key_list import KeyOut
from chalicelib.domains.imports.operations.imports import ImportOut
from chalicelib.domains.schedule.operations.busy_calendars import BusyCalendar
from chalicelib.domains.schedule.operations.closed_times import MisplacedBooking
from chalicelib.domains.schedule.operations.dated_starts import RefusedStart
from chalicelib.domains.sites.operations.sites import DomainOut
from chalicelib.domains.waiting.operations.visitors import PublicWaitingMade
from chalicelib.transports import console, mcp_app_pages, oauth, unsubscribe
from chalicelib.transports.console.form import Form
from chalicelib.transports.console.form_controls import Field
from chalicelib.transports.web import assets, texts
from chalicelib.transports.web.texts import LANGUAGES
from tests.conftest import Time

PAGES = (
    Path(mcp_app_pages.__file__),
    assets._FOLDER,
    Path(console.__file__).parent,
    Path(oauth.__file__).parent,
    Path(unsubscribe.__file__),
)
FILES = "console.po, booking.po and public.po of chalicelib/transports/web/locale/{ru,en}"
FROM_RECORDS = {"stopped", "limit_reached", "daily", "weekly", "monthly"}
"""Keys that pages take from records: the state of a bot, and the window of a limit."""


def test_every_text_used_by_a_template_or_page_exists_and_none_is_unused() -> None:
    """Code contains a whole key, or its beginning to which a value of a record is added."""
    files = [file for page in PAGES for file in (page, *page.rglob("*"))]
    files = [file for file in files if file.suffix in {".html", ".xml", ".py"}]
    sources = "\n".join(file.read_text() for file in files)
    shared = "\n".join(file.read_text() for file in Path(core.__file__).parent.glob("*.py"))
    keys = set(texts.catalogue("en").texts)
    missing = set(re.findall(r'translate\(\s*"(\w+)"[,)]', sources)) - keys
    assert missing == set(), f"Pages show these, but no msgid of {FILES}."
    beginnings = set(re.findall(r'translate\("(\w+)" \+', sources))
    unknown = [b for b in beginnings if not any(key.startswith(b) for key in keys)]
    assert unknown == [], f"Pages add a value to these, but no msgid of {FILES} begins so."
    beginnings |= set(re.findall(r'f"([a-z]+_){', sources + shared))
    unused = keys - set(re.findall(r'"(\w+)"', sources)) - FROM_RECORDS
    unused = {key for key in unused if not key.startswith(tuple(beginnings))}
    assert unused == set(), f"No page shows these: remove them from {FILES}."


SHOWN_VALUES = {
    "booking_reason_": (SlotList, "reason"),
    "busy_problem_": (BusyCalendar, "problem"),
    "date_refused_": (RefusedStart, "reason"),
    "domain_is_": (DomainOut, "status"),
    "domain_step_": (DomainOut, "status"),
    "export_": (ExportOut, "state"),
    "import_state_": (ImportOut, "state"),
    "key_": (KeyOut, "state"),
    "misplaced_": (MisplacedBooking, "reason"),
    "pay_refund_": (ManagedBooking, "refund_state"),
    "wait_mail_": (PublicWaitingMade, "mail"),
}
"""Beginnings of keys, and the field of an output whose values pages add."""


@pytest.mark.parametrize("beginning", SHOWN_VALUES)
def test_each_value_of_an_output_that_a_page_shows_has_a_text(beginning: str) -> None:
    model, field = SHOWN_VALUES[beginning]
    values = choices_of(model.model_fields[field].annotation)
    assert len(values) > 1
    keys = {f"{beginning}{value}" for value in values}
    lacking = {key for key in keys for language in LANGUAGES if not texts.has(language, key)}
    assert lacking == set(), f"Add these to {FILES}."


def choices_of(annotation: Any) -> set[str]:
    """Return the values of a Literal or an enumeration, which may be optional."""
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return set(annotation)
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    if isinstance(annotation, TypeAliasType):
        return choices_of(annotation.__value__)
    return set().union(*map(choices_of, get_args(annotation)))


CHOSEN = {
    *("accent", "agentId", "categoryId", "closingVatCode", "knowledgeBotId", "language"),
    *("provider", "siteId", "type"),
}
"""Fields that pages show as choices, so that nobody mistypes them."""
OWN_SENTENCES = {"forms.editor"}
"""Modules whose ``problems`` translates the errors of all fields."""


def typed_fields() -> Iterator[tuple[str, Field]]:
    """Yield the fields of all forms that a user types, with the module of the form."""
    for module in walk_packages(console.__path__, f"{console.__name__}."):
        place = module.name.removeprefix(f"{console.__name__}.")
        for form in vars(import_module(module.name)).values():
            if isinstance(form, Form) and place not in OWN_SENTENCES:
                yield from ((place, field) for field in form.fields if type(field) is Field)


def test_each_typed_field_says_in_both_languages_what_it_accepts() -> None:
    """Without it, the page shows the English sentence of the operation."""
    keys = {
        f"{place}: {field.name}": field.wrong or f"wrong_{field.name}"
        for place, field in typed_fields()
        if field.name not in CHOSEN
    }
    assert "services.services: durationMin" in keys
    lacking = {
        field: key
        for field, key in keys.items()
        if not all(texts.has(language, key) for language in LANGUAGES)
    }
    assert lacking == {}, (
        "Add these keys to console.po of chalicelib/transports/web/locale/{ru,en}, or name a key "
        "that is there in the field's wrong=. A field of choices is named in CHOSEN."
    )


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("ru", "ru"),
        ("ru-RU,ru;q=0.9,en-US;q=0.8", "ru"),
        ("en;q=0.5, ru;q=0.6", "ru"),
        ("de-DE, fr;q=0.9", "en"),
        ("ru;q=0, en;q=0.1", "en"),
        ("*;q=0.1", "en"),
        ("ru;q=x", "en"),
        ("de, ru", "ru"),
    ],
)
def test_the_requested_language_is_used(header: str, language: str) -> None:
    assert texts.preferred(header) == language


@given(st.text(max_size=60))
def test_any_language_header_selects_a_language(header: str) -> None:
    assert texts.preferred(header) in LANGUAGES


@pytest.mark.parametrize(
    ("n", "russian", "english"),
    [
        (0, "0 статей", "0 posts"),
        (1, "1 статья", "1 post"),
        (3, "3 статьи", "3 posts"),
        (11, "11 статей", "11 posts"),
        (21, "21 статья", "21 posts"),
        (1234, "1\xa0234 статьи", "1,234 posts"),
    ],
)
def test_plurals_follow_the_rules_of_the_language(n: int, russian: str, english: str) -> None:
    assert texts.translate("ru", "posts", n=n) == russian
    assert texts.translate("en", "posts", n=n) == english


def test_money_dates_and_times_have_the_local_format() -> None:
    assert texts.money("ru", 123_450, "RUB") == "1\xa0234,50 ₽"
    assert texts.money("en", 150_000, "RUB") == "1,500 ₽"
    assert texts.money("en", -5, "RUB") == "-0.05 ₽"
    assert texts.day("ru", date(2026, 11, 2)) == "2 ноября 2026"
    moment = datetime(2026, 11, 22, 22, 5, tzinfo=UTC)
    assert texts.moment("en", moment, "Europe/Moscow") == "23 Nov 2026, 01:05"


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (-48, "13 янв., 15:00"),
        (-24, "вчера 15:00"),
        (0, "сегодня 15:00"),
        (24, "завтра 15:00"),
        (24 * 400, "19 февр. 2028, 15:00"),
    ],
)
def test_near_moments_have_no_date(hours: int, expected: str, time: Time) -> None:
    time.now = datetime(2027, 1, 15, 12, tzinfo=UTC)
    moment = time.now + timedelta(hours=hours)
    assert texts.near_moment("ru", moment, "Europe/Moscow") == expected


@pytest.mark.parametrize(
    ("zone", "month", "offset"),
    [
        ("UTC", 1, "UTC"),
        ("Europe/Moscow", 1, "UTC+3"),
        ("Europe/Berlin", 1, "UTC+1"),
        ("Europe/Berlin", 7, "UTC+2"),
        ("Asia/Kolkata", 1, "UTC+5:30"),
        ("America/St_Johns", 1, "UTC\u22123:30"),
    ],
)
def test_an_offset_is_that_of_the_moment_in_its_zone(zone: str, month: int, offset: str) -> None:
    moment = datetime(2026, month, 15, 12, tzinfo=UTC)
    assert texts.zone(texts.offset(moment, zone)) == offset


@pytest.mark.parametrize(
    ("when", "zone", "text"),
    [
        (datetime.max.replace(tzinfo=UTC), "Europe/Moscow", "31 Dec 9999, 23:59"),
        (datetime.max.replace(tzinfo=UTC), "America/New_York", "31 Dec 9999, 18:59"),
        (datetime.min.replace(tzinfo=UTC), "America/New_York", "1 Jan 1, 00:00"),
    ],
)
def test_a_moment_outside_a_zones_range_is_shown_in_utc(
    when: datetime, zone: str, text: str
) -> None:
    assert texts.moment("en", when, zone) == text
