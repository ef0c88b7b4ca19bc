"""Calendar feeds: their links, what they contain and leave out, and what they cost."""

import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar

from chalicelib.core import clock
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.schedule.flows import calendar_feeds
from chalicelib.domains.schedule.rules import feed_names
from chalicelib.domains.schedule.store.calendar_links import CalendarLinkRow
from chalicelib.engine.unit import run_unit
from infra.bench.dynamodb.usage import metering
from tests.conftest import (
    Answer,
    Api,
    Owner,
    Time,
    all_rows,
    call_console,
    call_operator,
    run_concurrently,
)
from tests.factories.salon import Salon
from tests.support.calendar_files import read_feed

LINKS = "/api/calendar-links"
DAY = "2027-01-18"
"""A Monday, three days from now."""
visitor = Api(None)


def make(api: Api, resource_id: str | None = None, **fields: Any) -> str:
    """Make a link, and return its URL."""
    body = {"resourceId": resource_id, **fields}
    url: str = api.post(f"{LINKS}/create", body)["calendarLink"]["url"]
    return url


def revoke(api: Api, resource_id: str | None = None) -> int:
    """Revoke a link, and return the status of the response."""
    (workspace,) = api.get("/api/workspaces/list")["workspaces"]
    return api.call("POST", f"{LINKS}/delete", {"id": resource_id or workspace["id"]}).status


def poll(url: str, tag: str | None = None) -> Answer:
    """Read a feed as a calendar program does."""
    headers = {"If-None-Match": tag} if tag else None
    return visitor.call("GET", urlsplit(url).path, headers=headers)


def events(url: str) -> list[Any]:
    """Return the events of a feed by their start, read by every reader that the suite has."""
    answer = poll(url)
    assert answer.status == 200, answer.body
    return read_feed(answer.body)


def titles(url: str) -> list[str]:
    return [str(event["SUMMARY"]) for event in events(url)]


