"""Texts of SMS fit two segments, name the business and lead to the booking."""

from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.notifications.rules import sms_texts
from chalicelib.domains.notifications.rules.client_mail_texts import BookingFacts
from chalicelib.lib import sms_segments
from chalicelib.lib.localized import Language
from chalicelib.lib.markup.brands import Brand

URL = "https://booking.example.com/b/AbCdEf_1-45"
KINDS = sorted(sms_texts.KINDS)
NAMES = st.text(min_size=1, max_size=120) | st.lists(
    st.text("абвгдежAbc«»\"'’–🙂 ", min_size=1, max_size=14), min_size=1, max_size=20
).map(" ".join)


def facts(business: str = "Весна", service: str = "Стрижка", **fields: Any) -> BookingFacts:
    """Return a booking on 3 March at 15:00."""
    brand = Brand(business, None, None, None, None, "RU")
    starts_at = datetime(2027, 3, 3, 15, 0, tzinfo=UTC)
    values: dict[str, Any] = {
        "resource": "Grace",
        "timezone": "Europe/Moscow",
        "price": 100,
        "page_url": None,
    }
    return BookingFacts(brand=brand, service=service, starts_at=starts_at, **values | fields)


def text(language: Language, kind: Any, *names: str, url: str | None = URL) -> str:
    return sms_texts.text(language, kind, facts(*names), url)


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("confirmed", f"Весна: вы записаны на 03.03 в 15:00, Стрижка. {URL}"),
        ("moved", f"Весна: запись перенесена на 03.03 в 15:00, Стрижка. {URL}"),
        ("reminder", f"Весна: ждём вас 03.03 в 15:00, Стрижка. {URL}"),
        ("cancelled", "Весна: запись на 03.03 в 15:00 отменена, Стрижка."),
    ],
)
def test_text_in_russian(kind: str, written: str) -> None:
    assert text("ru", kind) == written


def test_a_text_in_english_takes_one_segment() -> None:
    written = text("en", "confirmed", "Ann’s Hair – Studio", "Men’s haircut")
    assert written == f"Ann's Hair - Studio: you are booked for 3 Mar 15:00, Men's haircut. {URL}"
    assert sms_segments.is_gsm_7(written)
    assert sms_segments.count(written) == 1


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Салон красоты «Весна» на Невском проспекте", "Салон красоты «Весна»"),
        ("Парикмахерская «Новая заря и компания друзей» у метро", "Парикмахерская Новая"),
        ("Студия маникюра, педикюра и наращивания ресниц", "Студия маникюра"),
    ],
)
def test_a_long_name_loses_words_and_no_half_of_its_quotes(name: str, shown: str) -> None:
    written = text("ru", "confirmed", name, "Мужская стрижка и бритьё")
    assert written.startswith(shown)
    assert written.count("«") == written.count("»")
    assert sms_segments.count(written) == 2
    assert written.endswith(URL)


@pytest.mark.parametrize("kind", KINDS)
@given(names=st.tuples(NAMES, NAMES), language=st.sampled_from(get_args(Language)))
def test_any_names_fit_two_segments(kind: str, names: tuple[str, str], language: Language) -> None:
    written = text(language, kind, *names)
    assert sms_segments.count(written) <= 2
    assert "15:00" in written
    assert "\n" not in written
    assert (URL in written) == (kind != "cancelled")


def test_a_link_in_a_name_is_no_link_in_the_sms() -> None:
    written = text("ru", "confirmed", "evil.example", "www.evil.example")
    assert "evil.example" not in written


def test_a_booking_without_a_link_has_none() -> None:
    assert text("en", "confirmed", url=None).endswith("Стрижка.")


@pytest.mark.parametrize(
    ("name", "shortened"),
    [
        ("Salon «Ada Eva»", ["Salon «Ada Eva»", "Salon Ada", "Salon"]),
        ('Salon "Ada Eva"', ['Salon "Ada Eva"', "Salon Ada", "Salon"]),
        ('"Ada" Hair, Nails', ['"Ada" Hair, Nails', '"Ada" Hair', '"Ada"']),
        ("Hair (cut dry)", ["Hair (cut dry)", "Hair cut", "Hair"]),
    ],
)
def test_a_shortened_name_has_no_half_of_a_pair_and_no_sign_at_its_end(
    name: str, shortened: list[str]
) -> None:
    assert [*sms_texts._by_words(name)] == shortened
