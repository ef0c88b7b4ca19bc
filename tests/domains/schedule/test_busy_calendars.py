"""Own calendars of the staff: how they are read, and what slots and bookings make of them."""

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.schedule.flows import busy_readings
from chalicelib.domains.schedule.rules import busy_spans
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.domains.services.rules.open_windows import Interval, Rule, parse
from chalicelib.engine import jobs
from chalicelib.gateways import isolation
from chalicelib.lib.spans import Span, merge
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Answer, Api, Owner, Time, all_rows, run_concurrently
from tests.domains.schedule.busy_feeds import GOOGLE, busy, calendar, event
from tests.factories.salon import Salon, check_calendars
from tests.fakes.dynamodb_faults import TRANSACTION, closed, faulty
from tests.fakes.internet import Internet, http_response, to

PATH = "/api/busy-calendars"
DAY = "2027-01-18"
"""A Monday, three days from now."""
TEN_TO_ELEVEN = busy("20270118T070000Z", "20270118T080000Z")
"""In Moscow."""
ANOTHER = "93.184.216.35"
"""Address of a second server."""


@pytest.fixture(autouse=True)
def _read_in_this_process(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Start no process for each calendar, except where a test asks for one."""

    def call(function: str, body: bytes, *arguments: str, memory_bytes: int) -> str:
        module, _, name = function.partition(":")
        read: Callable[..., str] = getattr(import_module(module), name)
        try:
            return read(arguments[0], body, *arguments[1:])
        except busy_spans.UnreadableError as error:
            raise isolation.RaisedError(*error.args) from None

    if "real_process" not in request.fixturenames:
        monkeypatch.setattr(isolation, "call", call)


@pytest.fixture
def real_process() -> None:
    """Read calendars in a process of its own."""


def add(salon: Salon, url: str = GOOGLE, **fields: Any) -> Any:
    body = {"resourceId": salon.resource, "url": url, **fields}
    return salon.api.post(f"{PATH}/create", body)["busyCalendar"]


def state(salon: Salon) -> Any:
    (one,) = salon.api.get(PATH)["busyCalendars"]
    return one


def read_now(salon: Salon) -> Any:
    return salon.api.post(f"{PATH}/read", {"id": salon.resource})["busyCalendar"]


def remove(salon: Salon) -> Answer:
    return salon.api.call("POST", f"{PATH}/delete", {"id": salon.resource})


def run(time: Time, **later: float) -> dict[str, int]:
    time.pass_by(**later)
    return run_jobs()


def readings(time: Time, **later: float) -> int:
    return run(time, **later)["busy-times-read"]


def starts(salon: Salon, day: str = DAY) -> list[str]:
    return [start[11:] for start in salon.starts(first=day, to=day)]


def elsewhere(owner: Owner, salon: Salon) -> dict[str, str]:
    return calendar_days.read_elsewhere(
        owner.workspace.id, resource_id=salon.resource, first_day="0", last_day="9"
    )


class TestSlots:
    def test_busy_time_is_neither_listed_nor_booked(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        assert "10:00" in starts(salon)
        assert add(salon)["status"] == "waiting"
        assert readings(time, seconds=1) == 1
        assert state(salon)["status"] == "read"
        free = starts(salon)
        assert ("10:00" in free, "09:00" in free, "11:00" in free) == (False, True, True)
        refused = salon.try_to_book(f"{DAY}T10:00")
        assert (refused.status, refused.data["reason"]) == (409, "time_off")
        assert salon.try_to_book(f"{DAY}T11:00").status == 200

    def test_buffers_may_be_busy_as_they_may_be_off(
        self, api: Api, net: Internet, time: Time
    ) -> None:
        salon = Salon.opened(api, bufferBeforeMin=30, bufferAfterMin=30)
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        assert salon.try_to_book(f"{DAY}T09:00").status == 200

    def test_the_other_staff_stays_free(self, api: Api, net: Internet, time: Time) -> None:
        salon = Salon.opened(api, [{}, {"capacity": 3}])
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon, resourceId=salon.resources[1])
        readings(time, seconds=1)
        assert salon.book(f"{DAY}T10:00")["resourceId"] == salon.resources[0]
        assert salon.try_to_book(f"{DAY}T10:00", "Bob").status == 409

    def test_a_business_may_book_over_busy_time_as_over_time_off(
        self, owner: Owner, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        assert salon.try_to_book(f"{DAY}T10:00", ignoreSchedule=True).status == 200

    def test_busy_time_of_the_night_is_free_time_of_no_day(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(busy("20270118T200000Z", "20270119T070000Z")))
        add(salon)
        readings(time, seconds=1)
        assert elsewhere(owner, salon) == {"2027-01-18": "1200-1440", "2027-01-19": "0-420"}
        assert starts(salon, "2027-01-19")[0] == "10:00"


class TestReading:
    def test_a_calendar_is_read_every_15_minutes_and_hourly_if_it_is_closed_for_a_week(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        server = net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        assert readings(time, minutes=14) == 0
        assert readings(time, minutes=1) == 1
        salon.set_hours(
            salon.api, salon.resource, [{"date": "2027-03-01", "start": "09:00", "end": "10:00"}]
        )
        readings(time, minutes=15)
        assert readings(time, minutes=59) == 0
        assert readings(time, minutes=1) == 1
        assert len(server.requests) == 4

    def test_an_unchanged_calendar_is_not_sent_again_but_once_a_day(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        server = net.serve(
            GOOGLE,
            http_response(TEN_TO_ELEVEN, etag='"one"'),
            http_response(b"", "304 Not Modified"),
            http_response(TEN_TO_ELEVEN, etag='"one"'),
        )
        add(salon)
        readings(time, seconds=1)
        before = elsewhere(owner, salon)
        readings(time, minutes=15)
        assert 'If-None-Match: "one"' in server.requests[1]
        assert (state(salon)["status"], elsewhere(owner, salon)) == ("read", before)
        time.pass_by(days=1)
        readings(time, minutes=15)
        assert "If-None-Match" not in server.requests[2]

    def test_a_changed_calendar_frees_and_takes_time(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(
            GOOGLE,
            http_response(TEN_TO_ELEVEN),
            http_response(busy("20270118T110000Z", "20270118T120000Z")),
        )
        add(salon)
        readings(time, seconds=1)
        readings(time, minutes=15)
        assert ("10:00" in starts(salon), "14:00" in starts(salon)) == (True, False)

    def test_past_days_are_forgotten(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        time.pass_by(days=6)
        readings(time, minutes=15)
        assert elsewhere(owner, salon) == {}

    def test_titles_are_not_stored_and_the_link_is_sealed(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        body = calendar(
            event("UID:a", "DTSTART:20270118T070000Z", "DTEND:20270118T080000Z", "SUMMARY:Clinic")
        )
        net.serve(GOOGLE, http_response(body, etag='"one"'))
        shown = add(salon)
        readings(time, seconds=1)
        stored = json.dumps(all_rows(), default=str) + json.dumps([shown, state(salon)])
        assert "Clinic" not in stored
        assert "private-0123456789" not in stored
        assert shown["host"] == "calendar.google.com"

    def test_webcal_is_read_by_https_and_redirects_are_followed(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        other = "https://p42.example.com/published/2/abc"
        net.serve("https://p1.example.com/published/2/abc", to(other))
        server = net.serve(other, http_response(TEN_TO_ELEVEN, etag='"x"'), address=ANOTHER)
        add(salon, "webcal://p1.example.com/published/2/abc")
        readings(time, seconds=1)
        readings(time, minutes=15)
        assert state(salon)["status"] == "read"
        assert 'If-None-Match: "x"' in server.requests[1]

    def test_a_redirect_into_the_network_of_the_service_is_refused(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, to("https://127.0.0.1/latest/meta-data"))
        add(salon)
        readings(time, seconds=1)
        assert (state(salon)["status"], state(salon)["problem"]) == ("failing", "not_fetched")

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            (http_response(b"", "500 Oops"), "not_fetched"),
            (http_response(b"x" * (busy_readings.MAX_BYTES + 1)), "not_fetched"),
            (http_response(b"<html>Sign in"), "not_a_calendar"),
            (
                http_response(
                    calendar(
                        event(
                            "UID:a",
                            "DTSTART:20270118T070000Z",
                            "DTEND:20270118T070100Z",
                            "RRULE:FREQ=HOURLY",
                        )
                    )
                ),
                "too_many_instances",
            ),
        ],
    )
    def test_a_failure_says_why_and_keeps_the_last_reading(
        self, answer: Any, problem: str, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN), answer)
        add(salon)
        readings(time, seconds=1)
        readings(time, minutes=15)
        now = state(salon)
        assert (now["status"], now["problem"]) == ("failing", problem)
        assert now["readAt"] < now["triedAt"]
        assert "10:00" not in starts(salon)

    def test_failures_are_tried_less_and_less_often(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        server = net.serve(
            GOOGLE, *[http_response(b"", "500 Oops")] * 3, http_response(TEN_TO_ELEVEN)
        )
        add(salon)
        readings(time, seconds=1)
        for minutes in (30, 60, 120):
            assert readings(time, minutes=minutes - 1) == 0
            assert readings(time, minutes=1) == 1
        assert len(server.requests) == 4
        assert state(salon)["status"] == "read"
        assert readings(time, minutes=15) == 1

    def test_a_calendar_is_read_in_a_process_of_its_own(
        self, real_process: None, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        assert "10:00" not in starts(salon)

    def test_a_feed_of_the_same_business_is_refused_and_its_events_are_left_out(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        feed = salon.api.post("/api/calendar-links/create", {})["calendarLink"]["url"]
        body = {"resourceId": salon.resource, "url": feed}
        assert salon.api.call("POST", f"{PATH}/create", body).status == 400
        uid = f"01J@{owner.workspace.id}"
        net.serve(GOOGLE, http_response(busy("20270118T070000Z", "20270118T080000Z", uid)))
        add(salon)
        readings(time, seconds=1)
        assert "10:00" in starts(salon)

    @pytest.mark.parametrize(
        "url",
        ["http://example.com/a.ics", "file:///etc/passwd", "https://10.0.0.1/a.ics", "a.ics", ""],
    )
    def test_other_links_are_refused(self, url: str, salon: Salon) -> None:
        body = {"resourceId": salon.resource, "url": url}
        answer = salon.api.call("POST", f"{PATH}/create", body)
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "url")


class TestReadNow:
    def test_it_is_read_within_a_minute_and_then_on_schedule(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        server = net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        time.pass_by(minutes=5)
        read_now(salon)
        assert readings(time, seconds=1) == 1
        # The reading that was due has no effect.
        readings(time, minutes=10)
        assert len(server.requests) == 2
        readings(time, minutes=5)
        assert len(server.requests) == 3

    def test_a_second_click_is_one_reading_and_a_loop_reads_once_a_minute(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        server = net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        time.pass_by(minutes=2)
        for _ in range(5):
            read_now(salon)
        readings(time, seconds=1)
        for _ in range(5):
            read_now(salon)
            readings(time, seconds=10)
        assert len(server.requests) == 2
        readings(time, seconds=10)
        assert len(server.requests) == 3

    def test_without_a_calendar_it_is_404(self, salon: Salon) -> None:
        answer = salon.api.call("POST", f"{PATH}/read", {"id": salon.resource})
        assert (answer.status, answer.data["key"]) == (404, "busy_calendar")


class TestRemoval:
    def test_its_times_can_be_booked_at_once_and_nothing_is_left(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        server = net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        assert remove(salon).status == 200
        assert "10:00" in starts(salon)
        assert (elsewhere(owner, salon), salon.api.get(PATH)["busyCalendars"]) == ({}, [])
        assert remove(salon).status == 404
        readings(time, hours=2)
        assert len(server.requests) == 1

    def test_its_times_go_if_the_process_died_after_the_commit(
        self, salon: Salon, net: Internet, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "attempt", lambda *_: None)
            assert remove(salon).status == 200
        assert "10:00" not in starts(salon)
        assert run_jobs()["busy-times-clear"] == 1
        assert "10:00" in starts(salon)

    def test_a_deleted_resource_takes_its_calendar_with_it(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        server = net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        salon.api.post("/api/resources/delete", {"id": salon.resource})
        assert [key for key in all_rows() if "#BUSY_CALENDAR" in key] == []
        assert elsewhere(owner, salon) == {}
        readings(time, hours=2)
        assert len(server.requests) == 1

    def test_another_link_replaces_the_times_of_the_former(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        other = "https://outlook.office365.com/owa/calendar/a/b/calendar.ics"
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN, etag='"x"'))
        later = http_response(busy("20270118T110000Z", "20270118T120000Z"))
        server = net.serve(other, later, address=ANOTHER)
        add(salon)
        readings(time, seconds=1)
        assert add(salon, other)["status"] == "waiting"
        assert "10:00" not in starts(salon)
        readings(time, seconds=1)
        assert ("10:00" in starts(salon), "14:00" in starts(salon)) == (True, False)
        assert "If-None-Match" not in server.requests[0]

    def test_a_calendar_that_is_removed_while_it_is_read_leaves_nothing(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        ok = http_response(TEN_TO_ELEVEN)

        def answer(sock: Any) -> None:
            remove(salon)
            ok(sock)

        net.serve(GOOGLE, answer)
        add(salon)
        readings(time, seconds=1)
        assert elsewhere(owner, salon) == {}
        assert "10:00" in starts(salon)

    def test_the_link_of_a_replaced_calendar_writes_nothing_late(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        other = "https://example.com/other.ics"
        ok = http_response(TEN_TO_ELEVEN)

        def answer(sock: Any) -> None:
            add(salon, other)
            ok(sock)

        net.serve(GOOGLE, answer)
        net.serve(other, http_response(calendar()), address=ANOTHER)
        add(salon)
        readings(time, seconds=1)
        readings(time, seconds=1)
        assert (elsewhere(owner, salon), state(salon)["host"]) == ({}, "example.com")

    def test_a_clearing_that_runs_late_spares_a_new_calendar(
        self, salon: Salon, owner: Owner, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        before = elsewhere(owner, salon)
        busy_readings.clear_days(owner.workspace.id, salon.resource)
        assert elsewhere(owner, salon) == before != {}


class TestFaults:
    def test_a_lost_answer_of_the_last_transaction_reads_once(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        server = net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        with faulty(TRANSACTION, closed, "after", 1):
            readings(time, seconds=1)
        run(time, minutes=7)
        readings(time, minutes=15)
        assert (state(salon)["status"], "10:00" in starts(salon)) == ("read", False)
        assert len(server.requests) <= 3

    def test_a_process_that_dies_between_two_writes_reads_again(
        self, salon: Salon, net: Internet, time: Time
    ) -> None:
        net.serve(GOOGLE, http_response(busy("20270101T000000Z", "20280101T000000Z")))
        add(salon)
        # The days are written in several transactions, the last of which fails.
        with faulty(TRANSACTION, closed, "before"):
            readings(time, seconds=1)
        assert state(salon)["status"] == "waiting"
        run(time, minutes=7)
        assert (state(salon)["status"], starts(salon)) == ("read", [])

    def test_bookings_and_readings_at_the_same_time_leave_no_booking_over_busy_time(
        self, api: Api, owner: Owner, net: Internet, time: Time
    ) -> None:
        salon = Salon.opened(api)
        net.serve(GOOGLE, http_response(busy("20270118T060000Z", "20270118T150000Z")))
        add(salon)
        time.pass_by(seconds=1)

        def act(number: int) -> int:
            if number == 0:
                return run_jobs()["busy-times-read"]
            return salon.try_to_book(f"{DAY}T{number + 9}:00", f"Ada {number}").status

        run_concurrently(6, act)
        # A booking was either first, or it was refused; no day lost a booking or its busy time.
        assert elsewhere(owner, salon) == {DAY: "360-900"}
        check_calendars(owner.workspace.id, salon.resources)
        assert starts(salon) == []


minutes = st.integers(6 * 60, 15 * 60)
spans = st.lists(st.tuples(minutes, st.integers(1, 200)), max_size=6)


@given(spans=spans, step=st.sampled_from([15, 30, 60]), length=st.sampled_from([30, 60, 90]))
def test_a_slot_never_overlaps_a_busy_time(
    spans: list[tuple[int, int]], step: int, length: int
) -> None:
    day = 1_800_000_000_000 // 86_400_000 * 86_400_000
    times = merge(
        (Span(day + at * 60_000, day + (at + long) * 60_000) for at, long in spans), touching=True
    )
    stored = calendar_days.elsewhere_by_day(times)
    back = [span for name, text in stored.items() for span in calendar_days._spans_of(name, text)]
    assert merge(back, touching=True) == times
    hours = parse([Rule(weekdays=range(7), intervals=[Interval("06:00", "18:00")])])
    world = slots.Calendar("one", "UTC", hours, 1, (), back)
    rules = ServiceRules(length, step, 0, 0, 0, 60)
    offered = slots.slots(rules, world, slots.Query(day, day + 86_399_999, day)).seats
    for start in range(
        day + 6 * 3_600_000, day + 18 * 3_600_000 - length * 60_000 + 1, step * 60_000
    ):
        end = start + length * 60_000
        overlaps = any(span.start < end and start < span.end for span in times)
        assert (start in offered) == (not overlaps)


class TestVisits:
    def test_no_service_of_a_visit_is_done_in_busy_time(
        self, api: Api, owner: Owner, net: Internet, time: Time
    ) -> None:
        salon = Salon.opened(api, [{"name": "Anna"}, {"name": "Olga"}])
        anna, olga = salon.resources
        body = {"name": "Colour", "durationMin": 60, "price": 100, "resourceIds": [anna]}
        colour = api.post("/api/services/create", body)["service"]["id"]
        net.serve(GOOGLE, http_response(TEN_TO_ELEVEN))
        add(salon)
        readings(time, seconds=1)
        path = f"/api/bookings/slots?serviceId={salon.service}&andThen={colour}"
        found = api.get(f"{path}&from={DAY}&to={DAY}&limit=300")["slots"]
        listed = {slot["startLocal"][11:16]: slot for slot in found}
        assert "09:00" not in listed
        assert listed["10:00"]["resourceIds"] == []  # Olga, and then Anna
        refused = salon.try_to_book(f"{DAY}T09:00", andThen=[colour])
        assert (refused.status, refused.data["reason"]) == (409, "time_off")
        visit = salon.try_to_book(f"{DAY}T10:00", andThen=[colour]).data["visit"]
        assert [each["resourceId"] for each in visit] == [olga, anna]
        moved = {"id": visit[0]["id"], "startAt": f"{DAY}T09:00"}
        refused = api.call("POST", "/api/bookings/reschedule", moved)
        assert (refused.status, refused.data["reason"]) == (409, "time_off")
        api.post("/api/bookings/reschedule", moved | {"ignoreSchedule": True})
        check_calendars(owner.workspace.id, salon.resources)
