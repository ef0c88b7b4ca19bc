"""Staff, opening hours and time off in the console, over HTTP."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.conftest import Answer, Owner, Time, call_console
from tests.factories.console import Person, person
from tests.factories.services import store_booking
from tests.transports.console.forms.helpers import error_beside, text, value_of

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Pairs = list[tuple[str, str]]


@pytest.fixture
def console_owner(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/staff"


@pytest.fixture
def staff(owner: Owner) -> str:
    resource_id: str = make(owner, "create_resource", name="Anna")["resource"]["id"]
    return resource_id


@pytest.fixture
def hours(path: str, staff: str) -> str:
    return f"{path}/{staff}/hours"


def make(owner: Owner, operation: str, **arguments: Any) -> Any:
    return call_console(
        owner.workspace.id, operation, account_id=owner.workspace.owner_id, **arguments
    )


def rules(owner: Owner, staff: str) -> dict[str, str]:
    """Return the stored hours by weekday or date, as strings."""
    rules = make(owner, "list_availability", resourceId=staff)["rules"]
    return {
        rule["weekday"] or rule["date"]: ",".join(
            f"{interval['start']}-{interval['end']}" for interval in rule["intervals"]
        )
        for rule in rules
    }


def week(*, opened: str = "", **days: str) -> Pairs:
    """Return the fields of a week, such as ``mon="09:00-13:00,14:00-18:00"``. A + ends next day."""
    fields = [("seen", opened)] if opened else []
    for day in WEEKDAYS:
        typed_hours = days.get(day, "")
        fields += [("open", day)] if day in days else []
        for number, interval in enumerate(typed_hours.split(",")):
            start, _, end = interval.removesuffix("+").partition("-")
            fields += [(f"start-{day}", start), (f"end-{day}", end)]
            fields += [(f"next-{day}", str(number))] if interval.endswith("+") else []
    return fields


def opened(answer: Answer) -> str:
    """Return what the form keeps of the hours with which it was opened."""
    seen = re.search(r'name="seen" value="([^"]*)"', answer.body.decode())
    assert seen
    return seen[1].replace("&#34;", '"')


class TestStaff:
    def test_the_list_is_filtered_by_status(
        self, owner: Owner, console_owner: Person, path: str, staff: str
    ) -> None:
        make(owner, "create_resource", name="Boris")
        make(owner, "update_resource", id=staff, status="inactive")
        for status, names in (
            ("active", {"Boris"}),
            ("inactive", {"Anna"}),
            ("all", {"Anna", "Boris"}),
        ):
            list_page = text(console_owner.get(f"{path}?status={status}"))
            assert {name for name in ("Anna", "Boris") if f">{name}<" in list_page} == names, status

    def test_a_new_person_gets_services_and_leads_to_the_hours(
        self, owner: Owner, console_owner: Person, path: str
    ) -> None:
        service = make(owner, "create_service", name="Cut", durationMin=60)["service"]["id"]
        page = console_owner.get(f"{path}/new?service={service}")
        assert f'value="{service}" checked' in text(page)
        fields = {"name": "Anna", "type": "master", "serviceIds": service, "once": "1"}
        answers = [console_owner.post(path, fields | {"capacity": ""}) for _ in range(2)]
        (resource,) = make(owner, "list_resources")["resources"]
        assert {answer.headers["Location"] for answer in answers} == {
            f"{path}/{resource['id']}/hours?done=staff_created"
        }
        assert (resource["serviceIds"], resource["capacity"]) == ([service], 1)

    @pytest.mark.parametrize(
        ("field", "typed_value"),
        [("name", " "), ("capacity", "0"), ("capacity", "many"), ("timezone", "Moscow time")],
    )
    def test_a_wrong_value_is_reported_beside_its_field(
        self, field: str, typed_value: str, console_owner: Person, path: str, staff: str
    ) -> None:
        fields = {"name": "Anna", "capacity": "2", "timezone": "Europe/Moscow", field: typed_value}
        answer = console_owner.post(f"{path}/{staff}", fields)
        assert answer.status == 400
        assert error_beside(answer, field)
        assert value_of(answer, field) == typed_value

    def test_a_change_of_zone_says_that_hours_move_and_bookings_do_not(
        self, console_owner: Person, path: str, staff: str
    ) -> None:
        fields = {"name": "Anna", "timezone": "Asia/Omsk", "active": "yes"}
        answer = console_owner.post(f"{path}/{staff}", fields)
        assert answer.headers["Location"].endswith("?done=staff_zone_changed")
        assert "Bookings have not moved" in text(console_owner.get(answer.headers["Location"]))

    def test_a_deletion_names_bookings_and_services_that_nobody_else_provides(
        self, owner: Owner, console_owner: Person, path: str, staff: str, time: Time
    ) -> None:
        make(owner, "create_service", name="Cut", durationMin=60, resourceIds=[staff])
        time.now = datetime(2027, 1, 15, tzinfo=UTC)
        console_owner.token = owner.start_session()
        store_booking(owner.workspace.id, staff, datetime(2027, 1, 20, 9, tzinfo=UTC))
        confirmation = text(console_owner.get(f"{path}/{staff}/delete"))
        assert "1 upcoming booking is kept" in confirmation
        assert "No one else provides these services" in confirmation
        assert "20 Jan, 12:00" in confirmation
        for _ in range(2):
            answer = console_owner.post(f"{path}/{staff}/delete")
            assert answer.headers["Location"] == f"{path}?done=staff_deleted"
        assert console_owner.get(f"{path}/{staff}").status == 404


class TestWeek:
    def test_hours_that_were_never_set_begin_with_a_suggestion_that_is_not_stored(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        page = text(console_owner.get(hours))
        assert "This is a suggestion" in page
        assert page.count('value="09:00"') == 5
        assert rules(owner, staff) == {}

    def test_a_week_with_breaks_nights_and_midnights_is_stored_and_shown_again(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        fields = week(
            mon="09:00-13:00,14:00-18:00",
            fri="22:00-02:00+",
            sat="18:00-00:00",
            sun="00:00-00:00",
        )
        assert console_owner.post(hours, fields).headers["Location"] == f"{hours}?done=hours_saved"
        stored_hours = {
            "mon": "09:00-13:00,14:00-18:00",
            "fri": "22:00-02:00",
            "sat": "18:00-24:00",
            "sun": "00:00-24:00",
        }
        assert rules(owner, staff) == stored_hours
        page = console_owner.get(hours)
        assert 'name="next-fri" value="0" checked' in text(page)
        assert console_owner.post(hours, week(opened=opened(page), mon="10:00-12:00")).status == 303
        assert rules(owner, staff) == {"mon": "10:00-12:00"}

    def test_dates_that_the_week_does_not_show_are_kept(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        dates = [
            {"date": "2020-01-01", "intervals": []},
            {"date": "2036-12-31", "intervals": [{"start": "10:00", "end": "14:00"}]},
        ]
        make(owner, "set_availability", resourceId=staff, rules=dates)
        console_owner.post(hours, week(opened=opened(console_owner.get(hours)), tue="09:00-18:00"))
        assert rules(owner, staff) == {
            "tue": "09:00-18:00",
            "2020-01-01": "",
            "2036-12-31": "10:00-14:00",
        }

    @pytest.mark.parametrize(
        ("typed_hours", "line", "message"),
        [
            ("15:00-14:00", 0, "ends before it starts"),
            ("09:00-12:00,11:00-13:00", 1, "overlaps"),
            ("22:00-03:00+,23:00-00:00", 1, "overlaps"),
            ("09:00-09:00", 0, "the same"),
            ("09:00-", 0, "both times"),
            ("25:00-26:00", 0, "both times"),
            ("", 0, "untick the day"),
        ],
    )
    def test_wrong_hours_are_reported_beside_their_line_and_kept(
        self,
        typed_hours: str,
        line: int,
        message: str,
        owner: Owner,
        console_owner: Person,
        staff: str,
        hours: str,
    ) -> None:
        answer = console_owner.post(hours, week(mon=typed_hours, wed="10:00-11:00"))
        assert answer.status == 400
        assert message in error_beside(answer, f"mon-{line}")
        for interval in filter(None, typed_hours.split(",")):
            assert f'value="{interval.partition("-")[0]}"' in text(answer)
        assert 'value="10:00"' in text(answer)
        assert rules(owner, staff) == {}

    def test_hours_that_end_before_they_start_are_offered_to_last_until_the_next_day(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        assert 'name="next-mon"' not in text(console_owner.get(hours))
        answer = console_owner.post(hours, week(mon="22:00-02:00"))
        assert 'name="next-mon" value="0">' in text(answer)
        assert console_owner.post(hours, week(mon="22:00-02:00+")).status == 303
        assert rules(owner, staff) == {"mon": "22:00-02:00"}

    def test_buttons_change_the_form_without_storing_it(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        fields = week(mon="08:00-12:00,13:00-17:00", sat="10:00-11:00")
        copied = text(console_owner.post(hours, [*fields, ("action", "copy")]))
        assert copied.count('value="08:00"') == 5
        assert copied.count('value="10:00"') == 1
        page_with_row = text(console_owner.post(hours, [*fields, ("action", "add:sat")]))
        assert 'id="sat-1"' in page_with_row
        page_without_row = text(console_owner.post(hours, [*fields, ("action", "remove:mon-0")]))
        assert 'value="08:00"' not in page_without_row
        assert 'value="13:00"' in page_without_row
        assert rules(owner, staff) == {}

    def test_a_week_that_another_person_changed_is_not_overwritten_unseen(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        console_owner.post(hours, week(mon="09:00-18:00"))
        page = console_owner.get(hours)
        make(
            owner,
            "set_availability",
            resourceId=staff,
            rules=[{"weekday": "mon", "start": "07:00", "end": "11:00"}],
        )
        refusal = console_owner.post(hours, week(opened=opened(page), mon="09:00-20:00"))
        assert refusal.status == 409
        assert "07:00\u201311:00" in text(refusal)
        assert "09:00\u201320:00" in text(refusal)
        assert rules(owner, staff) == {"mon": "07:00-11:00"}
        assert (
            console_owner.post(hours, week(opened=opened(refusal), mon="09:00-20:00")).status == 303
        )
        assert rules(owner, staff) == {"mon": "09:00-20:00"}

    def test_a_form_that_is_sent_twice_or_beside_a_new_date_is_no_conflict(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        fields = week(opened=opened(console_owner.get(hours)), mon="09:00-18:00")
        date = {"action": "add-date", "date": "2036-01-01", "kind": "closed"}
        assert console_owner.post(hours, date).status == 303
        for _ in range(2):
            assert console_owner.post(hours, fields).status == 303
        assert rules(owner, staff) == {"mon": "09:00-18:00", "2036-01-01": ""}


class TestDates:
    def test_dates_are_added_and_deleted_beside_the_week(
        self, owner: Owner, console_owner: Person, staff: str, hours: str
    ) -> None:
        console_owner.post(hours, week(mon="09:00-18:00"))
        closed = {"action": "add-date", "date": "2036-01-01", "kind": "closed"}
        special = [("action", "add-date"), ("date", "2036-12-31"), ("kind", "open")]
        special += [("start-date", "10:00"), ("end-date", "14:00")]
        assert console_owner.post(hours, closed).headers["Location"] == f"{hours}?done=date_added"
        assert console_owner.post(hours, special).status == 303
        assert rules(owner, staff) == {
            "mon": "09:00-18:00",
            "2036-01-01": "",
            "2036-12-31": "10:00-14:00",
        }
        assert "31 December 2036" in text(console_owner.get(hours))
        for _ in range(2):
            assert console_owner.post(hours, {"action": "delete-date:2036-01-01"}).status == 303
        assert rules(owner, staff) == {"mon": "09:00-18:00", "2036-12-31": "10:00-14:00"}

    @pytest.mark.parametrize("date", ["", "2036-01-01", "2001-01-01", "x"])
    def test_a_wrong_date_is_reported_beside_its_field(
        self, date: str, console_owner: Person, hours: str
    ) -> None:
        form = {"action": "add-date", "date": "2036-01-01", "kind": "closed"}
        console_owner.post(hours, form)
        answer = console_owner.post(hours, form | {"date": date})
        assert answer.status == 400
        assert error_beside(answer, "date")
        assert value_of(answer, "date") == date


class TestTimeOff:
    def test_time_off_of_a_person_is_added_once_and_deleted(
        self, owner: Owner, console_owner: Person, path: str, staff: str
    ) -> None:
        page = f"{path}/{staff}/time-off"
        form = {"startAt": "2036-05-01", "endAt": "2036-05-09", "reason": "Sea", "once": "1"}
        for _ in range(2):
            assert (
                console_owner.post(page, form).headers["Location"] == f"{page}?done=time_off_added"
            )
        (time_off,) = make(owner, "list_time_off", resourceId=staff)["timeOff"]
        assert (time_off["startAt"], time_off["endAt"], time_off["allDay"]) == (
            "2036-05-01",
            "2036-05-09",
            True,
        )
        assert "1 May 2036" in text(console_owner.get(page))
        for _ in range(2):
            assert console_owner.post(page, {"delete": time_off["id"]}).status == 303
        assert make(owner, "list_time_off", resourceId=staff)["timeOff"] == []

    def test_a_part_of_a_day_is_read_in_the_zone_of_the_person(
        self, owner: Owner, console_owner: Person, path: str, staff: str
    ) -> None:
        form = {"startAt": "2036-05-01", "startTime": "12:00", "endTime": "15:00", "once": "1"}
        console_owner.post(f"{path}/{staff}/time-off", form)
        (time_off,) = make(owner, "list_time_off", resourceId=staff)["timeOff"]
        assert (time_off["startAt"], time_off["endAt"]) == (
            "2036-05-01T09:00:00.000Z",
            "2036-05-01T12:00:00.000Z",
        )

    def test_a_wrong_period_is_reported_and_kept(
        self, console_owner: Person, path: str, staff: str
    ) -> None:
        form = {"startAt": "2036-05-09", "endAt": "2036-05-01", "reason": "Sea"}
        answer = console_owner.post(f"{path}/{staff}/time-off", form)
        assert answer.status == 400
        assert error_beside(answer, "endAt")
        assert value_of(answer, "reason") == "Sea"
        assert error_beside(console_owner.post(f"{path}/{staff}/time-off", {}), "startAt")

    def test_a_closed_day_of_the_workspace_is_shown_to_each_person(
        self, console_owner: Person, path: str, staff: str
    ) -> None:
        closed = path.removesuffix("/staff") + "/closed-days"
        console_owner.post(closed, {"startAt": "2036-01-01", "reason": "New Year", "once": "1"})
        assert "New Year" in text(console_owner.get(closed))
        time_off_page = text(console_owner.get(f"{path}/{staff}/time-off"))
        assert "New Year" in time_off_page
        assert 'name="delete"' not in time_off_page

    def test_bookings_at_closed_times_are_listed(
        self, owner: Owner, console_owner: Person, path: str, staff: str, hours: str, time: Time
    ) -> None:
        time.now = datetime(2027, 1, 15, tzinfo=UTC)
        console_owner.token = owner.start_session()
        store_booking(owner.workspace.id, staff, datetime(2027, 1, 20, 9, tzinfo=UTC))
        console_owner.post(hours, week(wed="09:00-18:00"))
        assert "closed time" not in text(console_owner.get(hours))
        console_owner.post(hours, week(opened=opened(console_owner.get(hours)), wed="14:00-18:00"))
        hours_page = text(console_owner.get(hours))
        assert "1 booking at a closed time" in hours_page
        assert "outside opening hours" in hours_page
        console_owner.post(f"{path}/{staff}/time-off", {"startAt": "2027-01-20", "once": "1"})
        assert "time off" in text(console_owner.get(f"{path}/{staff}/time-off"))
