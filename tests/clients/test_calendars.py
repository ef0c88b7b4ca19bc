"""Programs of others read the calendar feed of the demo, and find the same bookings in it."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import ics
import pytest
import recurring_ical_events
import vobject
from icalendar import Calendar

from tests.clients.client import JAVASCRIPT, Server
from tests.clients.frameworks import run_script

READERS = JAVASCRIPT / "node_modules" / "ical.js"
Found = dict[str, tuple[str, datetime, datetime]]
"""Title, start and end by the id of an event."""


@pytest.fixture(scope="module")
def feed(server: Server) -> str:
    """The feed of the whole business, with a booking whose texts need escapes."""
    base = os.environ["BASE_URL"]
    with httpx.Client(base_url=base, headers=server.headers) as api:
        link = api.post("/api/calendar-links/create", json={}).raise_for_status().json()["data"]
        service = {"name": 'Cut; "long", with \\ ' + "Ёлка " * 20, "durationMin": 30, "price": 0}
        (resource, *_) = api.get("/api/resources/list").json()["data"]["resources"]
        service["resourceIds"] = [resource["id"]]
        made = api.post("/api/services/create", json=service).raise_for_status().json()["data"]
        start = (datetime.now(UTC) + timedelta(days=3)).replace(hour=9, minute=0, second=0)
        booking = {
            "serviceId": made["service"]["id"],
            "resourceId": resource["id"],
            "startAt": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "client": {"name": "Ада Лавлейс", "email": "ada@example.com"},
            "ignoreSchedule": True,
        }
        api.post("/api/bookings/create", json=booking).raise_for_status()
        return httpx.get(link["calendarLink"]["url"]).raise_for_status().text


def by_icalendar(text: str) -> Found:
    """Return what icalendar has found, with which the others are compared."""
    return {
        str(event["UID"]): (str(event["SUMMARY"]), event["DTSTART"].dt, event["DTEND"].dt)
        for event in Calendar.from_ical(text).walk("VEVENT")
    }


def by_ics(text: str) -> Found:
    events = ics.Calendar(text).events
    return {str(it.uid): (it.name, it.begin.datetime, it.end.datetime) for it in events}


def by_vobject(text: str) -> Found:
    events: Any = vobject.readOne(text).vevent_list
    return {it.uid.value: (it.summary.value, it.dtstart.value, it.dtend.value) for it in events}


def by_recurring_ical_events(text: str) -> Found:
    now = datetime.now(UTC)
    found = recurring_ical_events.of(Calendar.from_ical(text)).between(
        now - timedelta(days=20), now + timedelta(days=200)
    )
    return {str(it["UID"]): (str(it["SUMMARY"]), it["DTSTART"].dt, it["DTEND"].dt) for it in found}


@pytest.mark.parametrize("read", [by_ics, by_vobject, by_recurring_ical_events])
def test_a_python_program_finds_each_booking(read: Callable[[str], Found], feed: str) -> None:
    expected = by_icalendar(feed)
    assert any("Ада" in title and "\\" in title for title, *_ in expected.values())
    assert read(feed) == expected


@pytest.mark.skipif(not READERS.exists(), reason="npm was not found, so no reader was installed")
@pytest.mark.parametrize("package", ["ical.js", "node-ical"])
def test_a_javascript_program_finds_each_booking(package: str, feed: str, tmp_path: Path) -> None:
    file = tmp_path / "calendar.ics"
    file.write_bytes(feed.encode())
    found = run_script("calendar.mjs", {}, file)
    events = json.loads(found)[package]
    assert {
        uid: (title, datetime.fromisoformat(start), datetime.fromisoformat(end))
        for uid, (title, start, end) in events.items()
    } == by_icalendar(feed)
