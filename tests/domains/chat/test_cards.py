"""Tests of the cards that a visitor confirms before a booking or an order."""

from datetime import datetime
from typing import Any

import pytest

from chalicelib.domains.chat.rules import cards
from chalicelib.domains.chat.rules.cards import Field, Line, Person

CONSENT = "By confirming, you agree to the processing of your personal data."
NAME = {"name": "name", "label": "Name", "type": "text", "required": True, "options": []}
CONTACT = {**NAME, "name": "contact", "label": "Phone or e-mail"}


def booking_card(**changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "service": "Haircut",
        "local": datetime(2027, 1, 20, 14, 30),  # noqa: DTZ001  local time
        "zone": "Europe/Moscow",
        "staff": "Ada",
        "minutes": 90,
        "price": 150_000,
        "person": Person(),
        "privacy_url": "https://shop.example/privacy",
    }
    return cards.booking(**{"language": "en", "currency": "RUB", **arguments, **changes})


def order_card(**changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "lines": [Line("Bread", 2, 12_000), Line("Cake", 1, 90_000)],
        "known_fields": [("Name", "Ann")],
        "fields": [Field("size", "Size", "select", required=False, options=("S", "M"))],
        "consent": "I agree.",
        "privacy_url": None,
    }
    return cards.order(**{"language": "en", "currency": "RUB", **arguments, **changes})


def details_of(card: dict[str, Any]) -> dict[str, str]:
    return {detail["label"]: detail["value"] for detail in card["details"]}


def test_a_booking_card_shows_time_and_price_and_requests_a_contact() -> None:
    assert booking_card() == {
        "kind": "booking",
        "language": "en",
        "title": "Book: Haircut",
        "details": [
            {"label": "When", "value": "Wednesday, 20 January 2027, 14:30 (Europe/Moscow)"},
            {"label": "With", "value": "Ada"},
            {"label": "Duration", "value": "90 min"},
            {"label": "Price", "value": "1,500 ₽"},
        ],
        "fields": [NAME, CONTACT],
        "note": "The time is not reserved until you confirm.",
        "consent": {"text": CONSENT, "url": "https://shop.example/privacy"},
        "confirm": "Book",
        "cancel": "No, thanks",
    }


def test_an_order_card_shows_lines_total_and_form_fields() -> None:
    size = {"name": "size", "label": "Size", "type": "select", "required": False}
    assert order_card() == {
        "kind": "order",
        "language": "en",
        "title": "Order",
        "details": [
            {"label": "Bread", "value": "2 × 120 ₽"},
            {"label": "Cake", "value": "1 × 900 ₽"},
            {"label": "Total", "value": "1,140 ₽"},
            {"label": "Name", "value": "Ann"},
        ],
        "fields": [{**size, "options": ["S", "M"]}],
        "note": "Nothing is ordered until you confirm.",
        "consent": {"text": "I agree.", "url": None},
        "confirm": "Order",
        "cancel": "No, thanks",
    }


@pytest.mark.parametrize(
    ("card", "confirm", "cancel"),
    [
        (booking_card(language="ru"), "Записаться", "Не нужно"),
        (order_card(language="ru"), "Заказать", "Не нужно"),
    ],
)
def test_a_card_is_in_the_language_of_the_visitor(
    card: dict[str, Any], confirm: str, cancel: str
) -> None:
    assert (card["language"], card["confirm"], card["cancel"]) == ("ru", confirm, cancel)


@pytest.mark.parametrize(
    ("person", "expected_contact", "fields"),
    [
        (Person("Ann"), {"Name": "Ann"}, [CONTACT]),
        (Person(phone="+7 495"), {"Phone": "+7 495"}, [NAME]),
        (Person("Ann", email="a@b.example"), {"Name": "Ann", "E-mail": "a@b.example"}, []),
    ],
)
def test_a_card_shows_known_contacts_and_requests_missing_ones(
    person: Person, expected_contact: dict[str, str], fields: list[dict[str, Any]]
) -> None:
    card = booking_card(person=person)
    assert [*details_of(card).items()][4:] == [*expected_contact.items()]
    assert card["fields"] == fields


@pytest.mark.parametrize(
    ("currency", "price", "due", "rest"),
    [
        ("GBP", "£12.50", "£5", "£7.50"),
        ("JPY", "¥1,250", "¥500", "¥750"),
        ("KWD", "KWD\u00a01.250", "KWD\u00a00.500", "KWD\u00a00.750"),
    ],
)
def test_the_sums_of_a_booking_are_in_the_workspaces_currency(
    currency: str, price: str, due: str, rest: str
) -> None:
    details = details_of(booking_card(currency=currency, price=1_250, due=500, hold_minutes=30))
    assert [*details.values()][3:6] == [price, due, rest]


@pytest.mark.parametrize(
    ("due", "rest"), [(0, None), (1, "£12.49"), (1_249, "£0.01"), (1_250, None)]
)
def test_a_card_shows_what_is_left_to_pay_if_a_part_is_paid_in_advance(
    due: int, rest: str | None
) -> None:
    card = booking_card(currency="GBP", price=1_250, due=due, hold_minutes=30)
    assert details_of(card).get(cards.text("en", "rest")) == rest


@pytest.mark.parametrize("minutes", [None, 0])
def test_a_card_without_a_limit_of_refunds_says_so(minutes: int | None) -> None:
    details = details_of(booking_card(due=500, refund_until_min=minutes, hold_minutes=30))
    assert details[cards.text("en", "refund")] == cards.text("en", "refund_always")


def test_a_price_of_zero_is_shown_as_free() -> None:
    cards._catalogue.cache_clear()  # so that the file is read here
    assert details_of(booking_card(price=0))["Price"] == "free"
    assert details_of(order_card(lines=[Line("Bag", 1, 0)]))["Total"] == "free"


def test_an_order_without_a_consent_text_has_the_default() -> None:
    assert order_card(consent=None)["consent"]["text"] == CONSENT
