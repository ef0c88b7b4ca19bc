"""The pages of the console for the bookings of a day, one booking, moves and walk-ins."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.transports.console import choices
from tests.conftest import Answer, Owner, Time, call_console, call_operator
from tests.factories.console import Person, begun, person
from tests.factories.salon import CREATE, Salon
from tests.factories.services import store_booking
from tests.support.restoring import Snapshots
from tests.transports.console.forms.helpers import error_beside, text, value_of

DAY = "2027-01-18"
"""A Monday. The clock of the tests shows the previous Friday."""
NewOwner = Callable[..., Owner]


@dataclass(frozen=True)
class Desk:
    """A salon in Vladivostok with two staff members, and the pages of its bookings."""

    owner: Owner
    salon: Salon
    console_owner: Person

    @classmethod
    def opened(cls, owner: Owner, **salon: Any) -> "Desk":
        opened = Salon.opened(owner.api(), **{"resources": [{}, {}], **salon})
        return cls(owner, opened, person(owner))

    @property
    def path(self) -> str:
        return f"/console/w/{self.owner.workspace.slug}/bookings"

    def page(self, query: str = "") -> str:
        """Return the visible text of the calendar or the list."""
        answer = self.console_owner.get(self.path + query)
        assert answer.status == 200, answer.body
        return text(answer)

    def book_by_phone(self, start: str) -> Any:
        """Book for Ada, who leaves a phone number."""
        client = {"name": "Ada", "phone": "8 914 700-12-34"}
        return self.salon.api.post(CREATE, self.salon.order(start) | {"client": client})["booking"]

    def read_row(self, booking: str) -> Any:
        return call_console(self.owner.workspace.id, "get_booking", id=booking)["booking"]

    def change(self, booking: str, who: Person | None = None, **fields: str) -> Answer:
        """Send the form of a booking, from a page that has just been opened."""
        fields.setdefault("version", str(self.read_row(booking)["version"]))
        return (who or self.console_owner).post(f"{self.path}/{booking}", fields)

    def member(self) -> Person:
        """Return a second user of the bookings pages."""
        call_operator(
            "create_account", email="eve@example.com", password="correct horse", name="Eve"
        )
        who = {"email": "eve@example.com", "role": "member"}
        call_operator("add_member", workspaceId=self.owner.workspace.id, **who)
        return Person("eve@example.com", begun("eve@example.com"))

    def slots(self, answer: Answer) -> dict[str, str]:
        """Return the values of the offered times, by their text."""
        radios = re.findall(
            r'name="(?:start|near)" value="([^"]*)"[^>]*><span>([^<]*)', text(answer)
        )
        return {label.strip(): value for value, label in radios}


@pytest.fixture
def desk(new_owner: NewOwner, time: Time, snapshots: Snapshots) -> Desk:
    def make() -> Desk:
        return Desk.opened(new_owner(timezone="Asia/Vladivostok"))

    opened: Desk = snapshots.once_upon_equal_rows("a desk in Vladivostok", make)
    return replace(opened, console_owner=replace(opened.console_owner))


class TestCalendar:
    def test_today_begins_at_midnight_in_the_workspaces_zone(self, desk: Desk, time: Time) -> None:
        desk.salon.book(f"{DAY}T09:00", "Early")
        time.now = datetime(2027, 1, 17, 13, 59, tzinfo=UTC)
        desk.console_owner.token = desk.owner.start_session()
        page = desk.page()
        assert "Sunday, 17 January 2027" in page
        assert "Early" not in page
        time.now = datetime(2027, 1, 17, 14, tzinfo=UTC)
        page = desk.page()
        assert "Monday, 18 January 2027" in page
        assert "Early" in page
        assert "Times are in the time zone Asia/Vladivostok" in page
        assert "09:00</time>–10:00" in page

    def test_a_day_leads_to_the_days_around_it_and_to_today(self, desk: Desk) -> None:
        page = desk.page(f"?date={DAY}&staff={desk.salon.resource}")
        for day in ("2027-01-17", "2027-01-19"):
            assert f"?view=day&date={day}&staff={desk.salon.resource}" in page
        assert f'href="{desk.path}?view=day&staff={desk.salon.resource}"' in page
        assert "?view=week&date=2027-01-25" in desk.page(f"?view=week&date={DAY}")

    def test_free_time_leads_to_a_new_booking_with_that_time_chosen(self, desk: Desk) -> None:
        desk.salon.book(f"{DAY}T10:00", resourceId=desk.salon.resource)
        page = desk.page(f"?date={DAY}&staff={desk.salon.resource}")
        (link,) = re.findall(r'href="([^"]*time=11:00)"', page)
        answer = desk.console_owner.get(link)
        checked_radio = re.search(r'value="([^"]*)" checked><span>([^<]*)', text(answer))
        assert checked_radio
        assert checked_radio[2].strip() == "11:00"
        assert checked_radio[1].endswith(desk.salon.resource)

    def test_a_member_of_the_staff_sees_the_own_calendar_first(self, desk: Desk) -> None:
        for resource, name in zip(desk.salon.resources, ("Ada", "Zoe"), strict=True):
            desk.salon.book(f"{DAY}T12:00", name, resourceId=resource)
        account = desk.owner.workspace.owner_id
        path = f"/console/w/{desk.owner.workspace.slug}/members/{account}"
        assert desk.console_owner.post(path, {"resource": desk.salon.resources[0]}).status == 303
        for query in (f"?date={DAY}", f"?view=week&date={DAY}"):
            page = desk.page(query)
            assert "Ada" in page
            assert "Zoe" not in page
        assert "Zoe" in desk.page(f"?date={DAY}&staff=all")
        assert "?view=day&date=2027-01-19&staff=all" in desk.page(f"?date={DAY}&staff=all")

    @pytest.mark.parametrize("view", ["day", "week"])
    def test_a_member_whose_staff_record_is_deleted_sees_everyone(
        self, view: str, desk: Desk
    ) -> None:
        linked_id, other_id = desk.salon.resources[:2]
        account = desk.owner.workspace.owner_id
        path = f"/console/w/{desk.owner.workspace.slug}/members/{account}"
        desk.console_owner.post(path, {"resource": linked_id})
        desk.salon.book(f"{DAY}T12:00", "Zoe", resourceId=other_id)
        assert "Zoe" not in desk.page(f"?view={view}&date={DAY}")
        desk.salon.api.post("/api/resources/delete", {"id": linked_id})
        page = desk.page(f"?view={view}&date={DAY}")
        assert "Zoe" in page
        assert "staff=all" not in page

    def test_a_group_shows_its_free_places_next_to_its_bookings(self, desk: Desk) -> None:
        group = desk.salon.resource
        desk.salon.api.post("/api/resources/update", {"id": group, "capacity": 2})
        desk.salon.book(f"{DAY}T12:00", "Ada", resourceId=group)
        page = desk.page(f"?date={DAY}&staff={group}")
        places = dict(re.findall(r"(\d\d:00)–\d\d:00 (\d) of 2 free", page))
        assert (places["11:00"], places["12:00"], places["13:00"]) == ("2", "1", "2")
        lanes = re.findall(r'<li class="slot [^"]*? (l\d c\d w\d)">.*?>(\d\d:\d\d)', page)
        assert lanes == [("l0 c0 w2", "12:00"), ("l1 c0 w2", "12:00")]
        desk.salon.book(f"{DAY}T12:00", "Zoe", resourceId=group)
        assert "12:00–13:00 1 of 2 free" not in desk.page(f"?date={DAY}&staff={group}")

    def test_bookings_that_have_no_place_beside_others_are_counted(self, desk: Desk) -> None:
        group = desk.salon.resource
        desk.salon.api.post("/api/resources/update", {"id": group, "capacity": 9})
        booked = [
            desk.salon.book(f"{DAY}T12:00", f"N{n}", resourceId=group)["id"] for n in "abcdef"
        ]
        page = desk.page(f"?date={DAY}&staff={group}")
        assert sum(f'/bookings/{booking}"' in page for booking in booked) == 2
        assert "12:00–13:00 3 of 9 free" in page
        (link,) = re.findall(r'href="([^"]*)" title="4 more bookings"', page)
        listed = desk.page(link)
        assert all(f'/bookings/{booking}"' in listed for booking in booked)

    def test_all_staff_can_be_reached_from_a_day(self, desk: Desk) -> None:
        for number in range(24):
            desk.salon.api.post("/api/resources/create", {"name": f"Person {number}"})
        desk.salon.book(f"{DAY}T12:00", "Zoe", resourceId=desk.salon.resources[1])
        first = desk.page(f"?date={DAY}")
        assert "Staff: 1–12 of 26. Those with bookings come first." in first
        found, page = set[str](), first
        while True:
            found |= set(re.findall(r'<h3 class="line">([^<]*)</h3>', page))
            following = re.search(r'href="([^"]*)" rel="next">Next', page)
            if following is None:
                break
            page = desk.page(following[1])
            assert "Zoe" not in page
        assert found >= {f"Person {number}" for number in range(24)}
        assert len(found) == 26
        assert "Only the first" not in page

    def test_slots_are_placed_on_a_time_axis_with_a_line_at_the_current_time(
        self, desk: Desk, time: Time
    ) -> None:
        time.now = datetime(2027, 1, 18, 1, 40, tzinfo=UTC)
        desk.console_owner.token = desk.owner.start_session()
        for resource in desk.salon.resources:
            desk.salon.book(f"{DAY}T12:00", "Ada", resourceId=resource)
        page = desk.page(f"?view=week&date={DAY}")
        # The axis begins at 9:00. It is 11:40 in Vladivostok. Two bookings share the column.
        assert 'class="slot now t2 m2 h0 q0"' in page
        assert re.findall('class="slot booked ([^"]*)"', page) == [
            "t3 m0 h1 q0 l0 c0 w2",
            "t3 m0 h1 q0 l1 c1 w2",
        ]

    def test_a_chosen_time_is_kept_until_the_service_is_chosen(self, desk: Desk) -> None:
        desk.salon.api.post("/api/services/create", {"name": "Tea", "durationMin": 10, "price": 0})
        page = desk.page(f"?date={DAY}&staff={desk.salon.resource}")
        (link,) = re.findall(r'href="([^"]*time=09:00)"', page)
        answer = desk.console_owner.get(link.replace("09:00", "11:00"))
        assert "You chose 11:00 in the calendar." in text(answer)
        (start_time,) = re.findall('name="time" value="([^"]*)"', text(answer))
        fields = {"action": "times", "service": desk.salon.service, "date": DAY, "time": start_time}
        times_page = desk.console_owner.post(f"{desk.path}/new", fields)
        (time_label,) = re.findall(
            r'name="start" value="[^"]*" checked><span>([^<]*)', text(times_page)
        )
        assert time_label.strip() == "11:00"

    def test_closed_hours_and_time_off_are_named(self, desk: Desk) -> None:
        body = {
            "startAt": DAY,
            "endAt": DAY,
            "reason": "Holiday",
            "resourceId": desk.salon.resource,
        }
        desk.salon.api.post("/api/resources/create-time-off", body)
        desk.salon.set_hours(desk.salon.api, desk.salon.resources[1], [])
        page = desk.page(f"?date={DAY}")
        assert "All day" in page
        assert "Holiday" in page
        assert "Closed" in page

    def test_an_invalid_date_is_reported_and_today_is_shown(self, desk: Desk) -> None:
        answer = desk.console_owner.get(f"{desk.path}?date=tomorrow")
        assert answer.status == 400
        assert "Enter a date, such as 2027-01-31." in text(answer)
        assert "Friday, 15 January 2027" in text(answer)

    @pytest.mark.parametrize("view", ["day", "week"])
    def test_a_busy_day_or_week_says_that_there_is_more_and_stays_light(
        self, view: str, desk: Desk
    ) -> None:
        for number in range(90):
            start = datetime(2027, 1, 18, 1, tzinfo=UTC) + timedelta(minutes=5 * number)
            resource = desk.salon.resources[number % 2]
            store_booking(desk.owner.workspace.id, resource, start, minutes=30)
        page = desk.page(f"?view={view}&date={DAY}")
        more = "30 more bookings" if view == "week" else "Only the first 60 of 90 bookings"
        assert more in page
        assert "90 bookings" in page
        assert len(page.encode()) <= 60_000 - 24_000  # besides the style sheet and the script

    def test_the_overview_leads_to_bookings(self, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00")
        overview = text(desk.console_owner.get(desk.path.removesuffix("/bookings")))
        for link in (f"/{booking['id']}", "", "?view=list"):
            assert f'href="{desk.path}{link}"' in overview


class TestStatus:
    def test_a_booking_shows_its_client_and_the_history_with_names(self, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00", notes="By the window")
        page = text(desk.console_owner.get(f"{desk.path}/{booking['id']}"))
        for part in ("Ada", "Haircut", "ada@example.com", "By the window", "through the API"):
            assert part in page
        assert "Monday, 18 January 2027" in page
        assert "1,500" in page

    @pytest.mark.parametrize("status", ["completed", "no_show", "cancelled"])
    def test_a_status_is_set_once_however_often_it_is_sent(self, status: str, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00")["id"]
        version = str(desk.read_row(booking)["version"])
        for _ in "12":  # The second click is of the same page.
            answer = desk.change(booking, action=status, version=version)
            assert answer.status == 303
            assert answer.headers["Location"].endswith(f"?done=booking_{status}")
        assert desk.read_row(booking)["status"] == status
        assert len(desk.read_row(booking)["statusHistory"]) == 2

    def test_a_cancellation_asks_first_and_keeps_its_reason(self, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00")["id"]
        confirmation = text(desk.console_owner.get(f"{desk.path}/{booking}?do=cancel"))
        assert "Cancel this booking?" in confirmation
        assert desk.read_row(booking)["status"] == "confirmed"
        desk.change(booking, action="cancelled", reason="Fell ill")
        assert "Fell ill" in text(desk.console_owner.get(f"{desk.path}/{booking}"))

    def test_a_change_of_another_person_is_shown_before_it_is_overwritten(self, desk: Desk) -> None:
        booking, eve = desk.salon.book(f"{DAY}T10:00")["id"], desk.member()
        version = str(desk.read_row(booking)["version"])
        assert desk.change(booking, eve, action="no_show", version=version).status == 303
        answer = desk.change(booking, action="cancelled", reason="Fell ill", version=version)
        assert answer.status == 409
        assert "Someone changed this" in text(answer)
        assert "no-show" in text(answer)
        assert desk.read_row(booking)["status"] == "no_show"

    def test_a_booking_is_restored_if_its_time_is_free(self, desk: Desk) -> None:
        first = desk.salon.book(f"{DAY}T10:00", resourceId=desk.salon.resource)["id"]
        desk.salon.set_status(first, "cancelled")
        assert desk.change(first, action="confirmed").status == 303
        desk.salon.set_status(first, "cancelled")
        desk.salon.book(f"{DAY}T10:00", "Bob", resourceId=desk.salon.resource)
        answer = desk.change(first, action="confirmed")
        assert answer.status == 409
        assert "is no longer free" in text(answer)
        new = desk.slots(answer)["11:00"]
        assert desk.change(first, action="move", start=new).status == 303
        assert desk.read_row(first)["status"] == "confirmed"

    def test_an_unknown_booking_or_status_changes_nothing(self, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00")["id"]
        assert desk.console_owner.get(f"{desk.path}/none").status == 404
        assert desk.console_owner.post(f"{desk.path}/none", {"action": "completed"}).status == 404
        assert desk.change(booking, action="deleted").status == 400
        assert desk.read_row(booking)["status"] == "confirmed"


class TestMove:
    def test_a_booking_moves_to_a_free_time_and_keeps_its_status(self, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00", status="pending_payment")["id"]
        page = desk.console_owner.get(f"{desk.path}/{booking}?do=move&date=2027-01-19")
        answer = desk.change(booking, action="move", start=desk.slots(page)["12:00"])
        assert answer.status == 303
        moved_booking = desk.read_row(booking)
        assert (moved_booking["startLocal"][:16], moved_booking["status"]) == (
            "2027-01-19T12:00",
            "pending_payment",
        )
        second_move = desk.change(
            booking, action="move", start=desk.slots(page)["12:00"], version="1"
        )
        assert second_move.status == 303
        assert len(desk.read_row(booking)["statusHistory"]) == 2
        booking_page = text(desk.console_owner.get(f"{desk.path}/{booking}"))
        assert "Mon 18 Jan, 10:00 → Tue 19 Jan, 12:00" in booking_page

    def test_a_booking_moves_to_anyone_who_is_free(self, desk: Desk) -> None:
        first, second = (
            desk.salon.book(f"{DAY}T10:00", f"C {number}", resourceId=resource)["id"]
            for number, resource in enumerate(desk.salon.resources)
        )
        desk.change(second, action="cancelled")
        page = desk.console_owner.get(f"{desk.path}/{first}?do=move&date={DAY}&staff=any")
        desk.salon.book(f"{DAY}T12:00", "Eve", resourceId=desk.salon.resources[0])
        page = desk.console_owner.get(f"{desk.path}/{first}?do=move&date={DAY}&staff=any")
        assert desk.change(first, action="move", start=desk.slots(page)["12:00"]).status == 303
        assert desk.read_row(first)["resourceId"] == desk.salon.resources[1]

    @pytest.mark.parametrize("fields", [{}, {"exact": "25:99"}, {"outside": "1"}])
    def test_a_move_without_a_time_is_reported(self, fields: dict[str, str], desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00")["id"]
        answer = desk.change(booking, action="move", date=DAY, **fields)
        assert answer.status == 400
        message = "Enter the exact time" if fields else "Choose a time."
        assert message in text(answer)

    def test_an_invalid_date_is_reported_beside_its_field(self, desk: Desk) -> None:
        booking = desk.salon.book(f"{DAY}T10:00")["id"]
        for path in (f"{booking}?do=move&date=soon", f"new?date=soon&service={desk.salon.service}"):
            answer = desk.console_owner.get(f"{desk.path}/{path}")
            assert answer.status == 400
            assert error_beside(answer, "date") == "Enter a date, such as 2027-01-31."


class TestNewBooking:
    def form(self, desk: Desk, **fields: str) -> dict[str, str]:
        defaults = {"action": "book", "service": desk.salon.service, "date": DAY, "once": "1"}
        return {**defaults, "exact": "10:00", "name": "Walk-in", **fields}

    def test_each_of_many_services_can_be_booked(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(choices, "MAX_CHOICES", 5)
        api = desk.salon.api
        for number in range(6):
            api.post("/api/services/create", {"name": f"Cut {number}", "durationMin": 60})
        body = {"name": "Last", "durationMin": 60, "resourceIds": desk.salon.resources}
        last = api.post("/api/services/create", body)["service"]["id"]
        page = desk.page("/new")
        assert "The first 5 of 8 are offered." in page
        assert last not in page
        fields = self.form(desk, service="", action="times", name="Walk-in")
        found = text(desk.console_owner.post(f"{desk.path}/new", fields | {"find-service": "las"}))
        assert "“las”: 1 found." in found
        assert f'name="choose" value="{last}"' in found
        assert 'value="Walk-in"' in found
        # A search that was typed but not sent is not lost to the button that books.
        fields = self.form(desk, service=desk.salon.service)
        answer = desk.console_owner.post(f"{desk.path}/new", fields | {"find-service": "las"})
        assert answer.status == 200
        assert f'name="service" value="{desk.salon.service}"' in text(answer)
        answer = desk.console_owner.post(f"{desk.path}/new", self.form(desk, service=last))
        assert answer.status == 303
        listed = desk.page(f"?view=list&service={last}")
        assert f'<option value="{last}" selected>Last</option>' in listed

    def test_a_search_for_clients_says_how_many_it_finds(self, desk: Desk) -> None:
        for number in range(9):
            desk.salon.book(
                f"{DAY}T1{number}:00" if number < 8 else f"{DAY}T09:00", f"Ada {number}"
            )
        fields = self.form(desk, action="find", q="ada")
        page = text(desk.console_owner.post(f"{desk.path}/new", fields))
        assert "The first 6 of 9 are shown." in page

    def test_a_walk_in_needs_a_name_alone(self, desk: Desk) -> None:
        answer = desk.console_owner.post(f"{desk.path}/new", self.form(desk))
        assert answer.status == 303
        booking = answer.headers["Location"].split("/")[-1].partition("?")[0]
        stored_booking = desk.read_row(booking)
        assert stored_booking["client"] == {
            **dict.fromkeys(("id", "phone", "phoneEntered", "email")),
            "name": "Walk-in",
        }
        assert (stored_booking["source"], stored_booking["status"]) == ("console", "confirmed")
        booking_page = text(desk.console_owner.get(answer.headers["Location"]))
        assert "Booking made." in booking_page
        assert "in the console" in booking_page

    def test_a_form_sent_twice_books_once(self, desk: Desk) -> None:
        answers = [desk.console_owner.post(f"{desk.path}/new", self.form(desk)) for _ in "12"]
        assert answers[0].headers["Location"] == answers[1].headers["Location"]
        listing = call_console(desk.owner.workspace.id, "list_bookings")
        assert listing["pagination"]["total"] == 1

    def test_free_times_are_shown_and_what_was_typed_is_kept(self, desk: Desk) -> None:
        fields = self.form(desk, action="times", exact="", phone="+7 914", notes="Tea")
        answer = desk.console_owner.post(f"{desk.path}/new", fields)
        assert answer.status == 200
        assert value_of(answer, "name") == "Walk-in"
        assert value_of(answer, "phone") == "+7 914"
        assert "Tea</textarea>" in text(answer)
        start = next(iter(desk.slots(answer).values()))
        response = desk.console_owner.post(
            f"{desk.path}/new", self.form(desk, exact="", start=start, phone="")
        )
        assert response.status == 303

    def test_a_time_taken_meanwhile_offers_the_nearest_and_keeps_what_was_typed(
        self, desk: Desk
    ) -> None:
        staff = desk.salon.resource
        page = desk.console_owner.get(
            f"{desk.path}/new?service={desk.salon.service}&date={DAY}&staff={staff}"
        )
        start = desk.slots(page)["10:00"]
        desk.salon.book(f"{DAY}T10:00", resourceId=staff)
        fields = self.form(desk, exact="", start=start, staff=staff, phone="8 914 700-12-34")
        answer = desk.console_owner.post(f"{desk.path}/new", fields)
        assert answer.status == 409
        assert "is already taken" in text(answer)
        assert value_of(answer, "name") == "Walk-in"
        assert value_of(answer, "phone") == "8 914 700-12-34"
        nearest = desk.slots(answer)["Mon 18 Jan, 11:00"]
        second_response = desk.console_owner.post(
            f"{desk.path}/new", {**fields, "near": nearest, "once": "2"}
        )
        assert second_response.status == 303

    def test_a_slot_nearby_replaces_the_typed_time_that_was_refused(self, desk: Desk) -> None:
        for staff in desk.salon.resources:
            desk.salon.book(f"{DAY}T10:00", resourceId=staff)
        fields = self.form(desk)
        answer = desk.console_owner.post(f"{desk.path}/new", fields)
        assert "is already taken" in text(answer)
        nearest = desk.slots(answer)["Mon 18 Jan, 11:00"]
        response = desk.console_owner.post(
            f"{desk.path}/new", {**fields, "near": nearest, "once": "2"}
        )
        assert response.status == 303
        booking = response.headers["Location"].split("/")[-1].partition("?")[0]
        assert desk.read_row(booking)["startLocal"][11:16] == "11:00"

    def test_a_day_without_free_times_opens_the_field_of_an_exact_time(self, desk: Desk) -> None:
        path = f"{desk.path}/new?service={desk.salon.service}&date="
        assert '<details class="more">' in text(desk.console_owner.get(path + DAY))
        assert '<details class="more" open>' in text(desk.console_owner.get(f"{path}2027-01-14"))

    def test_an_existing_client_is_found_by_phone_and_chosen(self, desk: Desk) -> None:
        known = desk.book_by_phone(f"{DAY}T16:00")["client"]["id"]
        fields = self.form(desk, name="", action="find", q="700-12-34")
        answer = desk.console_owner.post(f"{desk.path}/new", fields)
        assert f'name="client" value="{known}" checked' in text(answer)
        response = desk.console_owner.post(
            f"{desk.path}/new", self.form(desk, name="", client=known)
        )
        booking = desk.read_row(response.headers["Location"].split("/")[-1].partition("?")[0])
        assert booking["client"]["id"] == known
        nobody = desk.console_owner.post(f"{desk.path}/new", {**fields, "q": "nobody"})
        assert "Nobody was found" in text(nobody)
        assert value_of(nobody, "name") == "nobody"

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"name": ""}, "name"),
            ({"phone": "call me"}, "phone"),
            ({"email": "nobody"}, "email"),
            ({"exact": "x"}, "exact"),
        ],
    )
    def test_errors_are_beside_their_fields(
        self, fields: dict[str, str], field: str, desk: Desk
    ) -> None:
        answer = desk.console_owner.post(f"{desk.path}/new", self.form(desk, **fields))
        assert answer.status == 400
        assert error_beside(answer, field)

    def test_a_service_must_be_chosen_if_there_are_several(self, desk: Desk) -> None:
        desk.salon.api.post("/api/services/create", {"name": "Tea", "durationMin": 10, "price": 0})
        answer = desk.console_owner.post(f"{desk.path}/new", self.form(desk, service=""))
        assert answer.status == 400
        page = text(answer)
        assert 'id="service-error">Choose a service.<' in page
        assert 'href="#service">Choose a service.<' in page

    def test_a_day_without_free_times_says_why_and_leads_to_the_next(self, desk: Desk) -> None:
        for resource in desk.salon.resources:
            rules = [{"weekday": "tue", "start": "09:00", "end": "10:00"}]
            desk.salon.set_hours(desk.salon.api, resource, rules)
        fields = self.form(desk, action="times", exact="")
        answer = desk.console_owner.post(f"{desk.path}/new", fields)
        assert "Closed on this day." in text(answer)
        assert 'name="day" value="2027-01-19"' in text(answer)
        answer = desk.console_owner.post(
            f"{desk.path}/new", {**fields, "action": "", "day": "2027-01-19"}
        )
        assert value_of(answer, "date") == "2027-01-19"
        assert desk.slots(answer)

    def test_a_paid_service_is_confirmed_unless_it_is_to_be_held(self, desk: Desk) -> None:
        body = {"id": desk.salon.service, "requirePayment": True}
        desk.salon.api.post("/api/services/update", body)
        for hold, status in (("", "confirmed"), ("1", "pending_payment")):
            form = self.form(desk, exact=f"1{hold or 0}:00", hold=hold, once=f"o{hold}")
            response = desk.console_owner.post(f"{desk.path}/new", form)
            booking = response.headers["Location"].split("/")[-1].partition("?")[0]
            assert desk.read_row(booking)["status"] == status


class TestVisits:
    @pytest.fixture
    def visit(self, desk: Desk) -> list[str]:
        """The ids of the bookings of a visit at 10:00: a haircut, then colour."""
        body = {"name": "Colour", "durationMin": 30, "price": 50_000}
        body["resourceIds"] = desk.salon.resources[:1]
        colour = desk.salon.api.post("/api/services/create", body)["service"]["id"]
        order = desk.salon.order(f"{DAY}T10:00", resourceId=desk.salon.resource, andThen=[colour])
        return [each["id"] for each in desk.salon.api.post(CREATE, order)["visit"]]

    def test_each_booking_shows_the_visit_and_what_ends_with_it(
        self, desk: Desk, visit: list[str]
    ) -> None:
        for booking, other in (visit, visit[::-1]):
            page = text(desk.console_owner.get(f"{desk.path}/{booking}"))
            assert "Visit of several services" in page
            assert f'href="{desk.path}/{other}"' in page
            question = text(desk.console_owner.get(f"{desk.path}/{booking}?do=cancel"))
            assert "Cancel the whole visit?" in question
        assert desk.change(visit[1], action="cancelled").status == 303
        assert [desk.read_row(each)["status"] for each in visit] == ["cancelled"] * 2

    def test_one_press_completes_all_services(
        self, desk: Desk, visit: list[str], time: Time
    ) -> None:
        time.now = datetime(2027, 1, 18, 2, tzinfo=UTC)
        desk.console_owner.token = desk.owner.start_session()
        assert desk.change(visit[0], action="completed").status == 303
        assert [desk.read_row(each)["status"] for each in visit] == ["completed"] * 2

    def test_a_move_offers_the_times_of_the_visit_and_moves_all(
        self, desk: Desk, visit: list[str]
    ) -> None:
        page = desk.console_owner.get(f"{desk.path}/{visit[1]}?do=move&date={DAY}")
        offered = desk.slots(page)
        assert "09:00" not in offered  # The haircut before it would begin at 8.
        assert desk.change(visit[1], action="move", start=offered["15:00"]).status == 303
        starts = [desk.read_row(each)["startLocal"][11:16] for each in visit]
        assert starts == ["14:00", "15:00"]
