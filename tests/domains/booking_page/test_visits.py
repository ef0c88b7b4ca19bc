"""Visits of several services that visitors book, move, pay and cancel, and who is told."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.services.store.services import SERVICES
from tests.conftest import Answer, Api, Owner, Time, all_rows
from tests.domains.notifications.clients import ADA, mails_to, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon, bookings_of, check_calendars
from tests.transports.public.booking_page.helpers import BookingPage, links, text

BOOK = "/api/public/bookings"
NOON, ONE = (f"2027-03-03T{hour}:00:00Z" for hour in ("12", "13"))


@pytest.fixture
def salon(api: Api, inbox: Inbox) -> Salon:
    return Salon.opened(api, [{}, {}])


@pytest.fixture
def colour(salon: Salon) -> str:
    body = {"name": "Colour", "durationMin": 30, "price": 50_000}
    body["resourceIds"] = salon.resources[-1:]
    created: str = salon.api.post("/api/services/create", body)["service"]["id"]
    return created


def book(salon: Salon, colour: str, start: str = NOON, **fields: Any) -> Any:
    contact = {"name": "Ada", "email": ADA}
    body = salon.order(start) | {"client": contact, "andThen": [colour]} | fields
    return visitor.post(BOOK, body)


def rows_of(owner: Owner) -> list[BookingRow]:
    """Return the bookings of visits, in order."""
    rows = [row for row in bookings_of(owner.workspace.id) if row.visit]
    return sorted(rows, key=lambda row: row.starts_at)


def token(made: Any) -> str:
    return str(made["manageUrl"].rpartition("/")[2])


def test_a_visit_is_one_booking_for_its_client(
    salon: Salon, colour: str, owner: Owner, time: Time
) -> None:
    found = visitor.get(f"/api/public/services/{salon.service}/slots?andThen={colour}&limit=1")
    assert (found["price"], found["durationMin"]) == (200_000, 90)
    made = book(salon, colour, price=200_000, durationMin=90, amountDue=0)
    assert made["booking"]["serviceName"] == "Haircut, Colour"
    assert made["booking"]["price"] == 200_000
    assert made["booking"]["endAt"] == "2027-03-03T13:30:00.000Z"
    assert [part["serviceName"] for part in made["visit"]] == ["Haircut", "Colour"]
    managed = visitor.post(f"{BOOK}/by-token", {"token": token(made)})
    assert managed["booking"] == made["booking"]
    assert (managed["durationMin"], managed["canMove"]) == (90, True)
    assert managed["hasOtherResources"] is False
    changed = visitor.call("POST", BOOK, salon.order(ONE) | {"andThen": [colour], "price": 150_000})
    assert (changed.status, changed.data["code"]) == (409, "changed")
    assert changed.data["price"] == 200_000


def test_the_page_of_a_visit_leads_to_all_of_its_services_again(
    salon: Salon, colour: str, owner: Owner, time: Time
) -> None:
    page = BookingPage(owner, salon)
    page.set(isOn=True, offer=[salon.service, colour])
    first, second = salon.resources

    def repeated(made: Any) -> str:
        managed = visitor.post(f"{BOOK}/by-token", {"token": token(made)})
        return str(managed["repeatUrl"]).partition("?")[2]

    alone = book(salon, colour, resourceId=second)
    assert repeated(alone) == f"staff={second}&then={colour}"
    shared = book(salon, colour, "2027-03-04T12:00:00Z", resourceId=first)
    assert repeated(shared) == f"staff=any&then={colour}"
    steps = page.get(**dict([each.split("=") for each in repeated(shared).split("&")]))
    assert "Colour" in text(steps)
    # A service that is no longer offered would lead to no page.
    page.set(withdraw=[colour])
    assert repeated(shared) == f"staff={first}"


def test_a_client_moves_and_cancels_a_whole_visit(
    salon: Salon, colour: str, owner: Owner, time: Time
) -> None:
    made = book(salon, colour)
    moved = visitor.post(f"{BOOK}/reschedule", {"token": token(made), "startAt": ONE})
    assert [part["startAt"][11:16] for part in moved["visit"]] == ["13:00", "14:00"]
    check_calendars(owner.workspace.id, salon.resources)
    visitor.post(f"{BOOK}/cancel", {"token": made["cancelToken"]})
    assert {row.status for row in rows_of(owner)} == {"cancelled"}
    check_calendars(owner.workspace.id, salon.resources)
    file = visitor.call("GET", made["icsUrl"].removeprefix("http://127.0.0.1:8000")).body
    assert b"STATUS:CANCELLED" in file


def test_a_visit_is_one_mail_with_one_event_and_one_reminder(
    salon: Salon, colour: str, owner: Owner, inbox: Inbox, time: Time
) -> None:
    made = book(salon, colour)
    run_until_idle()
    (mail,) = mails_to(inbox)
    body = text_of(mail)
    assert "Haircut, Colour" in body
    assert "Stylist" in body
    (file,) = mail.iter_attachments()
    events = file.get_content()
    events = events if isinstance(events, str) else events.decode()
    assert events.count("BEGIN:VEVENT") == 1
    assert "DTSTART:20270303T120000Z" in events
    assert "DTEND:20270303T133000Z" in events
    visitor.post(f"{BOOK}/reschedule", {"token": token(made), "startAt": ONE})
    run_until_idle()
    assert len(mails_to(inbox)) == 2
    visitor.post(f"{BOOK}/cancel", {"token": token(made)})
    run_until_idle()
    assert len(mails_to(inbox)) == 3
    book(salon, colour)
    run_until_idle()
    count = len(mails_to(inbox))
    for day, hour in ((2, 12), (3, 10)):  # a day and two hours before, once each
        time.now = time.now.replace(month=3, day=day, hour=hour)
        run_until_idle()
    assert len(mails_to(inbox)) == count + 2


def test_members_are_told_once_of_a_visit_and_staff_of_their_part(
    salon: Salon, colour: str, owner: Owner, inbox: Inbox, time: Time
) -> None:
    book(salon, colour, resourceId=salon.resource)
    run_until_idle()
    told = [message for message in inbox.mails if message["To"] != ADA]
    assert len(told) == 1
    assert "Haircut, Colour" in text_of(told[0])


def try_to_book(salon: Salon, colour: str, start: str) -> Answer:
    contact = {"name": "Ada", "email": ADA}
    return visitor.call("POST", BOOK, salon.order(start, andThen=[colour]) | {"client": contact})


def test_a_visit_counts_as_one_booking_of_its_visitor_and_of_each_service(
    salon: Salon, colour: str, owner: Owner, time: Time
) -> None:
    before = all_rows()
    for hour in ("07", "09"):
        assert try_to_book(salon, colour, f"2027-03-03T{hour}:00:00Z").status == 200
    counts = {
        key.split("#")[1] + key.split("#")[2].split("/")[0]: row["taken"]["N"]
        for key, row in all_rows().items()
        if "LIMIT#un" in key and key not in before
    }
    assert {f"unverified{salon.service}", f"unverified{colour}"} <= counts.keys()
    assert set(counts.values()) == {"2"}
    assert len(rows_of(owner)) == 4


def test_the_link_of_a_mail_books_the_whole_visit(
    salon: Salon, colour: str, owner: Owner, inbox: Inbox, time: Time
) -> None:
    service = SERVICES.require(owner.workspace.id, record_id=colour)
    service.unverified_per_hour = 0
    service.save()
    assert try_to_book(salon, colour, NOON).status == 202
    run_until_idle()
    path = next(
        found[0]
        for mail in mails_to(inbox)
        if (found := re.search(r"/booking/confirm/[\w=-]+", text_of(mail)))
    )
    shown = visitor.call("GET", path)
    assert "Haircut, Colour" in text(shown)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert visitor.call("POST", path, b"", headers).status == 303
    assert len(rows_of(owner)) == 2
    check_calendars(owner.workspace.id, salon.resources)


def test_the_page_adds_services_removes_them_and_books_them(
    salon: Salon, colour: str, owner: Owner, time: Time
) -> None:
    page = BookingPage(owner, salon)
    page.set(isOn=True, offer=[salon.service, colour])
    add = f"{page.path}?step=add"
    assert add in links(page.get())
    added = f"{page.path}?then={colour}"
    assert added in links(page.get(step="add"))
    shown = page.get(then=colour)
    assert "Colour" in text(shown)
    assert "1 h 30 min" in text(shown)
    assert page.path in links(shown)
    assert f"{page.home}/{colour}" in links(shown)
    times = text(page.get(then=colour, staff="any"))
    assert f"then={colour}" in times
    form = page.get(then=colour, staff="any", at=NOON)
    assert "2,000" in text(form)
    assert f'action="{page.path}?then={colour}"' in text(form)
    body = b"at=2027-03-03T12%3A00%3A00Z&staff=any&once=1&name=Grace&email=grace@example.com"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
    made = visitor.call("POST", added, body, headers)
    assert made.status == 200
    assert "Haircut, Colour" in text(made)
    assert [row.service_name for row in rows_of(owner)] == ["Haircut", "Colour"]
    taken = visitor.call("POST", added, body.replace(b"once=1", b"once=2"), headers)
    assert taken.status in {200, 409}
    assert page.get(then="01ARZ3NDEKTSV4RRFFQ69G5FAV").status == 404
    assert page.get(then=".".join([colour] * 5)).status == 404


def test_the_page_shows_what_a_visit_costs_with_whom(
    salon: Salon, colour: str, owner: Owner, time: Time
) -> None:
    page = BookingPage(owner, salon)
    page.set(isOn=True, offer=[salon.service, colour])
    master = salon.resources[-1]
    own = [{"resourceId": master, "price": 250_000, "durationMin": 90}]
    salon.api.post("/api/services/update", {"id": salon.service, "resourceOverrides": own})
    times = page.get(then=colour, staff="any", month="2027-03", day="2027-03-03")
    # Only the master does it all, so a time leads to the form of the master.
    assert "from 2,000" in text(times)
    assert "3,000" in text(times)
    assert f"staff={master}" in text(times)
    form = text(page.get(then=colour, staff=master, at=NOON))
    assert "3,000" in form
    assert "2 h" in form
    path = f"{page.path}?then={colour}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}

    def send(**fields: str) -> Answer:
        body = {"at": NOON, "name": "Grace", "email": "grace@example.com", **fields}
        return visitor.call("POST", path, urlencode(body).encode(), headers)

    changed = send(staff=master, once="1", price="200000", durationMin="90")
    assert changed.status == 409
    assert "3,000" in text(changed)
    assert rows_of(owner) == []
    assert send(staff="any", once="2", price="200000", durationMin="90").status == 200
    rows = rows_of(owner)
    assert [row.resource_id for row in rows] == [salon.resource, master]
    assert [int(row.price) for row in rows] == [150_000, 50_000]
