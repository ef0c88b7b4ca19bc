"""The page behind a booking's link, on which its client moves or cancels the booking."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.domains.booking_page.operations import cancel_and_move
from tests.conftest import Answer, Api, Owner, Time, run_concurrently
from tests.factories.salon import Salon, check_calendars
from tests.transports.public.booking_page.helpers import (
    FORM,
    NOON,
    BookingPage,
    links,
    manage_path,
    text,
    visitor,
)
from tests.transports.public.booking_page.test_booking_steps import rows_except_limits

TEN, ELEVEN = "2027-03-03T10:00:00Z", "2027-03-03T11:00:00Z"


@pytest.fixture
def path(page: BookingPage) -> str:
    """The link of a new booking."""
    return manage_path(page.send())


def open_link(path: str, **query: str) -> Answer:
    return visitor.call("GET", f"{path}?{urlencode(query)}" if query else path)


def send(path: str, **fields: str) -> Answer:
    return visitor.call("POST", path, urlencode(fields).encode(), FORM)


def move(path: str, start: str, **fields: str) -> Answer:
    return send(path, action="move", at=start, **fields)


def start_of(page: BookingPage) -> Any:
    (booking,) = page.bookings
    return booking["startAt"]


def test_a_client_chooses_another_day_and_time_and_confirms_the_move(
    path: str, page: BookingPage
) -> None:
    (choose,) = links(open_link(path), step="move")
    times = visitor.call("GET", choose)
    assert "Choose another time" in text(times)
    (day, *_) = links(times, day="2027-03-05")
    slots = visitor.call("GET", day.removesuffix("#day"))
    (slot, *_) = links(slots, at="2027-03-05T07")
    question = visitor.call("GET", slot)
    assert "Move the booking to this time?" in text(question)
    assert 'Friday, 5 March 2027, <span class="whole">10:00\u201311:00</span>' in text(question)
    assert start_of(page) == "2027-03-03T12:00:00.000Z"
    moved_page = move(path, "2027-03-05T07:00:00Z", once="key-1")
    assert moved_page.status == 200
    assert "The booking was moved." in text(moved_page)
    assert 'Friday, 5 March 2027, <span class="whole">10:00' in text(moved_page)
    assert start_of(page) == "2027-03-05T07:00:00.000Z"


def test_status_price_and_contacts_stay_and_the_history_names_the_visitor(
    path: str, page: BookingPage
) -> None:
    api, service = page.salon.api, page.salon.service
    api.post("/api/services/update", {"id": service, "price": 999_900, "durationMin": 60})
    move(path, TEN)
    (booking,) = page.bookings
    assert (booking["price"], booking["status"]) == (150_000, "confirmed")
    assert booking["client"]["email"] == "grace@example.com"
    history = api.get(f"/api/bookings/{booking['id']}")["booking"]["statusHistory"]
    assert history[-1]["move"]["to"]["startAt"] == "2027-03-03T10:00:00.000Z"
    assert history[-1]["by"].startswith("visitor")
    check_calendars(page.owner.workspace.id, page.salon.resources)


def test_looking_at_every_step_changes_nothing(path: str) -> None:
    rows_before = rows_except_limits()
    queries: list[dict[str, str]] = [
        {},
        {"step": "move"},
        {"step": "move", "day": "2027-03-05"},
        {"step": "move", "month": "2027-04", "staff": "any"},
        {"step": "move", "at": TEN},
        {"step": "cancel"},
        {"action": "cancel"},
        {"action": "move", "at": TEN},
    ]
    for query in queries:
        for method in ("GET", "HEAD", "OPTIONS"):
            assert visitor.call(method, f"{path}?{urlencode(query)}").status in {200, 204}
    assert rows_except_limits() == rows_before


def test_every_answer_of_the_link_is_private(path: str) -> None:
    answers = [
        open_link(path),
        open_link(path, step="move"),
        open_link(path, step="move", at=TEN),
        open_link(path, step="cancel"),
        send(path),
        move(path, "x"),
        move(path, TEN),
        send(path, action="cancel"),
        open_link(f"{path}x"),
    ]
    for answer in answers:
        headers = answer.headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Robots-Tag"] == "noindex"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "Set-Cookie" not in headers
        for hidden in ("Grace", "grace@example.com"):
            assert hidden not in text(answer)


def test_cancelling_asks_first(path: str, page: BookingPage) -> None:
    (ask,) = links(open_link(path), step="cancel")
    question = visitor.call("GET", ask)
    assert "Cancel this booking?" in text(question)
    assert page.bookings[0]["status"] == "confirmed"
    assert "Your booking is cancelled" in text(send(path, action="cancel"))
    assert page.bookings[0]["status"] == "cancelled"
    cancelled_page = open_link(path)
    assert not links(cancelled_page, step="move")
    assert not links(cancelled_page, step="cancel")
    for step in ("move", "cancel"):
        assert "Your booking is cancelled" in text(open_link(path, step=step))
    refusal = move(path, TEN)
    assert refusal.status == 409
    assert "This booking can no longer be moved." in text(refusal)


def test_a_form_without_an_action_changes_nothing(path: str, page: BookingPage) -> None:
    assert send(path).status == 200
    assert page.bookings[0]["status"] == "confirmed"


def test_a_time_that_was_sold_meanwhile_offers_the_nearest_ones(
    path: str, page: BookingPage
) -> None:
    page.salon.book(TEN)
    answer = move(path, TEN)
    assert answer.status == 409
    assert "This time is no longer free." in text(answer)
    (other, *_) = links(answer, at="2027-03-03")
    assert "Move the booking to this time?" in text(visitor.call("GET", other))
    assert start_of_client(page, "grace@example.com") == "2027-03-03T12:00:00.000Z"


def start_of_client(page: BookingPage, email: str) -> Any:
    return next(
        booking["startAt"] for booking in page.bookings if booking["client"]["email"] == email
    )


@pytest.mark.parametrize(
    "start",
    [
        "2027-03-03T02:00:00Z",
        "2027-03-01T05:00:00Z",
        "2027-03-03T10:30:00Z",
        "2027-09-03T10:00:00Z",
        "2027-03-03",
        "x",
        "",
    ],
)
def test_times_outside_hours_grid_and_horizon_are_refused(
    start: str, path: str, page: BookingPage
) -> None:
    assert move(path, start).status in {400, 409}
    assert start_of(page) == "2027-03-03T12:00:00.000Z"


def test_the_minimum_notice_of_the_service_holds_for_moves(path: str, page: BookingPage) -> None:
    page.salon.api.post("/api/services/update", {"id": page.salon.service, "minNoticeMin": 24 * 60})
    assert move(path, "2027-03-01T08:00:00Z").status == 409
    assert move(path, "2027-03-02T08:00:00Z").status == 200


def test_a_booking_that_has_begun_cannot_be_moved(path: str, page: BookingPage, time: Time) -> None:
    time.now = time.now.replace(day=3, hour=12)
    assert not links(open_link(path), step="move")
    refusal = move(path, "2027-03-04T10:00:00Z")
    assert refusal.status == 409
    assert "This booking has already started" in text(refusal)
    assert start_of(page) == "2027-03-03T12:00:00.000Z"


def test_a_client_moves_a_booking_at_most_five_times(path: str, page: BookingPage) -> None:
    for number in range(5):
        assert f"{5 - number} more time" in text(open_link(path)) or number == 4
        assert move(path, (TEN, ELEVEN)[number % 2]).status == 200
    assert "This booking can no longer be moved." in text(open_link(path))
    refusal = move(path, NOON)
    assert refusal.status == 409
    assert start_of(page) == "2027-03-03T10:00:00.000Z"
    assert move(path, TEN).status == 200, "the place that it has is no move"


def test_a_move_that_is_sent_twice_counts_once(path: str, page: BookingPage) -> None:
    for _ in range(3):
        assert move(path, TEN, once="key-1").status == 200
    assert "You can move it 4 more times." in text(open_link(path))


def test_of_concurrent_moves_each_is_counted(path: str, page: BookingPage) -> None:
    starts = [f"2027-03-{day:02}T10:00:00Z" for day in range(4, 12)]
    answers = run_concurrently(8, lambda n: move(path, starts[n], once=f"key-{n}"))
    assert sorted(answer.status for answer in answers) == [200] * 5 + [409] * 3
    check_calendars(page.owner.workspace.id, page.salon.resources)


def test_a_booking_moves_to_other_staff_of_the_service_only(api: Api, owner: Owner) -> None:
    salon = Salon.opened(api, resources=[{"name": "Anna"}, {"name": "Boris"}])
    stranger = api.post("/api/resources/create", {"name": "Carl"})["resource"]["id"]
    Salon.set_hours(api, stranger, [{"weekday": "wed", "start": "09:00", "end": "18:00"}])
    page = BookingPage.opened(owner, salon)
    path = manage_path(page.send(staff=salon.resources[0]))
    salon.book(TEN, resourceId=salon.resources[0])
    own_page = open_link(path, step="move", day="2027-03-03")
    assert not links(own_page, at="2027-03-03T10")
    everyone = open_link(path, step="move", day="2027-03-03", staff="any")
    (slot,) = links(everyone, at="2027-03-03T10")
    assert f"resource={salon.resources[1]}" in slot
    (link,) = links(everyone, at="2027-03-03T11")
    assert f"resource={salon.resources[0]}" in link
    assert move(path, TEN, resource=stranger).status == 409
    assert move(path, TEN, resource="0" * 26).status == 404
    assert "Boris" in text(move(path, TEN, resource=salon.resources[1]))


@pytest.mark.parametrize("change", ["inactive", "deleted"])
def test_a_booking_of_a_service_that_is_not_offered_can_only_be_cancelled(
    change: str, path: str, page: BookingPage
) -> None:
    api, service = page.salon.api, page.salon.service
    if change == "inactive":
        api.post("/api/services/update", {"id": service, "status": "inactive"})
    else:
        api.post("/api/services/delete", {"id": service})
    assert not links(open_link(path), step="move")
    assert move(path, TEN).status == 409
    assert "Your booking is cancelled" in text(send(path, action="cancel"))


def test_a_booking_whose_staff_was_deleted_moves_to_others(api: Api, owner: Owner) -> None:
    salon = Salon.opened(api, resources=[{"name": "Anna"}, {"name": "Boris"}])
    page = BookingPage.opened(owner, salon)
    path = manage_path(page.send(staff=salon.resources[0]))
    api.post("/api/resources/delete", {"id": salon.resources[0], "force": True})
    times = open_link(path, step="move", day="2027-03-03")
    (slot,) = links(times, at="2027-03-03T10")
    assert f"resource={salon.resources[1]}" in slot
    assert move(path, TEN, resource=salon.resources[1]).status == 200


def test_a_token_that_cancels_does_not_move(page: BookingPage) -> None:
    booking = visitor.post("/api/public/bookings", page.salon.order(NOON))
    for path in (f"/booking/{booking['cancelToken']}", re.sub(r"\.ics$", "", booking["icsUrl"])):
        assert move("/booking/" + path.rpartition("/")[2], TEN).status == 404
    assert start_of(page) == "2027-03-03T12:00:00.000Z"


def test_a_visitor_opens_links_at_most_sixty_times_a_minute(
    path: str, time: Time, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
) -> None:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    max_views = cancel_and_move.VIEWS.max_requests
    statuses = [open_link(path).status for _ in range(max_views + 1)]
    assert statuses == [200] * max_views + [429]
    time.pass_by(minutes=1)
    assert open_link(path).status == 200