class TestLinks:
    def test_a_repeated_call_returns_the_link_that_there_is(self, api: Api, salon: Salon) -> None:
        for resource in (None, salon.resource):
            first = make(api, resource)
            assert make(api, resource) == first
            assert poll(first).status == 200
        urls = [link["url"] for link in api.get(LINKS)["calendarLinks"]]
        assert urls == [make(api), make(api, salon.resource)]

    def test_links_are_listed_with_names(self, api: Api, salon: Salon, owner: Owner) -> None:
        make(api, salon.resource)
        make(api)
        listed = api.get(LINKS)["calendarLinks"]
        assert [(link["resourceId"], link["name"]) for link in listed] == [
            (None, owner.workspace.name),
            (salon.resource, "Stylist 0"),
        ]

    def test_a_new_link_ends_the_former_one_at_once(self, api: Api, salon: Salon) -> None:
        former = make(api, salon.resource)
        current = make(api, salon.resource, replace=True)
        assert current != former
        assert (poll(former).status, poll(current).status) == (404, 200)

    def test_a_revoked_link_stops_and_a_second_revocation_changes_nothing(
        self, api: Api, salon: Salon
    ) -> None:
        url = make(api, salon.resource)
        assert revoke(api, salon.resource) == 200
        assert poll(url).status == 404
        assert revoke(api, salon.resource) == 404
        assert make(api, salon.resource) != url

    def test_revoking_one_link_leaves_the_others(self, api: Api, salon: Salon) -> None:
        business, staff = make(api), make(api, salon.resource)
        revoke(api)
        assert (poll(business).status, poll(staff).status) == (404, 200)

    def test_the_link_of_a_deleted_resource_ends_with_it(self, api: Api, salon: Salon) -> None:
        url = make(api, salon.resource)
        salon.book(f"{DAY}T10:00")
        api.post("/api/resources/delete", {"id": salon.resource, "force": True})
        assert poll(url).status == 404
        assert api.get(LINKS)["calendarLinks"] == []
        assert [key for key in all_rows() if "#CALENDAR_LINK" in key] == []
        gone = api.call("POST", f"{LINKS}/create", {"resourceId": salon.resource})
        assert (gone.status, gone.data["key"]) == (404, "resource")

    @pytest.mark.parametrize("ends", ["suspend_workspace", "close_workspace"])
    def test_a_halted_workspace_has_no_feed_until_it_is_open_again(
        self, ends: str, api: Api, owner: Owner, salon: Salon
    ) -> None:
        url, home = make(api), owner.workspace
        if ends == "suspend_workspace":
            call_operator(ends, workspaceId=home.id)
        else:
            call_console(home.id, ends, account_id=home.owner_id)
        assert poll(url).status == 404
        if ends == "suspend_workspace":
            call_operator(ends, workspaceId=home.id, lift=True)
        else:
            call_console(home.id, "reopen_workspace", account_id=home.owner_id)
        assert poll(url).status == 200

    def test_all_links_that_do_not_work_get_the_same_answer(
        self, api: Api, salon: Salon, owner: Owner
    ) -> None:
        url = make(api, salon.resource)
        token = urlsplit(url).path.rpartition("/")[2].removesuffix(".ics")
        other = make(api)
        revoke(api)
        booked = visitor.post("/api/public/bookings", salon.order(f"{DAY}T10:00"))
        of_booking = booked["icsUrl"].rpartition("/")[2].removesuffix(".ics")
        swapped = token[:21] + token[:21] + token[42:]
        wrong = ["x", "", token[:-1], token[:-1] + ("A" if token[-1] != "A" else "B"), swapped]
        wrong += [of_booking, other.rpartition("/")[2].removesuffix(".ics"), "A" * 64]
        path = url.rpartition("/")[0]
        answers = [poll(f"{path}/{each}.ics") for each in wrong if each]
        bodies = {re.sub(r'"requestId":"[^"]+"', "", each.body.decode()) for each in answers}
        assert {each.status for each in answers} == {404}
        assert len(bodies) == 1
        assert poll(f"{path}/{token}").status == 200  # without the suffix

    def test_a_link_reads_no_booking_and_no_booking_reads_a_feed(
        self, api: Api, salon: Salon
    ) -> None:
        file = make(api, salon.resource).rpartition("/")[2]
        assert visitor.call("GET", f"/api/public/bookings/{file}").status == 404

    def test_another_workspace_sees_and_changes_no_link(
        self, api: Api, salon: Salon, new_owner: Callable[..., Owner]
    ) -> None:
        url, other = make(api, salon.resource), new_owner().api()
        assert other.get(LINKS)["calendarLinks"] == []
        assert revoke(other, salon.resource) == 404
        refused = other.call("POST", f"{LINKS}/create", {"resourceId": salon.resource})
        assert (refused.status, poll(url).status) == (404, 200)

    def test_no_log_line_has_a_link(
        self, api: Api, salon: Salon, caplog: pytest.LogCaptureFixture
    ) -> None:
        url = make(api, salon.resource)
        poll(url)
        revoke(api, salon.resource)
        poll(url)
        token = url.rpartition("/")[2].removesuffix(".ics")
        lines = "".join(json.dumps(vars(record), default=str) for record in caplog.records)
        assert "get_calendar_feed" in lines
        assert token not in lines

    def test_neither_the_audit_log_nor_an_export_has_a_link(
        self, api: Api, salon: Salon, owner: Owner
    ) -> None:
        make(api)
        row = CalendarLinkRow.of(owner.workspace.id, owner.workspace.id)
        assert row is not None
        others = [row for key, row in all_rows().items() if "#CALENDAR_LINK" not in key]
        assert row.secret not in json.dumps(others, default=str)


