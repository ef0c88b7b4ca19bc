"""The page of a new booking: the client first, then the service, then a time."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from infra.bench.dynamodb.usage import metering
from tests.conftest import Owner, Time, call_console
from tests.factories.console import Person, person
from tests.factories.salon import CREATE, Salon
from tests.transports.console.forms.helpers import text


@dataclass(frozen=True)
class Desk:
    """A salon of Anna and Olga, and its owner in the console. In Moscow it is Friday, 15:00."""

    salon: Salon
    boss: Person
    workspace: str
    path: str

    def open(self, query: str = "") -> str:
        return text(self.boss.get(f"{self.path}{query}"))

    def send(self, **form: str) -> Any:
        return self.boss.post(self.path, {"once": "1", **form})

    def show(self, **form: str) -> str:
        return text(self.send(**form))

    def book(self, start: str, name: str, phone: str) -> None:
        order = self.salon.order(start) | {"client": {"name": name, "phone": phone}}
        order["ignoreSchedule"] = True
        self.salon.api.post(CREATE, order)

    def clients(self) -> list[Any]:
        clients: list[Any] = call_console(self.workspace, "list_clients", size=50)["clients"]
        return clients


@pytest.fixture
def desk(owner: Owner, time: Time) -> Desk:
    salon = Salon.opened(owner.api(), [{"name": "Anna"}, {"name": "Olga"}])
    path = f"/console/w/{owner.workspace.slug}/bookings/new"
    return Desk(salon, person(owner), owner.workspace.id, path)


def value_of(page: str, name: str) -> str:
    tag = re.search(rf'<input id="{name}"[^>]*>', page)
    assert tag, name
    return re.search(r'value="([^"]*)"', tag[0])[1]  # type: ignore[index]  # each has a value


def buttons(page: str) -> list[str]:
    """Return the ids of the services that have a button."""
    return re.findall(r'name="choose" value="([^"]*)"', page)


def starts(page: str) -> list[str]:
    """Return the starts that can be chosen."""
    return [value[:16] for value in re.findall(r'name="start" value="([^" ]*)', page)]


def chosen(page: str, name: str) -> list[str]:
    return re.findall(rf'name="{name}" value="([^"]*)" checked', page)


class TestClient:
    def test_namesakes_are_told_apart_by_their_next_and_last_bookings(self, desk: Desk) -> None:
        desk.book("2027-01-14T10:00", "Ada", "8 914 700-12-10")
        desk.book("2027-01-25T11:00", "Ada", "8 914 700-12-11")
        page = desk.show(q="ada", action="find")
        assert "Last: Thu 14 Jan, 10:00, Haircut" in page
        assert "Next: Mon 25 Jan, 11:00, Haircut" in page
        assert chosen(page, "client") == [""]

    def test_the_only_one_who_is_found_is_chosen(self, desk: Desk) -> None:
        booking = desk.salon.book("2027-01-18T10:00", "Ada")
        page = desk.show(q="ada", action="find")
        assert chosen(page, "client") == [booking["client"]["id"]]

    @pytest.mark.parametrize(
        ("typed", "name", "phone", "email"),
        [
            ("8 914 700-12-10", "", "8 914 700-12-10", ""),
            ("+7 (914) 700 12 10", "", "+7 (914) 700 12 10", ""),
            ("Ada Byron", "Ada Byron", "", ""),
            ("Ada 89147001210", "Ada", "89147001210", ""),
            ("ada@example.org, Ada", "Ada", "", "ada@example.org"),
            ("Room 12", "Room 12", "", ""),
        ],
    )
    def test_what_matches_nobody_becomes_a_new_client(
        self, typed: str, name: str, phone: str, email: str, desk: Desk
    ) -> None:
        page = desk.show(q=typed, action="find")
        got = [value_of(page, field) for field in ("q", "name", "phone", "email")]
        assert got == ["", name, phone, email]
        assert "Nobody was found" in page

    def test_nothing_that_was_typed_is_lost(self, desk: Desk) -> None:
        page = desk.show(q="8 914 700-12-10", action="find", name="Ada", notes="Tea", phone="1")
        assert value_of(page, "name") == "Ada"
        assert value_of(page, "phone") == "1"
        assert value_of(page, "q") == "8 914 700-12-10"
        assert "Tea</textarea>" in page

    def test_a_name_in_the_search_alone_books_a_new_client(self, desk: Desk) -> None:
        form = {"q": "Ada 8 914 700-12-10", "action": "book", "exact": "16:00"}
        assert desk.send(service=desk.salon.service, date="2027-01-18", **form).status == 303
        (client,) = desk.clients()
        assert (client["name"], client["phone"]) == ("Ada", "+79147001210")

    def test_a_name_in_the_search_that_somebody_has_asks_who_it_is(self, desk: Desk) -> None:
        booking = desk.salon.book("2027-01-18T10:00", "Ada")
        form = {"q": "Ada", "action": "book", "exact": "16:00", "date": "2027-01-18"}
        answer = desk.send(service=desk.salon.service, **form)
        assert answer.status == 400
        page = answer.body.decode()
        assert "Choose who it is" in page
        assert value_of(page, "exact") == "16:00"
        assert len(desk.clients()) == 1
        form["client"] = booking["client"]["id"]
        assert desk.send(service=desk.salon.service, **form).status == 303
        assert len(desk.clients()) == 1


class TestService:
    def test_the_services_that_the_client_had_come_first(self, desk: Desk) -> None:
        api = desk.salon.api
        for name in ("Aroma", "Beard", "Zen"):
            body = {"name": name, "durationMin": 30, "resourceIds": desk.salon.resources}
            zen = api.post("/api/services/create", body)["service"]["id"]
        booked = desk.salon.book("2027-01-18T10:00", serviceId=zen)
        assert buttons(desk.open())[0] != zen
        page = desk.open(f"?client={booked['client']['id']}")
        assert buttons(page)[0] == zen
        assert "had before" in page

    def test_one_press_chooses_a_service_and_keeps_the_form(self, desk: Desk) -> None:
        body = {"name": "Beard", "durationMin": 30, "resourceIds": desk.salon.resources}
        beard = desk.salon.api.post("/api/services/create", body)["service"]["id"]
        page = desk.show(choose=beard, name="Ada", notes="Tea")
        assert f'name="service" value="{beard}"' in page
        assert value_of(page, "name") == "Ada"
        assert starts(page)

    def test_many_services_are_searched_by_name(self, desk: Desk) -> None:
        for number in range(12):
            body = {"name": f"Care {number}", "durationMin": 30}
            last = desk.salon.api.post("/api/services/create", body)["service"]["id"]
        assert len(buttons(desk.open())) == 10
        page = desk.show(**{"find-service": "Care 11", "find": "service", "name": "Ada"})
        assert buttons(page) == [last]
        assert value_of(page, "name") == "Ada"


class TestTimes:
    def test_the_next_free_times_of_several_days_are_there_at_once(self, desk: Desk) -> None:
        found = starts(desk.open())
        assert found[0] == "2027-01-15T12:00"
        assert len({start[:10] for start in found}) == 4
        assert all(
            sum(start.startswith(day) for start in found) <= 4
            for day in {start[:10] for start in found}
        )

    def test_a_button_shows_all_times_of_a_day(self, desk: Desk) -> None:
        found = starts(desk.show(service=desk.salon.service, day="2027-01-18", name="Ada"))
        assert {start[:10] for start in found} == {"2027-01-18"}
        assert len(found) > 6

    def test_a_member_of_the_staff_filters_the_times(self, desk: Desk) -> None:
        anna, olga = desk.salon.resources
        Salon.set_hours(
            desk.salon.api, olga, [{"weekday": "mon", "start": "12:00", "end": "14:00"}]
        )
        found = starts(desk.open(f"?staff={olga}"))
        assert found[0] == "2027-01-18T09:00"
        assert {start[:10] for start in found} == {"2027-01-18"}
        assert starts(desk.open(f"?staff={anna}"))[0] == "2027-01-15T12:00"

    def test_the_first_free_time_weeks_ahead_is_found(self, desk: Desk) -> None:
        body = {"startAt": "2027-01-15", "endAt": "2027-02-14"}
        desk.salon.api.post("/api/resources/create-time-off", body)
        assert starts(desk.open())[0][:10] == "2027-02-15"

    def test_the_chosen_time_stays_chosen_while_the_client_is_found(self, desk: Desk) -> None:
        page = desk.open()
        value = re.findall(r'name="start" value="([^"]*)"', page)[7]
        page = desk.show(service=desk.salon.service, start=value, q="Ada", action="find")
        assert chosen(page, "start") == [value]

    def test_a_gap_of_the_calendar_has_its_time_chosen(self, desk: Desk) -> None:
        page = desk.open(f"?date=2027-01-18&staff={desk.salon.resource}&time=10:00")
        assert chosen(page, "start") == [f"2027-01-18T07:00:00.000Z {desk.salon.resource}"]

    def test_a_typed_time_without_a_day_is_one_of_today(self, desk: Desk) -> None:
        form = {"action": "book", "name": "Ada", "exact": "17:05", "outside": "1", "date": ""}
        assert desk.send(service=desk.salon.service, **form).status == 303
        (booking,) = call_console(desk.workspace, "list_bookings")["bookings"]
        assert booking["startLocal"][:16] == "2027-01-15T17:05"

    def test_a_wrong_day_keeps_the_form(self, desk: Desk) -> None:
        answer = desk.send(service=desk.salon.service, date="soon", name="Ada", action="times")
        assert answer.status == 400
        assert value_of(answer.body.decode(), "name") == "Ada"


def test_a_search_takes_a_bounded_number_of_requests(desk: Desk) -> None:
    for number in range(8):
        desk.book(f"2027-01-18T{9 + number:02}:00", f"Ada {number}", f"8 914 700-12-1{number}")
    with metering() as usage:
        desk.show(q="ada", action="find")
    assert len(usage.calls) <= 40


@dataclass(frozen=True)
class Visits:
    """A desk whose salon also has a colouring by Olga, and a shave by both."""

    desk: Desk
    colour: str
    shave: str

    @property
    def cut(self) -> str:
        return self.desk.salon.service

    def form(self, *then: str, **fields: str) -> dict[str, str]:
        """Return a form with the haircut and services that follow it."""
        return {"service": self.cut, "then": ".".join(then), "name": "Ada", **fields}

    def book(self, *then: str, **fields: str) -> Any:
        return self.desk.send(**{**self.form(*then), "action": "book", **fields})

    def bookings(self) -> list[Any]:
        listed = call_console(self.desk.workspace, "list_bookings", sort="startAtAsc")
        bookings: list[Any] = listed["bookings"]
        return bookings


@pytest.fixture
def visits(desk: Desk) -> Visits:
    def service(name: str, minutes: int, price: int, staff: list[str]) -> str:
        body = {"name": name, "durationMin": minutes, "price": price, "resourceIds": staff}
        created = desk.salon.api.post("/api/services/create", body)["service"]
        return str(created["id"])

    olga = desk.salon.resources[1:]
    colour = service("Colouring", 90, 250_000, olga)
    return Visits(desk, colour, service("Shave", 30, 50_000, desk.salon.resources))


def added(page: str) -> list[str]:
    """Return the ids of the services that can be added."""
    return re.findall(r'name="add" value="([^"]*)"', page)


def then_of(page: str) -> list[str]:
    found = re.search(r'name="then" value="([^"]*)"', page)
    return found[1].split(".") if found else []


class TestVisit:
    def test_a_button_adds_a_service_and_keeps_the_form(self, visits: Visits) -> None:
        page = visits.desk.show(**visits.form(notes="Tea"), add=visits.colour)
        assert then_of(page) == [visits.colour]
        assert value_of(page, "name") == "Ada"
        assert "Tea</textarea>" in page
        assert "In all: 2 h 30 min · 4,000 ₽" in page
        assert re.findall(r"Remove (\w+)", page) == ["Haircut", "Colouring"]

    def test_only_times_at_which_the_whole_visit_fits_are_offered(self, visits: Visits) -> None:
        visits.desk.salon.book(
            "2027-01-18T12:00",
            serviceId=visits.colour,
            resourceId=visits.desk.salon.resources[1],
        )
        form = visits.form(visits.colour, date="2027-01-18", action="times")
        found = [start[11:] for start in starts(visits.desk.show(**form))]
        # In UTC. Olga colours from 9:00 to 10:30 and leaves at 15:00, and the haircut comes first.
        assert found == ["06:00", "10:00", "11:00", "12:00"]

    def test_the_next_free_times_are_those_of_the_whole_visit(self, visits: Visits) -> None:
        found = starts(visits.desk.show(**visits.form(visits.colour, action="times")))
        # On Friday, the haircut alone could begin until 17:00.
        assert [start for start in found if start < "2027-01-16"] == ["2027-01-15T12:00"]

    def test_a_visit_is_booked_whole(self, visits: Visits) -> None:
        page = visits.desk.show(**visits.form(visits.colour, visits.shave, action="times"))
        start = re.findall(r'name="start" value="([^"]*)"', page)[0]
        answer = visits.book(visits.colour, visits.shave, start=start)
        assert answer.status == 303
        first, second, third = visits.bookings()
        assert [each["serviceName"] for each in (first, second, third)] == [
            "Haircut",
            "Colouring",
            "Shave",
        ]
        assert {each["visitId"] for each in (first, second, third)} == {first["id"]}
        assert (first["endAt"], second["endAt"]) == (second["startAt"], third["startAt"])
        assert answer.headers["Location"].endswith(f"/bookings/{first['id']}?done=booking_made")

    def test_a_second_press_books_nothing_more(self, visits: Visits) -> None:
        fields = {"date": "2027-01-18", "exact": "10:00"}
        assert visits.book(visits.colour, **fields).status == 303
        assert visits.book(visits.colour, **fields).status == 303
        assert len(visits.bookings()) == 2

    def test_a_chosen_person_does_what_is_theirs(self, visits: Visits) -> None:
        anna, olga = visits.desk.salon.resources
        page = visits.desk.show(**visits.form(visits.colour, staff=anna, action="times"))
        start = re.findall(r'name="start" value="([^"]*)"', page)[0]
        assert visits.book(visits.colour, staff=anna, start=start).status == 303
        assert [each["resourceId"] for each in visits.bookings()] == [anna, olga]

    def test_a_taken_time_offers_others_and_a_chosen_person_stays(self, visits: Visits) -> None:
        anna, olga = visits.desk.salon.resources
        taken = {"serviceId": visits.colour, "resourceId": olga}
        visits.desk.salon.book("2027-01-18T10:30", **taken)
        fields = {"staff": anna, "date": "2027-01-18"}
        answer = visits.book(visits.colour, exact="10:00", **fields)
        assert answer.status == 409
        page = answer.body.decode()
        assert then_of(page) == [visits.colour]
        near = re.findall(r'name="near" value="([^"]*)"', page)[-1]  # Both are free.
        assert visits.book(visits.colour, exact="10:00", near=near, **fields).status == 303
        made = [each for each in visits.bookings() if "visitId" in each]
        assert [each["resourceId"] for each in made] == [anna, olga]

    def test_a_visit_may_be_outside_of_the_hours_and_never_at_a_taken_time(
        self, visits: Visits
    ) -> None:
        fields = {"date": "2027-01-18", "exact": "21:00"}
        assert visits.book(visits.colour, **fields).status == 409
        assert visits.book(visits.colour, **fields, outside="1").status == 303
        assert len(visits.bookings()) == 2
        later = {"date": "2027-01-18", "exact": "21:30", "outside": "1", "once": "2"}
        assert visits.book(visits.colour, **later).status == 409
        assert len(visits.bookings()) == 2

    def test_the_first_service_is_removed_and_the_next_one_takes_its_place(
        self, visits: Visits
    ) -> None:
        page = visits.desk.show(**visits.form(visits.colour, visits.shave), remove="0")
        assert f'name="service" value="{visits.colour}"' in page
        assert then_of(page) == [visits.shave]
        page = visits.desk.show(**visits.form(visits.colour), remove="1")
        assert then_of(page) == []
        assert visits.colour in buttons(page)

    def test_five_services_are_the_most(self, visits: Visits) -> None:
        four = [visits.shave] * 4
        assert added(visits.desk.show(**visits.form(*four[:3]), action="times"))
        assert not added(visits.desk.show(**visits.form(*four), action="times"))
        fields = {"date": "2027-01-18", "exact": "10:00"}
        answer = visits.book(*four, visits.shave, **fields)
        assert answer.status == 400
        assert "A visit has at most five services" in answer.body.decode()
        assert not visits.bookings()

    def test_a_service_that_is_no_longer_offered_is_taken_out_and_named(
        self, visits: Visits
    ) -> None:
        visits.desk.salon.api.post("/api/services/delete", {"id": visits.colour})
        fields = {"date": "2027-01-18", "exact": "10:00"}
        answer = visits.book(visits.colour, **fields)
        page = answer.body.decode()
        assert answer.status >= 400
        assert not visits.bookings()
        assert "no longer offered" in page
        assert then_of(page) == []

    def test_many_services_are_searched_for_one_to_add(self, visits: Visits) -> None:
        for number in range(12):
            body = {"name": f"Care {number}", "durationMin": 30}
            last = visits.desk.salon.api.post("/api/services/create", body)["service"]["id"]
        assert len(added(visits.desk.show(**visits.form()))) == 10
        search = {"find-more": "Care 11", "find": "more"}
        page = visits.desk.show(**visits.form(visits.colour), **search)
        assert added(page) == [last]
        assert then_of(page) == [visits.colour]

    def test_a_visit_is_repeated_with_all_of_its_services(self, visits: Visits) -> None:
        fields = {"date": "2027-01-18", "exact": "10:00"}
        assert visits.book(visits.colour, **fields).status == 303
        second = visits.bookings()[1]
        page = text(visits.desk.boss.get(visits.desk.path.replace("new", second["id"])))
        links = re.findall(r'bookings/new\?([^"]*)"', page)
        query = links[0].replace("&amp;", "&")
        assert f"service={visits.cut}" in query
        assert f"then={visits.colour}" in query
        assert "time=10%3A00" in query
        repeated = visits.desk.open(f"?{query}")
        assert then_of(repeated) == [visits.colour]
        assert chosen(repeated, "start")[0].startswith("2027-01-25T07:00")
