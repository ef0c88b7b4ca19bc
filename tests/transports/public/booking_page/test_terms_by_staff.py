"""What visitors and their programs read of a service whose price depends on the staff."""

import html as entities
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chalicelib.domains.sites.rules import sections
from chalicelib.transports.web import page_sections
from tests.conftest import Owner
from tests.factories.salon import Salon
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import (
    NOON,
    RUSSIAN,
    BookingPage,
    links,
    manage_path,
    text,
    value_of,
    visitor,
)
from tests.transports.public.booking_page.test_discovery import json_ld


@pytest.fixture
def salon(salon: Salon) -> Salon:
    """The first stylist takes an hour for 1,500, the master 90 minutes for 2,500."""
    api = salon.api
    master = api.post("/api/resources/create", {"name": "Master"})["resource"]["id"]
    Salon.set_hours(api, master, [{"weekdays": ["wed"], "start": "09:00", "end": "18:00"}])
    own = {"resourceId": master, "price": 250_000, "durationMin": 90}
    body = {
        "id": salon.service,
        "resourceIds": [salon.resource, master],
        "slotStepMin": 60,
        "resourceOverrides": [own],
    }
    api.post("/api/services/update", body)
    return Salon(api, salon.service, [salon.resource, master])


@pytest.fixture
def page(owner: Owner, salon: Salon) -> BookingPage:
    return BookingPage.opened(owner, salon)


def money(text_of_page: str) -> list[str]:
    return re.findall(r"(?:from )?[\d,]+ ₽", text_of_page)


def summary_of(html: str) -> str:
    return html.partition('<header class="about">')[2].partition("</header>")[0]


def test_the_list_says_from_and_each_member_has_own_terms(page: BookingPage) -> None:
    html = text(page.get(page.home))
    assert "from 1 h" in html
    assert "from 1,500 ₽" in html
    staff = text(page.get())
    assert "1 h · 1,500 ₽" in staff
    assert "1 h 30 min · 2,500 ₽" in staff
    assert "от 1 ч" in text(page.get(page.home, RUSSIAN))


def test_a_chosen_member_has_exact_terms_on_each_step(page: BookingPage) -> None:
    master = page.salon.resources[1]
    times = text(page.get(staff=master, day="2027-03-03"))
    form = page.get(staff=master, at=NOON)
    for html in (times, text(form)):
        assert money(summary_of(html)) == ["2,500 ₽"]
        assert "1 h 30 min" in summary_of(html)
    assert '<span class="whole">15:00–16:30</span>' in text(form)
    assert (value_of(form, "price"), value_of(form, "durationMin")) == ("250000", "90")


def test_a_time_with_anyone_is_that_of_the_cheapest_who_is_free_then(page: BookingPage) -> None:
    times = page.get(staff="any", day="2027-03-03")
    assert money(summary_of(text(times))) == ["from 1,500 ₽"]
    assert "<small>1 h, 1,500 ₽</small>" in text(times)
    (link,) = links(times, at="2027-03-03T12")
    assert parse_qs(urlsplit(link).query)["staff"] == [page.salon.resource]
    page.salon.book("2027-03-03T15:00", resourceId=page.salon.resource)
    (link,) = links(page.get(staff="any", day="2027-03-03"), at="2027-03-03T12")
    assert parse_qs(urlsplit(link).query)["staff"] == [page.salon.resources[1]]
    assert money(summary_of(text(visitor.call("GET", link)))) == ["2,500 ₽"]


def test_the_form_books_at_the_price_that_it_shows(page: BookingPage) -> None:
    form = page.get(staff="any", at=NOON)
    shown = {name: value_of(form, name) for name in ("price", "durationMin")}
    assert shown == {"price": "150000", "durationMin": "60"}
    assert page.send(staff="any", **shown).status == 200
    again = page.send(staff="any", once="2", **shown)
    assert (again.status, "no longer free" in text(again)) == (409, True)
    (booking,) = page.bookings
    assert (booking["resourceName"], booking["price"]) == ("Stylist 0", 150_000)


