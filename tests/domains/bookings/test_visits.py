"""Visits: several services one after another, booked, moved and cancelled together."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from chalicelib.core import jobs as job_kinds
from chalicelib.core.clock import iso
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.engine import jobs
from tests.conftest import Answer, Api, Owner, Time, run_concurrently
from tests.factories.salon import CREATE, Salon, bookings_of, check_calendars, invalid, refusal
from tests.support.effort import examples

MONDAY = "2027-01-18"


def at(hour: str, day: str = MONDAY) -> str:
    return f"{day}T{hour}:00+03:00"


class Visits:
    """A salon with further services: Colour by the first stylist only, Nails by the last only."""

    def __init__(self, api: Api, owner: Owner, **service: Any) -> None:
        self.api, self.owner = api, owner
        self.salon = Salon.opened(api, [{}, {}], **service)
        self.colour = self.service("Colour", 30, self.salon.resources[:1], bufferAfterMin=10)
        self.nails = self.service("Nails", 45, self.salon.resources[-1:])

    def service(self, name: str, length: int, resources: list[str], **fields: Any) -> str:
        body = {"name": name, "durationMin": length, "price": 50_000, "resourceIds": resources}
        created: str = self.api.post("/api/services/create", body | fields)["service"]["id"]
        return created

    def book(self, start: str, *further: str, **fields: Any) -> Any:
        answer = self.salon.try_to_book(start, andThen=list(further), **fields)
        assert answer.status == 200, answer.body
        return answer.data

    def slots(self, *further: str, **query: str) -> Any:
        pairs = "".join(f"&andThen={service}" for service in further)
        pairs += "".join(f"&{name}={value}" for name, value in query.items())
        path = f"/api/bookings/slots?serviceId={self.salon.service}{pairs}"
        return self.api.get(f"{path}&from={MONDAY}&to={MONDAY}&limit=300")

    def rows(self) -> list[BookingRow]:
        return sorted(bookings_of(self.owner.workspace.id), key=lambda row: (row.starts_at, row.id))

    def places(self) -> list[tuple[str, str, str]]:
        """Start in Moscow, service and status of each booking."""
        return [
            (f"{row.starts_at + timedelta(hours=3):%H:%M}", row.service_name, row.status)
            for row in self.rows()
        ]

    def check(self) -> None:
        check_calendars(self.owner.workspace.id, self.salon.resources)


@pytest.fixture
def visits(api: Api, owner: Owner, time: Time) -> Visits:
    return Visits(api, owner)


def test_times_of_a_visit_are_those_of_the_sum_with_who_may_do_what(visits: Visits) -> None:
    first, last = visits.salon.resources
    found = visits.slots(visits.colour)
    assert [slot["startLocal"][11:16] for slot in found["slots"]] == [
        f"{hour:02}:00" for hour in range(9, 17)
    ]  # 17:00 would end at 18:30
    assert found["durationMin"] == 90
    slot = found["slots"][0]
    assert (slot["resourceIds"], slot["free"]) == ([first], 1)
    assert [part["serviceId"] for part in slot["parts"]] == [visits.salon.service, visits.colour]
    assert [part["resourceIds"] for part in slot["parts"]] == [[first, last], [first]]
    assert slot["parts"][0]["endAt"] == slot["parts"][1]["startAt"]
    assert slot["endAt"] == slot["parts"][1]["endAt"]


def test_a_visit_of_two_people_has_nobody_who_does_it_all(visits: Visits) -> None:
    slot = visits.slots(visits.colour, visits.nails)["slots"][0]
    assert slot["resourceIds"] == []
    booked = visits.book(at("09:00"), visits.colour, visits.nails)["visit"]
    first, last = visits.salon.resources
    assert [part["resourceId"] for part in booked] == [first, first, last]
    visits.check()


def test_one_person_does_a_visit_although_another_has_fewer_bookings(visits: Visits) -> None:
    first, _ = visits.salon.resources
    visits.salon.book(at("09:00"), "Bob", resourceId=first)
    booked = visits.book(at("11:00"), visits.colour)["visit"]
    assert [part["resourceId"] for part in booked] == [first, first]


def test_a_simple_search_and_booking_say_nothing_of_visits(visits: Visits) -> None:
    assert all("parts" not in slot for slot in visits.slots()["slots"])
    response = visits.salon.try_to_book(at("09:00")).data
    assert "visit" not in response
    assert "visitId" not in response["booking"]
    assert "visit" not in visits.api.get(f"/api/bookings/{response['booking']['id']}")


def test_the_bookings_of_a_visit_are_linked_and_follow_each_other(visits: Visits) -> None:
    response = visits.book(
        at("10:00"), visits.colour, notes="Fringe", externalId="42", metadata={"chair": "2"}
    )
    first, second = response["visit"]
    assert first == {
        name: value
        for name, value in response["booking"].items()
        if name not in {"statusHistory", "mails"}
    }
    assert {first["visitId"], second["visitId"]} == {first["id"]}
    assert first["endAt"] == second["startAt"]
    assert (first["price"], second["price"]) == (150_000, 50_000)
    assert (first["notes"], second["notes"]) == ("Fringe", None)
    assert (first["externalId"], second["externalId"]) == ("42", None)
    assert first["client"]["id"] == second["client"]["id"]
    read = visits.api.get(f"/api/bookings/{second['id']}")
    assert [each["id"] for each in read["visit"]] == [first["id"], second["id"]]
    client = visits.api.get(f"/api/clients/{first['client']['id']}")["client"]
    assert client["bookingsCount"] == 2
    visits.check()


def test_all_of_a_visit_is_booked_or_nothing(visits: Visits) -> None:
    first = visits.salon.resource
    visits.salon.book(at("11:00"), "Bob", resourceId=first)
    answer = visits.salon.try_to_book(at("10:00"), andThen=[visits.colour])
    data = refusal(answer)
    assert len(visits.rows()) == 1
    assert len(data["alternatives"]) == 5
    again = visits.book(data["alternatives"][0]["startAt"], visits.colour)
    assert len(again["visit"]) == 2
    visits.check()


def test_a_repeated_key_books_one_visit(visits: Visits) -> None:
    body = visits.salon.order(at("10:00"), andThen=[visits.colour])
    first, again = (visits.api.post(CREATE, body, key="visit-1") for _ in range(2))
    assert first == again
    assert len(visits.rows()) == 2


def test_a_named_resource_does_every_service_that_it_is_bound_to(visits: Visits) -> None:
    first, last = visits.salon.resources
    booked = visits.book(at("10:00"), visits.colour, visits.nails, resourceId=last)["visit"]
    assert [part["resourceId"] for part in booked] == [last, first, last]
    unbound = visits.api.post("/api/resources/create", {"name": "Cat"})["resource"]["id"]
    answer = visits.salon.try_to_book(at("14:00"), andThen=[visits.colour], resourceId=unbound)
    refusal(answer, "not_bound")


def test_a_service_may_follow_itself_and_a_visit_has_at_most_five(visits: Visits) -> None:
    own = visits.salon.service
    assert len(visits.book(at("09:00"), own, own, own, own)["visit"]) == 5
    invalid(visits.salon.try_to_book(at("09:00"), andThen=[own] * 5), "andThen")
    answer = visits.salon.try_to_book(at("15:00"), andThen=["01ARZ3NDEKTSV4RRFFQ69G5FAV"])
    assert answer.status == 404
    long = visits.service("Sleep", 1440, visits.salon.resources)
    invalid(visits.salon.try_to_book(at("15:00"), andThen=[long]), "andThen")
    visits.check()


def test_buffers_keep_others_away_and_do_not_part_a_visit(
    api: Api, owner: Owner, time: Time
) -> None:
    visits = Visits(api, owner, bufferBeforeMin=20, bufferAfterMin=30)
    first = visits.salon.resource
    booked = visits.book(at("11:00"), visits.colour, resourceId=first)["visit"]
    assert booked[0]["endAt"] == booked[1]["startAt"]
    # 11:00 to 12:30, 20 minutes before and, of the first service, none; 10 after the second.
    for start, is_free in (("09:41", False), ("09:40", False), ("09:00", True)):
        answer = visits.salon.try_to_book(at(start), "Bob", resourceId=first, ignoreSchedule=True)
        assert (answer.status == 200) == is_free, start
    later = visits.salon.try_to_book(at("12:59"), "Eve", resourceId=first, ignoreSchedule=True)
    assert later.status == 409
    later = visits.salon.try_to_book(at("13:00"), "Eve", resourceId=first, ignoreSchedule=True)
    assert later.status == 200
    visits.check()


def test_a_visit_moves_as_one_whichever_booking_is_named(visits: Visits) -> None:
    _, second = visits.book(at("10:00"), visits.colour)["visit"]
    body = {"id": second["id"], "startAt": at("13:00")}
    moved = visits.api.post("/api/bookings/reschedule", body)
    assert moved["booking"]["startLocal"][11:16] == "13:00"
    assert [each["startLocal"][11:16] for each in moved["visit"]] == ["12:00", "13:00"]
    assert visits.places() == [("12:00", "Haircut", "confirmed"), ("13:00", "Colour", "confirmed")]
    visits.check()
    visits.salon.book(at("15:00"), "Bob", resourceId=visits.salon.resource)
    data = refusal(
        visits.api.call("POST", "/api/bookings/reschedule", body | {"startAt": at("15:00")})
    )
    # The alternatives are starts of the named booking.
    assert all(slot["startLocal"][14:16] == "00" for slot in data["alternatives"])
    assert visits.places()[0][0] == "12:00"
    visits.check()


def test_times_to_move_a_visit_to_are_those_of_the_named_booking(visits: Visits) -> None:
    first, second = visits.book(at("10:00"), visits.colour)["visit"]
    for booking, hours in ((first, range(9, 17)), (second, range(10, 18))):
        path = f"/api/bookings/slots?serviceId={booking['serviceId']}&bookingId={booking['id']}"
        found = visits.api.get(f"{path}&from={MONDAY}&to={MONDAY}&limit=100")["slots"]
        assert [int(slot["startLocal"][11:13]) for slot in found] == list(hours)
        assert all(slot["resourceIds"] == [booking["resourceId"]] for slot in found)


def test_a_booking_of_a_visit_may_get_another_resource(visits: Visits) -> None:
    first, last = visits.salon.resources
    booked = visits.book(at("10:00"), visits.colour, resourceId=first)["visit"]
    body = {"id": booked[0]["id"], "resourceId": last}
    moved = visits.api.post("/api/bookings/reschedule", body)["visit"]
    assert [each["resourceId"] for each in moved] == [last, first]
    assert [each["startAt"] for each in moved] == [each["startAt"] for each in booked]
    visits.check()


@pytest.mark.parametrize("number", [0, 1])
def test_a_visit_is_cancelled_and_returns_as_one(visits: Visits, number: int) -> None:
    booked = visits.book(at("10:00"), visits.colour)["visit"]
    visits.salon.set_status(booked[number]["id"], "cancelled", reason="Ill")
    assert {row.status for row in visits.rows()} == {"cancelled"}
    visits.check()
    other = visits.salon.book(at("11:00"), "Bob", resourceId=visits.salon.resource)
    refusal(visits.salon.set_status(booked[number]["id"], "confirmed"))
    assert [row.status for row in visits.rows()].count("cancelled") == 2
    visits.salon.set_status(other["id"], "cancelled")
    visits.salon.set_status(booked[number]["id"], "confirmed")
    visits.check()
    assert [row.status for row in visits.rows()].count("confirmed") == 2


def test_each_booking_of_a_visit_takes_place_or_not(visits: Visits) -> None:
    first, second = visits.book(at("10:00"), visits.colour)["visit"]
    visits.salon.set_status(first["id"], "completed")
    visits.salon.set_status(second["id"], "no_show")
    assert [row.status for row in visits.rows()] == ["completed", "no_show"]
    visits.check()
    # The time after the first one is free, with its own buffer.
    visits.salon.book(at("11:00"), "Bob", resourceId=visits.salon.resource)
    refusal(visits.salon.set_status(second["id"], "confirmed"))
    visits.check()


def test_what_remains_of_a_visit_keeps_its_own_buffers(api: Api, owner: Owner, time: Time) -> None:
    visits = Visits(api, owner, bufferAfterMin=30)
    first = visits.salon.resource
    _, second = visits.book(at("10:00"), visits.colour, resourceId=first)["visit"]
    visits.salon.set_status(second["id"], "no_show")
    for start, status in (("11:29", 409), ("11:30", 200)):
        answer = visits.salon.try_to_book(at(start), "Bob", resourceId=first, ignoreSchedule=True)
        assert answer.status == status
    visits.check()


def test_one_call_completes_a_whole_visit(visits: Visits) -> None:
    first, _ = visits.book(at("10:00"), visits.colour)["visit"]
    answer = visits.salon.set_status(first["id"], "completed", wholeVisit=True)
    assert [each["status"] for each in answer.data["visit"]] == ["completed", "completed"]
    visits.salon.set_status(first["id"], "cancelled")
    assert {row.status for row in visits.rows()} == {"cancelled"}


def test_what_took_place_stays_when_the_rest_is_cancelled(visits: Visits) -> None:
    first, second = visits.book(at("10:00"), visits.colour)["visit"]
    visits.salon.set_status(first["id"], "completed")
    visits.salon.set_status(second["id"], "cancelled")
    assert [row.status for row in visits.rows()] == ["completed", "cancelled"]
    visits.check()


def test_an_unpaid_visit_lapses_as_one(api: Api, owner: Owner, time: Time) -> None:
    visits = Visits(api, owner)
    paid = visits.service("Paid", 30, visits.salon.resources, requirePayment=True)
    booked = visits.book(at("10:00"), paid)
    assert [each["status"] for each in booked["visit"]] == ["pending_payment"] * 2
    assert booked["holdExpiresAt"] == iso(time.now + timedelta(minutes=30))
    visits.check()
    time.pass_by(minutes=31)
    # Its time is free before a job has cancelled it.
    visits.book(at("10:00"), visits.colour, resourceId=booked["visit"][0]["resourceId"])
    assert jobs.run(job_kinds.JOB_HANDLERS)["lapse-of-hold"] == 1
    assert sorted(row.status for row in visits.rows()) == ["cancelled"] * 2 + ["confirmed"] * 2
    visits.check()


def test_of_concurrent_visits_and_bookings_each_is_whole_and_none_overlaps(
    api: Api, owner: Owner, time: Time
) -> None:
    visits = Visits(api, owner)
    first = visits.salon.resource

    def act(number: int) -> Answer:
        name = f"Client {number}"
        if number % 3 == 0:
            return visits.salon.try_to_book(at("11:00"), name, resourceId=first)
        hour = "10:00" if number % 3 == 1 else "11:00"
        return visits.salon.try_to_book(at(hour), name, andThen=[visits.colour], resourceId=first)

    answers = run_concurrently(12, act)
    assert {answer.status for answer in answers} == {200, 409}
    assert sum(answer.status == 200 for answer in answers) == 1
    rows = visits.rows()
    assert len(rows) in {1, 2}
    assert all(len(rows) == len(row.visit or [row.id]) for row in rows)
    visits.check()


def test_of_concurrent_moves_and_cancellations_a_visit_stays_whole(
    api: Api, owner: Owner, time: Time
) -> None:
    visits = Visits(api, owner)
    ids = [each["id"] for each in visits.book(at("10:00"), visits.colour)["visit"]]
    other = visits.salon.book(at("15:00"), "Bob", resourceId=visits.salon.resource)

    def act(number: int) -> Answer:
        if number == 0:
            return visits.salon.set_status(ids[1], "cancelled")
        if number < 4:
            place = {"startAt": at(f"{12 + number}:00")}
            return visits.salon.set_status(ids[number % 2], "confirmed", **place)
        place = {"startAt": at(f"{10 + number % 4}:00"), "resourceId": visits.salon.resource}
        return visits.salon.set_status(other["id"], "confirmed", **place)

    assert {answer.status for answer in run_concurrently(8, act)} <= {200, 409}
    rows = [row for row in visits.rows() if row.visit]
    assert len({row.status for row in rows}) == 1
    assert rows[0].ends_at == rows[1].starts_at
    visits.check()


class History(RuleBasedStateMachine):
    """Random changes of visits and bookings never sell a time twice or tear a visit apart."""

    made = Bundle("made")
    make: Any

    @initialize()
    def open(self) -> None:
        self.visits, self.capacity = type(self).make()

    @rule(
        target=made,
        hour=st.integers(9, 16),
        further=st.lists(st.sampled_from(["own", "colour", "nails"]), max_size=3),
        is_exact=st.booleans(),
    )
    def book(self, hour: int, further: list[str], *, is_exact: bool) -> list[str]:
        ids = {"own": self.visits.salon.service, "colour": self.visits.colour}
        ids["nails"] = self.visits.nails
        answer = self.visits.salon.try_to_book(
            at(f"{hour:02}:{20 if is_exact else 0:02}"),
            andThen=[ids[name] for name in further],
            ignoreSchedule=is_exact,
        )
        if answer.status != 200:
            return []
        booking = answer.data["booking"]
        return [each["id"] for each in answer.data.get("visit", [booking])]

    @rule(
        visit=made,
        number=st.integers(0, 4),
        status=st.sampled_from(["cancelled", "confirmed", "completed", "no_show"]),
        whole=st.booleans(),
    )
    def set_status(self, visit: list[str], number: int, status: str, *, whole: bool) -> None:
        if visit:
            self.visits.salon.set_status(visit[number % len(visit)], status, wholeVisit=whole)

    @rule(
        visit=made,
        number=st.integers(0, 4),
        hour=st.integers(9, 17),
        resource=st.sampled_from([None, 0, 1]),
        outside=st.booleans(),
    )
    def move(
        self, visit: list[str], number: int, hour: int, resource: int | None, *, outside: bool
    ) -> None:
        if visit:
            body: dict[str, Any] = {"id": visit[number % len(visit)], "ignoreSchedule": outside}
            body["startAt"] = at(f"{hour:02}:00")
            if resource is not None:
                body["resourceId"] = self.visits.salon.resources[resource]
            self.visits.api.call("POST", "/api/bookings/reschedule", body)

    @invariant()
    def check(self) -> None:
        if not hasattr(self, "visits"):
            return
        workspace_id = self.visits.owner.workspace.id
        check_calendars(workspace_id, self.visits.salon.resources, self.capacity)
        rows = {row.id: row for row in bookings_of(workspace_id)}
        for row in rows.values():
            parts = [rows[each] for each in row.visit or [row.id]]
            assert len({part.starts_at for part in parts}) == len(parts)
            alive = [part for part in parts if part.status == "confirmed"]
            assert alive == sorted(alive, key=lambda part: part.starts_at)


@pytest.mark.parametrize(("capacity", "has_lengths"), [(1, False), (2, False), (1, True)])
def test_random_histories_of_visits_keep_calendars_exact(
    api: Api, owner: Owner, time: Time, capacity: int, *, has_lengths: bool
) -> None:
    count = iter(range(1000))

    def make() -> tuple[Visits, int]:
        visits = Visits.__new__(Visits)
        visits.api, visits.owner = api, owner
        visits.salon = Salon.opened(
            api,
            [{"capacity": capacity, "name": f"{n} {next(count)}"} for n in range(2)],
            bufferBeforeMin=15,
            bufferAfterMin=25,
        )
        visits.colour = visits.service("Colour", 30, visits.salon.resources[:1], bufferAfterMin=50)
        visits.nails = visits.service("Nails", 45, visits.salon.resources, bufferBeforeMin=30)
        if has_lengths:
            for service, length in ((visits.salon.service, 90), (visits.nails, 20)):
                own = [{"resourceId": visits.salon.resources[1], "durationMin": length}]
                api.post("/api/services/update", {"id": service, "resourceOverrides": own})
        return visits, capacity

    machine = type("Histories", (History,), {"make": staticmethod(make)})
    run_state_machine_as_test(machine, settings=examples(60, 4, stateful_step_count=14))
