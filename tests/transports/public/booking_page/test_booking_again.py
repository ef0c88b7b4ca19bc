"""The box for advertising on the booking page, and visits that are repeated."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conftest import Answer, Api, Owner, Time
from tests.factories.console import Person, person
from tests.factories.salon import Salon
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

BOX = 'name="advertising"'


@pytest.fixture
def asking(page: BookingPage) -> BookingPage:
    """A page whose service asks clients to book again."""
    body = {"id": page.salon.service, "bookAgainDays": 28}
    page.owner.api().post("/api/services/update", body)
    return page


def consents(page: BookingPage) -> list[Any]:
    api = page.owner.api()
    (client,) = api.get("/api/clients/list?search=grace@example.com")["clients"]
    history: list[Any] = api.get(f"/api/clients/{client['id']}/advertising")["history"]
    return history


def open_link(link: str) -> Answer:
    return visitor.call("GET", "/book/" + link.partition("/book/")[2])


def chosen(answer: Answer) -> str:
    return value_of(answer, "at")[:16]


class TestTheBox:
    def test_a_service_that_asks_nobody_has_no_box(self, page: BookingPage) -> None:
        assert BOX not in text(page.get(staff=page.salon.resource, at=NOON))

    @pytest.mark.parametrize("headers", [{}, RUSSIAN])
    def test_the_box_is_not_ticked_and_its_text_names_the_business(
        self, headers: dict[str, str], asking: BookingPage
    ) -> None:
        source = text(asking.get(headers=headers, staff=asking.salon.resource, at=NOON))
        box = re.search(rf"<input[^>]*{BOX}[^>]*>", source)
        assert box
        assert "checked" not in box[0]
        assert "required" not in box[0]
        label = source[box.end() :].partition("</label>")[0]
        assert asking.owner.workspace.name in label
        assert ("рекламу" in label) == bool(headers)

    def test_a_booking_without_the_tick_stores_nothing(self, asking: BookingPage) -> None:
        assert asking.send().status == 200
        assert consents(asking) == []

    def test_the_tick_is_stored_with_the_text_that_was_shown(self, asking: BookingPage) -> None:
        form = asking.get(headers=RUSSIAN, staff=asking.salon.resource, at=NOON)
        sent = asking.send(headers=RUSSIAN, advertising=value_of(form, "advertising"))
        assert sent.status == 200
        (entry,) = consents(asking)
        assert entry["label"] in text(form)
        assert (entry["state"], entry["source"], entry["language"]) == ("granted", "public", "ru")

    def test_a_text_that_has_changed_since_is_agreed_to_by_nobody(
        self, asking: BookingPage
    ) -> None:
        form = asking.get(staff=asking.salon.resource, at=NOON)
        asking.owner.api().post("/api/workspace/update", {"name": "Another name"})
        assert asking.send(advertising=value_of(form, "advertising")).status == 200
        assert consents(asking) == []

    def test_the_tick_stays_when_the_form_is_shown_again(self, asking: BookingPage) -> None:
        form = asking.get(staff=asking.salon.resource, at=NOON)
        again = asking.send(name="", advertising=value_of(form, "advertising"))
        assert again.status == 400
        assert re.search(rf"<input[^>]*{BOX}[^>]*checked", text(again))

    def test_programs_read_the_texts_and_send_the_version(self, asking: BookingPage) -> None:
        slug = asking.owner.workspace.slug
        read = Api(None).get
        (service,) = read(f"/api/public/services?workspace={slug}")["services"]
        assert service["asksForAdvertising"] is True
        texts = read(f"/api/public/business?workspace={slug}")["business"]["advertisingTexts"]
        order = asking.salon.order(NOON, "Grace", advertisingVersion=texts[0]["version"])
        visitor.post("/api/public/bookings", order)
        (entry,) = consents(asking)
        assert entry["label"] == texts[0]["text"]


class TestRepeats:
    def test_a_visit_is_repeated_by_one_press_after_booking(self, page: BookingPage) -> None:
        done = page.send()
        found = links(done, again="")
        assert len(found) == 6
        form = open_link(found[3])
        assert form.status == 200
        assert chosen(form) == "2027-03-31T12:00"
        assert page.send(value_of(form, "at"), staff=value_of(form, "staff")).status == 200
        assert len(page.bookings) == 2

    def test_a_visit_is_repeated_from_the_page_of_the_booking(self, page: BookingPage) -> None:
        shown = visitor.call("GET", manage_path(page.send()))
        link = links(shown, again="2027-03-10")[0]
        assert page.salon.resource in link
        assert "grace" not in link.lower()
        assert chosen(open_link(link)) == "2027-03-10T12:00"

    def test_nearest_times_are_offered_if_the_time_is_taken(self, page: BookingPage) -> None:
        link = links(visitor.call("GET", manage_path(page.send())), again="2027-03-10")[0]
        page.salon.book("2027-03-10T12:00:00Z")
        form = open_link(link)
        assert form.status == 200
        values = re.findall(r'type="radio" name="at" value="([^"]+)"', text(form))
        assert "2027-03-10T11:00:00.000Z" in values
        assert "2027-03-10T12:00:00.000Z" not in values
        assert len(values) == 5

    def test_a_time_beyond_the_horizon_leads_to_the_calendar(self, page: BookingPage) -> None:
        body = {"id": page.salon.service, "horizonDays": 7}
        page.owner.api().post("/api/services/update", body)
        link = links(visitor.call("GET", manage_path(page.send())), again="2027-04-28")[0]
        answer = open_link(link)
        assert answer.status == 200
        assert 'id="month"' in text(answer)

    def test_a_page_that_is_off_offers_no_repetition(self, page: BookingPage) -> None:
        path = manage_path(page.send())
        page.set(isOn=False)
        assert links(visitor.call("GET", path), again="") == []

    def test_times_that_have_passed_are_not_offered(self, page: BookingPage, time: Time) -> None:
        path = manage_path(page.send())
        time.now = datetime(2027, 3, 25, 12, tzinfo=UTC)
        assert len(links(visitor.call("GET", path), again="")) == 3

    def test_a_page_with_staff_to_choose_keeps_the_time(self, api: Api, owner: Owner) -> None:
        salon = Salon.opened(api, [{}, {}])
        page = BookingPage.opened(owner, salon)
        source = page.get(again="2027-03-10T12:00:00.000Z", staff="01MCCKG2G0HSG9ESV8VRTQCMMW")
        assert chosen(open_link(links(source, staff=salon.resource)[0])) == "2027-03-10T12:00"

    @pytest.mark.parametrize("moment", ["x", "2027-03-10", "2020-01-01T00:00:00Z", "9999-12-31"])
    def test_a_malformed_time_leads_to_the_calendar(self, moment: str, page: BookingPage) -> None:
        answer = page.get(staff=page.salon.resource, again=moment)
        assert answer.status == 200
        assert 'id="month"' in text(answer)

    def test_the_owner_repeats_a_visit_for_the_client(self, page: BookingPage) -> None:
        page.send()
        (booking,) = page.bookings
        console: Person = person(page.owner)
        base = f"/console/w/{page.owner.workspace.slug}/bookings"
        shown = console.get(f"{base}/{booking['id']}")
        link = links(shown, date="2027-03-31")[0]
        assert f"client={booking['client']['id']}" in link
        form = console.get(link)
        assert form.status == 200
        assert re.search(
            r'value="2027-03-31T12:00:00.000Z [^"]+"[^>]*(checked|selected)', text(form)
        )