class TestRaces:
    def test_two_who_make_a_link_at_once_get_the_same_one_that_works(
        self, api: Api, salon: Salon
    ) -> None:
        urls = run_concurrently(4, lambda _: make(api, salon.resource))
        assert len({*urls}) == 1
        assert poll(urls[0]).status == 200

    def test_of_two_replacements_at_once_exactly_one_link_works(
        self, api: Api, salon: Salon
    ) -> None:
        former = make(api, salon.resource)
        urls = run_concurrently(3, lambda _: make(api, salon.resource, replace=True))
        works = [url for url in {former, *urls} if poll(url).status == 200]
        (listed,) = api.get(LINKS)["calendarLinks"]
        assert works == [listed["url"]]

    def test_no_poll_that_begins_after_a_revocation_succeeds(self, api: Api, salon: Salon) -> None:
        salon.book(f"{DAY}T10:00")
        url, revoked = make(api, salon.resource), threading.Event()
        late: list[int] = []

        def read() -> None:
            for _ in range(30):
                was_revoked = revoked.is_set()
                status = poll(url).status
                if was_revoked:
                    late.append(status)
                    return

        def end() -> None:
            revoke(api, salon.resource)
            revoked.set()

        run_concurrently(3, lambda number: (read, read, end)[number]())
        assert {*late, poll(url).status} == {404}

    def test_a_link_and_the_deletion_of_its_resource_leave_no_link(
        self, api: Api, salon: Salon
    ) -> None:
        calls = [
            lambda: api.call("POST", f"{LINKS}/create", {"resourceId": salon.resource}),
            lambda: api.call("POST", "/api/resources/delete", {"id": salon.resource}),
        ]
        made, deleted = run_concurrently(2, lambda number: calls[number]())
        assert (deleted.status, made.status in {200, 404}) == (200, True)
        assert [key for key in all_rows() if "#CALENDAR_LINK" in key] == []


