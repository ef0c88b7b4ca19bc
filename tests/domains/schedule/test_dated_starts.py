"""A service is offered on dates only: a class with places, and what it keeps from others."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from chalicelib.engine import jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Answer, Api, Owner, Time, run_concurrently
from tests.factories.salon import Salon, bookings_of, check_calendars, refusal
from tests.support.interleaving import before_request

ADD, REMOVE, STARTS = (
    "/api/services/starts",
    "/api/services/remove-starts",
    "/api/services/starts",
)
MONDAY = "2027-01-18"
EVENING = f"{MONDAY}T17:00"
"""The usual start of a class. Now it is Friday, 2027-01-15, 15:00 in Moscow."""


@pytest.fixture
def school(api: Api, time: Time) -> Salon:
    """Anna has 8 places, from 9 to 18 every day. Her class takes an hour."""
    return Salon.opened(api, [{"name": "Anna", "capacity": 8}], name="Yoga", fixedStarts=True)


@pytest.fixture
def massage(school: Salon) -> Salon:
    """A massage by the same Anna, at any time."""
    body = {"name": "Massage", "durationMin": 60, "resourceIds": school.resources}
    service = school.api.post("/api/services/create", body)["service"]
    return Salon(school.api, service["id"], school.resources)


def add(school: Salon, start: str = EVENING, **fields: Any) -> Any:
    return school.api.post(ADD, {"serviceId": school.service, "startAt": start, **fields})


def try_to_add(school: Salon, start: str = EVENING, **fields: Any) -> Answer:
    body = {"serviceId": school.service, "startAt": start, **fields}
    return school.api.call("POST", ADD, body)


def try_to_remove(school: Salon, start: str = EVENING, **fields: Any) -> Answer:
    body = {"serviceId": school.service, "startAt": start, **fields}
    return school.api.call("POST", REMOVE, body)


def remove(school: Salon, start: str = EVENING, **fields: Any) -> Any:
    return school.api.post(REMOVE, {"serviceId": school.service, "startAt": start, **fields})


def dates(school: Salon, **query: str) -> Any:
    more = "".join(f"&{name}={value}" for name, value in query.items())
    return school.api.get(f"{STARTS}?serviceId={school.service}{more}")["starts"]


def locals_of(starts: list[Any]) -> list[str]:
    return [each["startLocal"][:16] for each in starts]


def refused(answer: Answer, code: str, reason: str | None = None) -> Any:
    assert (answer.status, answer.data["code"]) == (409, code), answer.body
    assert answer.data.get("reason") == reason
    return answer.data


class TestAdding:
    def test_a_service_without_the_option_has_no_dates(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api)
        assert salon.search(limit=1)["slots"][0].keys() >= {"free"}
        assert "places" not in salon.search(limit=1)["slots"][0]
        answer = try_to_add(salon)
        assert (answer.status, answer.data["errors"][0]["key"]) == (400, "no_fixed_starts")

    def test_a_service_is_offered_at_its_dates_only(self, school: Salon) -> None:
        assert school.search()["reason"] == "no_starts"
        add(school)
        answer = school.search(first=MONDAY)
        assert [
            (slot["startLocal"][:16], slot["free"], slot["places"]) for slot in answer["slots"]
        ] == [(EVENING, 8, 8)]
        refusal(school.try_to_book(f"{MONDAY}T11:00"), "no_starts")

    def test_dates_are_added_weekly_at_the_same_local_time(self, api: Api, time: Time) -> None:
        anna = {"name": "Anna", "timezone": "Europe/Berlin"}
        school = Salon.opened(api, [anna], fixedStarts=True, horizonDays=365)
        added = add(school, "2027-03-15T12:00", weeks=4)
        assert added["refused"] == []
        # The clocks change on 28 March.
        assert [each["startAt"][11:16] for each in added["starts"]] == ["11:00"] * 2 + ["10:00"] * 2
        assert locals_of(dates(school)) == locals_of(added["starts"])

    def test_weeks_with_an_obstacle_are_left_out_and_named(
        self, school: Salon, massage: Salon
    ) -> None:
        school.api.post(
            "/api/resources/create-time-off", {"startAt": "2027-01-25", "endAt": "2027-01-25"}
        )
        massage.book("2027-02-01T16:30", ignoreSchedule=True)
        added = add(school, weeks=4)
        assert locals_of(added["starts"]) == [EVENING, "2027-02-08T17:00"]
        assert [each["reason"] for each in added["refused"]] == ["time_off", "booked"]

    def test_a_date_outside_the_hours_is_refused(self, school: Salon) -> None:
        refused(try_to_add(school, f"{MONDAY}T17:30"), "start_unavailable", "closed")

    def test_two_dates_of_a_teacher_do_not_overlap(self, school: Salon) -> None:
        add(school)
        refused(try_to_add(school, f"{MONDAY}T16:30"), "start_unavailable", "other_date")
        other = Salon.opened(school.api, fixedStarts=True)
        update = {"id": other.service, "resourceIds": school.resources}
        school.api.post("/api/services/update", update)
        refused(try_to_add(other), "start_unavailable", "other_date")
        add(other, f"{MONDAY}T16:00")  # It only touches the other date.

    def test_a_date_that_is_there_stays_as_it_is(self, school: Salon) -> None:
        add(school)
        school.book(EVENING)
        (again,) = add(school)["starts"]
        assert again["booked"] == 1
        assert len(dates(school)) == 1

    def test_bookings_of_the_service_at_the_same_time_do_not_prevent_it(
        self, api: Api, time: Time
    ) -> None:
        school = Salon.opened(api, [{"capacity": 8}])
        school.book(EVENING)
        api.post("/api/services/update", {"id": school.service, "fixedStarts": True})
        (added,) = add(school)["starts"]
        assert (added["booked"], added["places"]) == (1, 8)

    def test_a_past_date_is_refused(self, school: Salon) -> None:
        answer = try_to_add(school, "2027-01-15T14:00")
        assert answer.data["errors"][0]["key"] == "past"

    def test_a_resource_must_be_named_if_there_are_several(self, api: Api, time: Time) -> None:
        school = Salon.opened(api, [{}, {}], fixedStarts=True)
        answer = try_to_add(school)
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "resourceId")
        add(school, resourceId=school.resources[1])
        (slot,) = school.search(first=MONDAY)["slots"]
        assert slot["resourceIds"] == [school.resources[1]]

    def test_a_resource_of_others_is_refused(self, school: Salon) -> None:
        other = Salon.opened(school.api)
        answer = try_to_add(school, resourceId=other.resource)
        assert (answer.status, answer.data["errors"][0]["key"]) == (400, "not_bound")


class TestBooking:
    def test_no_more_than_the_places_are_sold(self, school: Salon) -> None:
        add(school)
        for number in range(8):
            (slot,) = school.search(first=MONDAY)["slots"]
            assert slot["free"] == 8 - number
            school.book(EVENING, f"Client {number}")
        assert school.search(first=MONDAY)["reason"] == "fully_booked"
        refusal(school.try_to_book(EVENING))
        refusal(school.try_to_book(EVENING, ignoreSchedule=True))
        assert [(each["booked"], each["problem"]) for each in dates(school)] == [(8, None)]

    @pytest.mark.store
    def test_many_clients_at_once_get_no_more_than_the_places(
        self, owner: Owner, api: Api, time: Time
    ) -> None:
        school = Salon.opened(api, [{"capacity": 3}], fixedStarts=True)
        add(school)
        answers = run_concurrently(
            8, lambda number: school.try_to_book(EVENING, f"Client {number}")
        )
        assert sorted(answer.status for answer in answers) == [200] * 3 + [409] * 5
        check_calendars(owner.workspace.id, school.resources, capacity=3)

    def test_another_service_is_not_offered_while_a_date_is_there(
        self, school: Salon, massage: Salon
    ) -> None:
        add(school)
        starts = massage.starts(first=MONDAY, to=MONDAY)
        assert f"{MONDAY}T16:00" in starts
        assert EVENING not in starts
        refusal(massage.try_to_book(EVENING))
        refusal(massage.try_to_book(EVENING, ignoreSchedule=True))
        refusal(massage.try_to_book(f"{MONDAY}T16:30", ignoreSchedule=True))

    def test_buffers_of_both_are_kept(self, school: Salon, massage: Salon) -> None:
        for service in (school, massage):
            body = {"id": service.service, "bufferBeforeMin": 10, "bufferAfterMin": 10}
            school.api.post("/api/services/update", body)
        add(school, f"{MONDAY}T12:00")
        ignored = {"ignoreSchedule": True}
        refusal(massage.try_to_book(f"{MONDAY}T10:45", **ignored))
        refusal(massage.try_to_book(f"{MONDAY}T13:19", **ignored))
        massage.book(f"{MONDAY}T10:40", **ignored)
        massage.book(f"{MONDAY}T13:20", **ignored)

    def test_a_booking_beside_a_date_of_its_service_is_refused(self, school: Salon) -> None:
        add(school)
        refusal(school.try_to_book(f"{MONDAY}T16:30", ignoreSchedule=True))
        school.book(f"{MONDAY}T12:00", ignoreSchedule=True)

    def test_a_booking_moves_to_another_date_of_the_service(self, school: Salon) -> None:
        add(school, weeks=2)
        booking = school.book(EVENING)
        elsewhere = school.set_status(booking["id"], "confirmed", startAt="2027-01-25T16:00")
        refusal(elsewhere, "no_starts")
        moved = school.set_status(booking["id"], "confirmed", startAt="2027-01-25T17:00")
        assert moved.status == 200
        assert [each["booked"] for each in dates(school)] == [0, 1]

    def test_a_cancelled_booking_returns_only_if_no_other_service_has_the_time(
        self, school: Salon, massage: Salon
    ) -> None:
        booking = massage.book(EVENING)
        massage.set_status(booking["id"], "cancelled")
        add(school)
        refusal(massage.set_status(booking["id"], "confirmed"))

    def test_a_visit_of_several_services_has_none_with_dates(
        self, school: Salon, massage: Salon
    ) -> None:
        add(school, f"{MONDAY}T12:00")
        answer = massage.try_to_book(f"{MONDAY}T11:00", andThen=[school.service])
        assert (answer.status, answer.data["errors"][0]["key"]) == (400, "fixed_starts")

    def test_a_service_that_became_longer_is_not_sold_before_its_date_is_added_again(
        self, school: Salon, massage: Salon
    ) -> None:
        add(school, f"{MONDAY}T12:00")
        school.book(f"{MONDAY}T12:00")
        massage.book(f"{MONDAY}T14:00")
        school.api.post("/api/services/update", {"id": school.service, "durationMin": 90})
        assert dates(school)[0]["problem"] == "does_not_fit"
        refusal(school.try_to_book(f"{MONDAY}T12:00", "Bob"), "no_starts")
        (longer,) = add(school, f"{MONDAY}T12:00")["starts"]
        assert longer["endAt"] == "2027-01-18T10:30:00.000Z"
        school.book(f"{MONDAY}T12:00", "Bob")
        school.api.post("/api/services/update", {"id": school.service, "durationMin": 121})
        refused(try_to_add(school, f"{MONDAY}T12:00"), "start_unavailable", "booked")

    def test_a_date_keeps_its_length_when_the_service_gets_shorter(
        self, school: Salon, massage: Salon
    ) -> None:
        add(school)
        school.api.post("/api/services/update", {"id": school.service, "durationMin": 30})
        (again,) = add(school)["starts"]
        assert again["endAt"] == "2027-01-18T15:00:00.000Z"
        refusal(massage.try_to_book(f"{MONDAY}T17:30", ignoreSchedule=True))


class TestListing:
    def test_time_off_and_hours_hide_a_date_and_the_list_says_so(self, school: Salon) -> None:
        add(school, weeks=2)
        school.api.post("/api/resources/create-time-off", {"startAt": MONDAY, "endAt": MONDAY})
        assert [each["problem"] for each in dates(school)] == ["time_off", None]
        school.set_hours(
            school.api, school.resource, [{"weekday": "sun", "start": "9:00", "end": "20:00"}]
        )
        assert [each["problem"] for each in dates(school)] == ["closed", "closed"]
        assert school.search(first=MONDAY, to="2027-02-10")["slots"] == []

    def test_dates_of_a_period_are_listed_in_pages(self, school: Salon) -> None:
        add(school, weeks=5)
        assert len(dates(school)) == 5
        assert locals_of(dates(school, **{"from": "2027-01-25", "to": "2027-02-01"})) == [
            "2027-01-25T17:00",
            "2027-02-01T17:00",
        ]
        assert locals_of(dates(school, size="2", page="3")) == ["2027-02-15T17:00"]
        assert school.api.call("GET", "/api/services/starts?serviceId=x").status == 404

    def test_a_date_beyond_the_horizon_waits(self, school: Salon, time: Time) -> None:
        add(school, "2027-04-05T17:00")
        assert dates(school)[0]["problem"] == "outside_horizon"

    def test_an_unbound_or_inactive_teacher_is_named(self, school: Salon) -> None:
        add(school)
        school.api.post("/api/resources/update", {"id": school.resource, "status": "inactive"})
        assert dates(school)[0]["problem"] == "no_resources"
        school.api.post("/api/resources/update", {"id": school.resource, "status": "active"})
        school.api.post("/api/services/update", {"id": school.service, "resourceIds": []})
        assert dates(school)[0]["problem"] == "not_bound"
        remove(school, resourceId=school.resource)


class TestRemoving:
    def test_a_date_without_bookings_is_removed_and_its_time_is_free(
        self, school: Salon, massage: Salon
    ) -> None:
        add(school, weeks=3)
        removed = remove(school, weeks=2)
        assert [start[:10] for start in removed["removed"]] == [MONDAY, "2027-01-25"]
        assert locals_of(dates(school)) == ["2027-02-01T17:00"]
        massage.book(EVENING)
        assert try_to_remove(school).status == 404

    def test_a_date_with_bookings_stays_and_the_error_names_their_number(
        self, school: Salon
    ) -> None:
        add(school)
        school.book(EVENING)
        school.book(EVENING, "Bob")
        error = refused(try_to_remove(school), "start_has_bookings")
        assert error["bookings"] == 2
        assert len(dates(school)) == 1

    def test_a_preview_changes_nothing(self, school: Salon) -> None:
        add(school)
        booking = school.book(EVENING)
        preview = remove(school, dryRun=True)
        assert [each["id"] for each in preview["bookings"]] == [booking["id"]]
        assert preview["total"] == 1
        assert [each["booked"] for each in dates(school)] == [1]

    def test_its_bookings_are_cancelled_and_others_stay(
        self, owner: Owner, school: Salon, massage: Salon
    ) -> None:
        add(school, weeks=2)
        ids = [school.book(EVENING, name)["id"] for name in ("Ada", "Bob")]
        other = school.book("2027-01-25T17:00")["id"]
        removed = remove(school, cancelBookings=True, reason="Ill")
        assert removed["summary"] == {"ok": 2, "failed": 0}
        assert sorted(each["id"] for each in removed["bookings"]) == sorted(ids)
        rows = {row.id: row.status for row in bookings_of(owner.workspace.id)}
        assert rows == dict.fromkeys(ids, "cancelled") | {other: "confirmed"}
        massage.book(EVENING)
        history = school.api.get(f"/api/bookings/{ids[0]}")["booking"]["statusHistory"]
        assert history[-1]["reason"] == "Ill"

    def test_a_call_that_stopped_continues(
        self, school: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add(school)
        for name in ("Ada", "Bob", "Cid"):
            school.book(EVENING, name)
        monkeypatch.setattr("chalicelib.domains.schedule.operations.dated_starts.MAX_CANCELLED", 2)
        assert remove(school, cancelBookings=True)["total"] == 1
        again = remove(school, cancelBookings=True)
        assert (again["removed"], again["total"], len(again["bookings"])) == ([], 0, 1)
        assert try_to_remove(school, cancelBookings=True).status == 404

    def test_cancelling_needs_the_scope_of_bookings(self, school: Salon, owner: Owner) -> None:
        add(school)
        answer = Api(owner.token(["services:write"])).call(
            "POST",
            REMOVE,
            {"serviceId": school.service, "startAt": EVENING, "cancelBookings": True},
        )
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")

    def test_a_deleted_service_gives_its_times_back(self, school: Salon, massage: Salon) -> None:
        add(school, weeks=3)
        school.api.post("/api/services/delete", {"id": school.service})
        massage.book(EVENING)
        gone = school.api.call("GET", f"/api/services/starts?serviceId={school.service}")
        assert gone.status == 404

    def test_dates_of_a_deleted_service_go_if_the_process_died_after_the_commit(
        self, school: Salon, massage: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add(school)
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "attempt", lambda *_: None)
            school.api.post("/api/services/delete", {"id": school.service})
        refusal(massage.try_to_book(EVENING))
        assert run_jobs()["starts-clear"] == 1
        massage.book(EVENING)

    def test_a_deleted_teacher_leaves_no_dates(self, school: Salon) -> None:
        add(school, weeks=3)
        school.api.post("/api/resources/delete", {"id": school.resource, "force": True})
        assert dates(school) == []

    def test_the_option_cannot_be_switched_off_while_there_are_dates(self, school: Salon) -> None:
        add(school)
        off = {"id": school.service, "fixedStarts": False}
        answer = school.api.call("POST", "/api/services/update", off)
        assert (answer.status, answer.data["key"]) == (409, "has_starts")
        remove(school)
        school.api.post("/api/services/update", off)
        assert EVENING in school.starts(first=MONDAY, to=MONDAY)


DECIDING = (b"#CALENDAR",)
"""A part of the keys of the rows in which bookings and dates meet."""
MOMENTS = 2
"""Requests of a call from the first that reads such a row, at least: it, and the commit."""
FIRST = datetime.fromisoformat("2027-01-18T12:00+03:00")


def at_each_moment(
    act: Callable[[str], object],
    call: Callable[[str], Callable[[], Answer]],
    *,
    late: bool,
    since: Sequence[bytes] = DECIDING,
) -> list[tuple[str, Answer]]:
    """Do something before each request of a call, on a day of its own. Return what was answered."""
    answers = list[tuple[str, Answer]]()
    for number in count(1):
        start = (FIRST + timedelta(days=number)).isoformat()
        done = list[bool]()

        def once(start: str = start, done: list[bool] = done) -> None:
            done.append(True)
            act(start)

        send = call(start)
        got = list[Answer]()
        with before_request(number, once, since=since, late=late):
            got.append(send())
        if not done:
            return answers
        answers.append((start, got[0]))
    raise AssertionError


@pytest.mark.store
@pytest.mark.parametrize("late", [False, True])
class TestAtTheSameMoment:
    def test_nobody_books_a_date_that_is_removed(
        self, late: bool, owner: Owner, school: Salon
    ) -> None:
        def book(start: str) -> Callable[[], Answer]:
            add(school, start)
            return lambda: school.try_to_book(start)

        removals = dict[str, Answer]()

        def take_away(start: str) -> None:
            removals[start] = try_to_remove(school, start)

        answers = at_each_moment(take_away, book, late=late)
        for start, answer in answers:
            # Either the date was sold, and stays, or it was removed, and is not sold.
            assert {answer.status, removals[start].status} == {200, 409}
        assert len(answers) >= MOMENTS
        assert len(dates(school)) == 1  # of the call that nothing disturbed

    def test_nobody_removes_a_date_that_is_booked(self, late: bool, school: Salon) -> None:
        bookings = dict[str, Answer]()

        def book(start: str) -> None:
            bookings[start] = school.try_to_book(start)

        def take_away(start: str) -> Callable[[], Answer]:
            add(school, start)
            return lambda: try_to_remove(school, start)

        answers = at_each_moment(book, take_away, late=late)
        for start, answer in answers:
            assert {answer.status, bookings[start].status} == {200, 409}
        assert 409 in {answer.status for _, answer in answers}

    def test_a_date_is_not_added_over_a_booking_of_another_service(
        self, late: bool, owner: Owner, school: Salon, massage: Salon
    ) -> None:
        bookings = dict[str, Answer]()

        def book(start: str) -> None:
            bookings[start] = massage.try_to_book(start)

        answers = at_each_moment(book, lambda start: lambda: try_to_add(school, start), late=late)
        for start, answer in answers:
            assert {answer.status, bookings[start].status} == {200, 409}
        assert 409 in {answer.status for _, answer in answers}
        check_calendars(owner.workspace.id, school.resources)

    def test_another_service_is_not_booked_over_a_date(
        self, late: bool, school: Salon, massage: Salon
    ) -> None:
        added = dict[str, Answer]()

        def add_date(start: str) -> None:
            added[start] = try_to_add(school, start)

        def book(start: str) -> Callable[[], Answer]:
            return lambda: massage.try_to_book(start)

        answers = at_each_moment(add_date, book, late=late)
        for start, answer in answers:
            assert {answer.status, added[start].status} == {200, 409}
        assert 409 in {answer.status for _, answer in answers}

    def test_a_deleted_service_gets_no_date(self, late: bool, api: Api, school: Salon) -> None:
        def delete_and_renew(start: str) -> None:
            api.post("/api/services/delete", {"id": services[-1]})

        services = list[str]()

        def add_to_new(start: str) -> Callable[[], Answer]:
            body = {"name": "Yoga", "durationMin": 60, "resourceIds": school.resources}
            created = api.post("/api/services/create", body | {"fixedStarts": True})["service"]
            services.append(created["id"])
            other = Salon(api, created["id"], school.resources)
            return lambda: try_to_add(other, start)

        answers = at_each_moment(delete_and_renew, add_to_new, late=late)
        massage_body = {"name": "Massage", "durationMin": 60, "resourceIds": school.resources}
        created = api.post("/api/services/create", massage_body)["service"]
        other = Salon(api, created["id"], school.resources)
        for start, _ in answers:
            other.book(start)

    def test_the_option_is_not_switched_off_while_a_date_is_added(
        self, late: bool, api: Api, school: Salon
    ) -> None:
        off = {"id": school.service, "fixedStarts": False}
        added = dict[str, Answer]()

        def add_date(start: str) -> None:
            added[start] = try_to_add(school, start)

        def switch(start: str) -> Callable[[], Answer]:
            for each in dates(school):
                remove(school, each["startAt"])
            api.post("/api/services/update", off | {"fixedStarts": True})
            return lambda: api.call("POST", "/api/services/update", off)

        answers = at_each_moment(add_date, switch, late=late, since=(b"LOCK",))
        for start, answer in answers:
            assert (added[start].status, answer.status) == (200, 409)
        assert answers


@pytest.mark.store
def test_threads_that_book_add_and_remove_leave_a_true_calendar(
    owner: Owner, school: Salon, massage: Salon
) -> None:
    """Everyone wants the same hours. Afterwards no booking of another service is over a date."""

    def act(number: int) -> int:
        hour = f"{MONDAY}T{12 + number % 3}:00"
        match number % 4:
            case 0:
                return try_to_add(school, hour).status
            case 1:
                return massage.try_to_book(hour, f"Client {number}").status
            case 2:
                return school.try_to_book(hour, f"Client {number}").status
            case _:
                return try_to_remove(school, hour).status

    assert set(run_concurrently(16, act)) <= {200, 404, 409}
    classes = {each["startAt"]: each["booked"] for each in dates(school)}
    for row in bookings_of(owner.workspace.id):
        start = row.starts_at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        assert (start in classes) == (row.service_id == school.service)
    assert sum(classes.values()) == sum(
        row.service_id == school.service for row in bookings_of(owner.workspace.id)
    )
    check_calendars(owner.workspace.id, school.resources, capacity=8)