def test_a_new_price_of_a_member_is_shown_before_it_is_booked(page: BookingPage) -> None:
    master = page.salon.resources[1]
    form = page.get(staff=master, at=NOON)
    shown = {name: value_of(form, name) for name in ("price", "durationMin")}
    own = {"resourceId": master, "price": 260_000, "durationMin": 120}
    body = {"id": page.salon.service, "resourceOverrides": [own]}
    page.salon.api.post("/api/services/update", body)
    refused = page.send(staff=master, **shown)
    assert refused.status == 409
    assert value_of(refused, "price") == "260000"
    assert page.bookings == []


def test_a_member_who_is_away_makes_no_lowest_price(page: BookingPage) -> None:
    away = {"id": page.salon.resource, "status": "inactive"}
    page.salon.api.post("/api/resources/update", away)
    html = text(page.get(page.home))
    assert ("2,500 ₽" in html, "from" in html.partition('<ul class="cards">')[2]) == (True, False)


def test_a_client_who_moves_to_another_member_is_shown_the_end(page: BookingPage) -> None:
    path = manage_path(page.send(staff=page.salon.resource))
    master = page.salon.resources[1]
    query = f"step=move&staff=any&at=2027-03-03T09:00:00Z&resource={master}"
    question = text(visitor.call("GET", f"{path}?{query}"))
    assert '<span class="whole">12:00–13:30</span>' in question


def test_search_engines_and_language_models_read_the_lowest_price(page: BookingPage) -> None:
    (offer,) = json_ld(page, page.home)["makesOffer"]
    assert (offer["@type"], offer["lowPrice"]) == ("AggregateOffer", "1500.00")
    assert "price" not in offer
    llms = visitor.call("GET", f"{page.home}/llms.txt").body.decode()
    assert "from 60 min, from 1500.00 RUB" in llms


def test_the_prices_of_a_site_say_from(page: BookingPage, owner: Owner) -> None:
    place = f"{sections.BEGIN}[]-->\n<!--section:prices--><!--/section-->\n{sections.END}"
    html = page_sections.fill(owner.workspace.id, place)
    assert "from 1,500 ₽" in entities.unescape(html)


def test_assistants_read_the_terms_of_each_and_prepare_the_cheapest(page: BookingPage) -> None:
    assistant = Assistant.admitted(page)
    (service,) = assistant.call("list_services")["services"]
    names = ("price", "minutes", "priceFrom", "minutesFrom")
    assert [service[name] for name in names] == [150_000, 60, 150_000, 60]
    days = {"firstDay": "2027-03-03", "lastDay": "2027-03-03"}
    found = assistant.call("find_free_times", serviceId=page.salon.service, **days)
    assert [(each["name"], each["price"], each["minutes"]) for each in found["termsByStaff"]] == [
        ("Stylist 0", 150_000, 60),
        ("Master", 250_000, 90),
    ]

    def prepare(**staff: str) -> Any:
        start = {"serviceId": page.salon.service, "startAt": "2027-03-03T15:00:00+03:00"}
        return assistant.call("prepare_booking", **start, **staff)

    assert prepare()["staff"] == "Stylist 0"
    prepared = prepare(staffId=page.salon.resources[1])
    assert (prepared["price"], prepared["minutes"]) == (250_000, 90)
    form = visitor.call("GET", urlsplit(prepared["url"])._replace(scheme="", netloc="").geturl())
    assert value_of(form, "price") == "250000"
    assert "have changed" not in text(form)


def test_public_lists_have_the_lowest_and_say_that_it_depends(
    page: BookingPage, owner: Owner
) -> None:
    path = f"/api/public/services?workspace={owner.workspace.slug}"
    (service,) = visitor.get(path)["services"]
    names = ("price", "durationMin", "priceFrom", "durationFromMin")
    assert [service[name] for name in names] == [150_000, 60, 150_000, 60]