class TestContent:
    def test_staff_see_their_bookings_and_the_business_sees_all_with_their_names(
        self, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{}, {}])
        for number, resource in enumerate(salon.resources):
            salon.book(f"{DAY}T1{number}:00", f"C{'ab'[number]} Last", resourceId=resource)
        assert titles(make(api, salon.resources[0])) == ["Haircut · Ca"]
        assert titles(make(api)) == ["Haircut · Ca (Stylist 0)", "Haircut · Cb (Stylist 1)"]

    def test_a_feed_says_its_name_and_when_to_read_it_again(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        answer = poll(make(api, salon.resource))
        calendar = Calendar.from_ical(answer.body)
        assert str(calendar["X-WR-CALNAME"]) == f"Stylist 0 – {owner.workspace.name}"
        assert calendar["REFRESH-INTERVAL"].dt == timedelta(hours=1)
        assert (str(calendar["X-PUBLISHED-TTL"]), str(calendar["METHOD"])) == ("PT1H", "PUBLISH")
        headers = {name.lower(): value for name, value in answer.headers.items()}
        assert headers["content-type"] == "text/calendar; charset=utf-8"
        assert headers["cache-control"] == "private, no-cache"
        assert headers["x-robots-tag"] == "noindex"
        assert poll(make(api) + "x").headers["X-Robots-Tag"] == "noindex"

    def test_an_event_has_the_uid_and_times_of_the_clients_own_file(
        self, api: Api, salon: Salon
    ) -> None:
        booked = visitor.post("/api/public/bookings", salon.order(f"{DAY}T10:00"))
        own_file = visitor.call("GET", urlsplit(booked["icsUrl"]).path)
        (own,) = Calendar.from_ical(own_file.body).walk("VEVENT")
        (event,) = events(make(api))
        for name in ("UID", "SEQUENCE", "STATUS", "DTSTAMP", "LAST-MODIFIED"):
            assert event[name] == own[name]
        assert event["DTSTART"].dt == own["DTSTART"].dt == datetime(2027, 1, 18, 7, tzinfo=UTC)
        assert event["DTEND"].dt == own["DTEND"].dt

    def test_bookings_that_take_up_no_time_are_left_out(self, api: Api, salon: Salon) -> None:
        kept = salon.book(f"{DAY}T10:00")
        for hour, status in ((12, "cancelled"), (14, "no_show")):
            salon.set_status(salon.book(f"{DAY}T{hour}:00", f"B{hour}")["id"], status)
        (event,) = events(make(api))
        assert str(event["UID"]).startswith(kept["id"])
        salon.set_status(kept["id"], "completed")
        assert len(events(make(api))) == 1

    def test_an_unpaid_booking_is_tentative_until_its_hold_ends(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, requirePayment=True)
        salon.book(f"{DAY}T10:00")
        url = make(api)
        assert [str(event["STATUS"]) for event in events(url)] == ["TENTATIVE"]
        time.pass_by(minutes=31)
        assert events(url) == []

    def test_the_window_begins_14_days_ago_and_ends_in_180_days(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        now = clock.now()
        minute = timedelta(minutes=1)
        starts = {
            "over": now - timedelta(days=14, hours=1),
            "oldest": now - timedelta(days=14, hours=1) + minute,
            "running": now - minute,
            "latest": now + timedelta(days=180) - minute,
            "far": now + timedelta(days=180),
        }
        for name, start in starts.items():
            store(owner, salon, start, name=name.capitalize())
        shown = ["Oldest", "Running", "Latest"]
        assert titles(make(api, salon.resource)) == [f"Haircut · {name}" for name in shown]

    def test_a_booking_follows_its_moves_to_another_member_of_the_staff(
        self, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{}, {}])
        booking = salon.book(f"{DAY}T10:00", resourceId=salon.resources[0])
        first, second = (make(api, resource) for resource in salon.resources)
        assert (len(events(first)), len(events(second))) == (1, 0)
        moved = {"id": booking["id"], "startAt": f"{DAY}T12:00", "resourceId": salon.resources[1]}
        api.post("/api/bookings/reschedule", moved)
        (event,) = events(second)
        assert events(first) == []
        assert (event["SEQUENCE"], event["DTSTART"].dt.hour) == (1, 9)

    def test_after_an_erasure_a_feed_has_no_name(
        self, api: Api, owner: Owner, salon: Salon, time: Time
    ) -> None:
        salon.book(f"{DAY}T10:00", "Ada Lovelace")
        time.pass_by(days=4)  # An erasure cancels upcoming bookings.
        url = make(api)
        assert titles(url) == ["Haircut · Ada (Stylist 0)"]
        tag = poll(url).headers["ETag"]
        call_operator(
            "erase_client", workspaceId=owner.workspace.id, email="ada.lovelace@example.com"
        )
        answer = poll(url, tag)
        assert answer.status == 200
        assert titles(url) == ["Haircut (Stylist 0)"]
        assert b"Ada" not in answer.body


NAMES = {
    "Ada Lovelace": "Ada",
    "Lovelace, Ada": "Ada",
    "  Ada ": "Ada",
    "Ada,": "Ada",
    "J.R": "",
    "Ёлка Иванова": "Ёлка",
    "Anne-Marie O'Neil": "Anne-Marie",
    "J. Smith": "J.",
    "王芳": "王芳",
    "+7 495 123-45-67": "",
    "8(495)1234567 Ada": "",
    "ada@example.com": "",
    "Ada@home": "",
    "ada.example.com": "",
    "@ada": "",
    "": "",
    "---": "",
}


WORKSPACE = "01KDVDNA0065DD7NP22R5P1AMP"
MARKS = st.lists(st.from_regex(r"Zq[a-z]{6}", fullmatch=True), min_size=5, max_size=5, unique=True)
DIGITS = st.from_regex(r"9[1-9]{9}", fullmatch=True)


def booking_of(  # the parts of a client
    first: str, last: str, mailbox: str, note: str, external: str, *, digits: str, between: str
) -> dict[str, Any]:
    """Return a booking of a client with contacts, whose names are joined by some characters."""
    return {
        "status": "confirmed",
        "service_name": f"Cut{between}",
        "resource_name": f"Maria{between}X-PLANTED:1",
        "starts_at": datetime(2027, 1, 18, 7, tzinfo=UTC),
        "ends_at": datetime(2027, 1, 18, 8, tzinfo=UTC),
        "client_name": f"{first} {between}{last}",
        "client_email": f"{mailbox}@example.com",
        "client_phone": f"+7{digits}",
        "phone_entered": f"8 {digits}",
        "phone_digits": f"8{digits}",
        "notes": f"{note}{between}{note}",
        "external_id": external,
        "metadata": {"k": external},
    }


class TestPrivacy:
    @pytest.mark.parametrize(("name", "shown"), NAMES.items())
    def test_a_first_name_is_a_word_of_letters(self, name: str, shown: str) -> None:
        assert feed_names.first_name(name) == shown

    @given(name=st.text(max_size=60))
    def test_no_first_name_has_a_digit_a_space_or_an_at_sign(self, name: str) -> None:
        shown = feed_names.first_name(name)
        assert not re.search(r"[\d\s@:;,/+]", shown)
        assert shown in name

    @given(
        marks=MARKS, digits=DIGITS, punctuation=st.text(max_size=4), is_of_business=st.booleans()
    )
    def test_no_contact_of_a_client_is_in_an_event(
        self, marks: list[str], digits: str, punctuation: str, is_of_business: bool
    ) -> None:
        first, *secrets = marks
        row = BOOKINGS.new(WORKSPACE, **booking_of(*marks, digits=digits, between=punctuation))
        row.created_at = row.updated_at = clock.now()
        text = calendar_feeds.event_text(WORKSPACE, row, is_of_business=is_of_business)
        raw = f"BEGIN:VCALENDAR\r\n{text}END:VCALENDAR\r\n".encode()
        (event,) = Calendar.from_ical(raw).walk("VEVENT")
        assert "X-PLANTED" not in event
        assert all(len(line) <= 75 for line in raw.split(b"\r\n"))
        shown = unfolded(raw)
        assert first in shown
        for secret in (*secrets, digits, "@example.com"):
            assert secret not in shown

    @pytest.mark.parametrize("punctuation", [" ", "\nX-PLANTED:", ";", ",", '"', "\u2028"])
    def test_no_contact_of_a_client_is_in_a_feed(
        self, punctuation: str, api: Api, owner: Owner, salon: Salon
    ) -> None:
        first, *secrets = marks = [f"Zq{letter * 6}" for letter in "abcde"]
        planted = booking_of(*marks, digits="9123456789", between=punctuation)
        del planted["service_name"]
        booking_id = store(owner, salon, clock.now() + timedelta(hours=1), **planted)
        for url in (make(api), make(api, salon.resource)):
            shown = unfolded(poll(url).body)
            assert booking_id in shown
            assert first in shown
            for secret in (*secrets, "9123456789", "@example.com"):
                assert secret not in shown
            assert len(events(url)) == 1


def unfolded(raw: bytes) -> str:
    return raw.decode().replace("\r\n ", "")


def store(owner: Owner, salon: Salon, start: datetime, *, name: str = "Ada", **fields: Any) -> str:
    """Store a booking of an hour as if it had been made long ago, and return its id."""
    row = BOOKINGS.new(
        owner.workspace.id,
        **{
            "status": "confirmed",
            "service_id": salon.service,
            "service_name": "Haircut",
            "resource_id": salon.resource,
            "resource_name": "Stylist 0",
            "starts_at": start,
            "ends_at": start + timedelta(hours=1),
            "duration_min": 60,
            "timezone": "Europe/Moscow",
            "price": 0,
            "client_id": "c",
            "client_name": name,
            "source": "api",
            **fields,
        },
    )
    run_unit(owner.workspace.id, None, lambda unit: unit.create(row))
    return row.id


class TestPolls:
    def test_an_unchanged_feed_is_304_without_reading_bookings(
        self, api: Api, salon: Salon
    ) -> None:
        for hour in (10, 12, 14):
            salon.book(f"{DAY}T{hour}:00", f"C{hour}")
        url = make(api)
        answer = poll(url)
        with metering() as usage:
            again = poll(url, answer.headers["ETag"])
        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == answer.headers["ETag"]
        assert again.headers["Cache-Control"] == "private, no-cache"
        assert "BatchGetItem" not in usage.calls

    @pytest.mark.parametrize(
        "header", ['"{}"', 'W/"{}"', '"a", W/"{}"', 'W/"a",W/"{}"'], ids=lambda it: it.format("")
    )
    def test_a_tag_may_be_strong_or_weak_and_one_of_several(
        self, header: str, api: Api, salon: Salon
    ) -> None:
        url = make(api)
        tag = poll(url).headers["ETag"].removeprefix("W/").strip('"')
        assert poll(url, header.format(tag)).status == 304
        assert poll(url, '"other"').status == 200
        assert poll(url, f'"{"x" * 3000}"').status == 200

    def test_each_visible_change_changes_the_tag(self, api: Api, owner: Owner, time: Time) -> None:
        salon = Salon.opened(api, [{}, {}])
        business, staff = make(api), make(api, salon.resource)
        seen = {poll(staff).headers["ETag"]}

        def is_new(url: str = staff) -> bool:
            tag = poll(url).headers["ETag"]
            is_new_tag = tag not in seen
            seen.add(tag)
            return is_new_tag

        assert is_new(business)
        booking = salon.book(f"{DAY}T10:00", resourceId=salon.resource)
        assert is_new()
        assert is_new(business)
        body = {"id": booking["id"], "startAt": f"{DAY}T11:00", "resourceId": salon.resource}
        api.post("/api/bookings/reschedule", body)
        assert is_new()
        assert is_new(business)
        api.post("/api/resources/update", {"id": salon.resource, "name": "Maria"})
        assert is_new()
        assert not is_new(business)
        salon.book(f"{DAY}T10:00", "Bob", resourceId=salon.resources[1])
        assert not is_new()
        assert is_new(business)
        salon.set_status(booking["id"], "cancelled")
        assert is_new()

    def test_a_head_request_has_the_headers_of_the_feed(self, api: Api, salon: Salon) -> None:
        url = make(api)
        head = visitor.call("HEAD", urlsplit(url).path)
        assert (head.status, head.headers["ETag"]) == (200, poll(url).headers["ETag"])

    def test_a_full_feed_has_the_next_bookings_and_then_the_latest(
        self, api: Api, owner: Owner, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calendar_feeds, "MAX_EVENTS", 4)
        now = clock.now()
        for hours, name in ((-30, "a"), (-20, "b"), (-10, "c"), (10, "d"), (20, "e"), (30, "f")):
            store(owner, salon, now + timedelta(hours=hours), name=name)
        assert titles(make(api)) == [f"Haircut · {name} (Stylist 0)" for name in "cdef"]
        monkeypatch.setattr(calendar_feeds, "MAX_EVENTS", 2)
        assert titles(make(api)) == [f"Haircut · {name} (Stylist 0)" for name in "de"]

    def test_a_feed_ends_before_a_response_would_be_too_large(
        self, api: Api, owner: Owner, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for hours in range(1, 6):
            start = clock.now() + timedelta(hours=hours)
            store(owner, salon, start, service_name='"' * 200)
        url = make(api)
        size = len(poll(url).body)
        monkeypatch.setattr(calendar_feeds, "MAX_BYTES", 3 * size // 2)
        assert 0 < len(events(url)) < 5


def test_the_organizer_is_the_address_of_the_service(api: Api, salon: Salon) -> None:
    booking = salon.book(f"{DAY}T10:00")
    row = BOOKINGS.find(workspace_of(salon), record_id=booking["id"])
    assert row is not None
    plain = booking_links.calendar_event(workspace_of(salon), workspace=None, booking=row)
    (event,) = events(make(api))
    assert str(event["ORGANIZER"]) == f"mailto:{plain.organizer}"
    assert "LOCATION" not in event


def workspace_of(salon: Salon) -> str:
    (workspace,) = salon.api.get("/api/workspaces/list")["workspaces"]
    workspace_id: str = workspace["id"]
    return workspace_id
