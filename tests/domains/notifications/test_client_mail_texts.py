"""Selection and content of the emails to clients."""

from datetime import datetime, timedelta, timezone

import pytest

from chalicelib.domains.notifications.rules import client_mail_texts
from chalicelib.domains.notifications.rules.client_mail_texts import BookingFacts, Kind, kind_of
from chalicelib.domains.notifications.rules.messages import MAX_TITLE, mailed_name
from chalicelib.lib.markup.brands import Brand

CREATED, MOVED, CHANGED = (f"booking.{name}" for name in ("created", "moved", "status_changed"))
KOLKATA = timezone(timedelta(hours=5, minutes=30))
BRAND = Brand("Bakery", None, None, None, None, "RU")
FACTS = BookingFacts(
    brand=BRAND,
    service="Haircut",
    resource="Eve",
    starts_at=datetime(2027, 1, 20, 14, 30, tzinfo=KOLKATA),
    timezone="Asia/Kolkata",
    price=150_000,
    page_url="https://link.example",
)

ACTIONS = {"cancelled": "View the booking"}


@pytest.mark.parametrize(
    ("events", "previous", "status", "expected"),
    [
        ({CREATED}, None, "confirmed", "confirmed"),
        ({CREATED}, None, "pending_payment", "pending"),
        ({CREATED, MOVED}, None, "confirmed", "confirmed"),
        ({CREATED}, None, "cancelled", None),
        ({CREATED}, "confirmed", "cancelled", None),
        ({CREATED}, None, "completed", None),
        ({CHANGED}, "pending_payment", "confirmed", "confirmed"),
        ({CHANGED}, "cancelled", "confirmed", "confirmed"),
        ({CHANGED}, "cancelled", "pending_payment", "pending"),
        ({CHANGED}, "completed", "confirmed", None),
        ({CHANGED}, "confirmed", "no_show", None),
        ({CHANGED}, "confirmed", "cancelled", "cancelled"),
        ({CHANGED}, "cancelled", "cancelled", None),
        ({MOVED}, None, "cancelled", None),
        ({MOVED}, None, "confirmed", "moved"),
        ({MOVED}, None, "completed", None),
        ({MOVED, CHANGED}, "pending_payment", "confirmed", "confirmed"),
    ],
)
def test_events_and_status_select_the_email(
    events: set[str], previous: str | None, status: str, expected: str | None
) -> None:
    assert kind_of(events, previous, status) == expected


@pytest.mark.parametrize(
    ("kind", "title", "part"),
    [
        ("confirmed", "Booking confirmed", "Your booking at “Bakery” is confirmed."),
        ("pending", "Booking awaiting payment", "“Bakery” has reserved this time for you."),
        ("moved", "Booking changed", "Your booking at “Bakery” has a new time"),
        ("cancelled", "Booking cancelled", "Your booking at “Bakery” is cancelled."),
        ("reminder", "Booking reminder", "Your booking at “Bakery” is coming up."),
    ],
)
def test_email_has_the_title_of_its_kind_and_the_facts(kind: Kind, title: str, part: str) -> None:
    mail = client_mail_texts.mail("en", kind, FACTS)
    assert mail.subject == f"{title}: Haircut, 20.01 14:30"
    assert mail.text.startswith(f"{title}\n")
    for text in (
        part,
        "Time: Wednesday, 20 January 2027, 14:30 (Asia/Kolkata, UTC+05:30)",
        f"{ACTIONS.get(kind, 'View, move or cancel the booking')}: https://link.example",
        "this address was entered for a booking at “Bakery”",
    ):
        assert text in mail.text
    assert "https://" not in client_mail_texts.mail("en", kind, FACTS._replace(page_url=None)).text


def test_empty_facts_of_a_booking_are_left_out() -> None:
    client_mail_texts._catalogue.cache_clear()  # The file is read again here.
    assert client_mail_texts.fact_pairs("en", FACTS) == [
        ("Service", "Haircut"),
        ("Time", "Wednesday, 20 January 2027, 14:30 (Asia/Kolkata, UTC+05:30)"),
        ("Staff", "Eve"),
        ("Price", "1,500 ₽"),
    ]
    free = client_mail_texts.fact_pairs("en", FACTS._replace(price=0, resource=""))
    assert [label for label, _ in free] == ["Service", "Time"]


def test_names_in_an_email_are_shortened_to_one_line() -> None:
    long = "a\n" + "b" * 200
    names = FACTS._replace(
        service=long, resource=long, brand=BRAND._replace(name=mailed_name(long))
    )
    mail, short_name = (
        client_mail_texts.mail("en", "confirmed", names),
        "a " + "b" * (MAX_TITLE - 3) + "…",
    )
    assert mail.subject == f"Booking confirmed: {short_name}, 20.01 14:30"
    assert mail.text.count(f"“{short_name}”") == 2
    values = dict(client_mail_texts.fact_pairs("en", names))
    assert (values["Service"], values["Staff"]) == (short_name, short_name)


def test_names_with_quotes_have_inner_quotes_in_an_email() -> None:
    facts = FACTS._replace(brand=BRAND._replace(name="Салон «Цветение»"))
    mail = client_mail_texts.mail("ru", "cancelled", facts)
    assert mail.text.count("«Салон „Цветение“»") == 2
    assert "\nСалон «Цветение»\n" in mail.text
    english = FACTS._replace(brand=BRAND._replace(name="The “Rose”"))
    assert "“The ‘Rose’”" in client_mail_texts.mail("en", "cancelled", english).html
