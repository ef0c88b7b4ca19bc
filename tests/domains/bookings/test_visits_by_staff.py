"""Visits whose services cost and last as long as who does them needs."""

from typing import Any

import pytest

from tests.conftest import Answer, Api, Owner, Time
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon, bookings_of, check_calendars, invalid

MONDAY = "2027-01-18"
BOOK = "/api/public/bookings"
visitor = Api(None)


def at(hour: str) -> str:
    return f"{MONDAY}T{hour}:00+03:00"


class Desk:
    """A haircut is 60 minutes for 1,500 with the stylist, 90 for 2,500 with the master.

    Colour is 30 minutes for 500 with the stylist, 60 for 900 with the master. Nails are 45 for 400
    with anybody.
    """

    def __init__(self, api: Api, owner: Owner, **service: Any) -> None:
        self.api, self.owner = api, owner
        self.salon = Salon.opened(api, [{}, {"name": "Master"}], slotStepMin=30, **service)
        self.stylist, self.master = self.salon.resources
        self.override(self.salon.service, 250_000, 90)
        self.colour = self.service("Colour", 30, 50_000)
        self.override(self.colour, 90_000, 60)
        self.nails = self.service("Nails", 45, 40_000)

    def service(self, name: str, length: int, price: int) -> str:
        body = {"name": name, "durationMin": length, "price": price}
        body["resourceIds"] = self.salon.resources
        created: str = self.api.post("/api/services/create", body)["service"]["id"]
        return created

    def override(self, service: str, price: int, length: int) -> None:
        own = [{"resourceId": self.master, "price": price, "durationMin": length}]
        self.api.post("/api/services/update", {"id": service, "resourceOverrides": own})

    def order(self, start: str, *further: str, **fields: Any) -> Answer:
        """Book as a visitor."""
        body = self.salon.order(at(start), "Eve", andThen=list(further), **fields)
        return visitor.call("POST", BOOK, body)

    def book(self, start: str, *further: str, **fields: Any) -> Any:
        answer = self.salon.try_to_book(at(start), andThen=list(further), **fields)
        assert answer.status == 200, answer.body
        return answer.data["visit"]

    def places(self) -> list[tuple[str, str, str, int]]:
        check_calendars(self.owner.workspace.id, self.salon.resources)
        return places(self.api.get("/api/bookings/list?sort=startAtAsc")["bookings"])


def places(visit: Any) -> list[tuple[str, str, str, int]]:
    """Who does each service from when to when in Moscow, and for how much."""
    return [
        (
            each["resourceName"].split()[0],
            f"{int(each['startAt'][11:13]) + 3:02}{each['startAt'][13:16]}",
            f"{int(each['endAt'][11:13]) + 3:02}{each['endAt'][13:16]}",
            each["price"],
        )
        for each in visit
    ]


@pytest.fixture
def desk(api: Api, owner: Owner, time: Time) -> Desk:
    return Desk(api, owner)


MASTERS = [("Master", "10:00", "11:30", 250_000), ("Master", "11:30", "12:30", 90_000)]
STYLISTS = [("Stylist", "10:00", "11:00", 150_000), ("Stylist", "11:00", "11:30", 50_000)]


class TestPlaces:
    def test_each_service_has_the_length_and_the_price_of_who_does_it(self, desk: Desk) -> None:
        assert places(desk.book("10:00", desk.colour, resourceId=desk.master)) == MASTERS
        assert places(desk.book("10:00", desk.colour, resourceId=desk.stylist)) == STYLISTS
        assert sorted(desk.places()) == sorted(MASTERS + STYLISTS)

    def test_slots_know_that_the_next_service_begins_later_with_the_master(
        self, desk: Desk
    ) -> None:
        desk.salon.book(at("11:00"), "Bob", resourceId=desk.stylist)
        path = f"/api/bookings/slots?serviceId={desk.salon.service}&andThen={desk.colour}"
        found = desk.api.get(f"{path}&from={MONDAY}&to={MONDAY}&limit=300")
        by_start = {slot["startLocal"][11:16]: slot for slot in found["slots"]}
        # At 10:00, the master does it all until 12:30, or only the colour, an hour from 11:00.
        ten = by_start["10:00"]
        assert ten["resourceIds"] == [desk.master]
        assert ten["endAt"] == f"{MONDAY}T09:00:00.000Z"
        assert places(desk.book("10:00", desk.colour)) == MASTERS
        last = max(slot["startLocal"][11:16] for slot in found["slots"])
        assert last == "16:30"
        assert by_start["16:30"]["resourceIds"] == [desk.stylist]
        assert by_start["15:30"]["resourceIds"] == [desk.stylist, desk.master]
        assert all(each["price"] is None for each in found["resources"])

    def test_a_slot_that_is_listed_for_the_master_is_booked_in_full(self, desk: Desk) -> None:
        # The next client comes when the stylist would have done it all.
        desk.salon.book(at("11:30"), "Bob", resourceId=desk.master)
        refused = desk.salon.try_to_book(at("10:00"), andThen=[desk.colour], resourceId=desk.master)
        assert (refused.status, refused.data["code"]) == (409, "slot_unavailable")
        later = [slot["startLocal"][11:16] for slot in refused.data["alternatives"]]
        assert later
        assert "10:00" not in later
        desk.book(later[0], desk.colour, resourceId=desk.master)
        assert len(desk.places()) == 3

    def test_a_later_service_ends_in_the_hours_of_who_does_it(self, desk: Desk) -> None:
        desk.api.post("/api/services/update", {"id": desk.nails, "slotStepMin": 15})
        path = f"/api/bookings/slots?serviceId={desk.nails}&andThen={desk.salon.service}"
        for resource, last in ((desk.master, "15:45"), (desk.stylist, "16:15")):
            query = f"&resourceId={resource}&from={MONDAY}&to={MONDAY}&limit=300"
            found = desk.api.get(path + query)["slots"]
            assert found[-1]["startLocal"][11:16] == last

    def test_time_off_at_the_end_of_a_longer_visit_excludes_it(self, desk: Desk) -> None:
        off = {"resourceId": desk.master, "startAt": at("11:45"), "endAt": at("12:15")}
        desk.api.post("/api/resources/create-time-off", off)
        start, further = at("10:00"), [desk.colour]
        refused = desk.salon.try_to_book(start, andThen=further, resourceId=desk.master)
        assert (refused.status, refused.data["reason"]) == (409, "time_off")
        assert places(desk.book("10:00", desk.colour)) == STYLISTS

    def test_a_visit_is_at_most_a_day_with_whoever_may_do_it(self, desk: Desk) -> None:
        desk.override(desk.nails, 40_000, 1_400)
        body = desk.salon.order(at("10:00"), andThen=[desk.nails])
        answer = desk.api.call("POST", "/api/bookings/create", body)
        assert "1490" in invalid(answer, "andThen")
        named = body | {"resourceId": desk.stylist}
        assert desk.api.call("POST", "/api/bookings/create", named).status == 200


class TestMoves:
    def test_a_part_takes_the_time_of_its_new_person_and_the_next_follow(self, desk: Desk) -> None:
        visit = desk.book("10:00", desk.nails, desk.colour, resourceId=desk.stylist)
        body = {"id": visit[0]["id"], "resourceId": desk.master}
        desk.api.post("/api/bookings/reschedule", body)
        moved = desk.api.get(f"/api/bookings/{visit[0]['id']}")["visit"]
        assert [each["durationMin"] for each in moved] == [90, 45, 30]
        # The prices were agreed.
        assert desk.places() == [
            ("Master", "10:00", "11:30", 150_000),
            ("Stylist", "11:30", "12:15", 40_000),
            ("Stylist", "12:15", "12:45", 50_000),
        ]
        desk.api.post("/api/bookings/reschedule", body | {"resourceId": desk.stylist})
        assert [place[1] for place in desk.places()] == ["10:00", "11:00", "11:45"]

    def test_a_move_of_the_time_keeps_what_was_booked(self, desk: Desk) -> None:
        visit = desk.book("10:00", desk.colour, resourceId=desk.master)
        desk.override(desk.salon.service, 999_000, 240)
        desk.api.post("/api/bookings/reschedule", {"id": visit[1]["id"], "startAt": at("13:30")})
        assert desk.places() == [
            ("Master", "12:00", "13:30", 250_000),
            ("Master", "13:30", "14:30", 90_000),
        ]

    def test_another_person_is_refused_if_the_next_service_has_no_time(self, desk: Desk) -> None:
        visit = desk.book("10:00", desk.colour, resourceId=desk.stylist)
        desk.salon.book(at("11:30"), "Bob", resourceId=desk.stylist)
        body = {"id": visit[0]["id"], "resourceId": desk.master}
        answer = desk.api.call("POST", "/api/bookings/reschedule", body)
        assert (answer.status, answer.data["code"]) == (409, "slot_unavailable")
        assert places(desk.api.get(f"/api/bookings/{visit[0]['id']}")["visit"]) == STYLISTS


class TestVisitors:
    def test_a_list_says_from_what_a_visit_begins(self, desk: Desk) -> None:
        path = f"/api/public/services/{desk.salon.service}/slots?andThen={desk.colour}&limit=1"
        found = visitor.get(path)
        assert (found["price"], found["priceFrom"]) == (200_000, 200_000)
        assert (found["durationMin"], found["durationFromMin"]) == (90, 90)
        with_master = visitor.get(f"{path}&resourceId={desk.master}")
        assert (with_master["price"], with_master["priceFrom"]) == (340_000, None)
        assert (with_master["durationMin"], with_master["durationFromMin"]) == (150, None)

    def test_anyone_is_the_one_whose_terms_were_shown(self, desk: Desk) -> None:
        # The stylist has more bookings of the day.
        desk.salon.book(at("15:00"), "Bob", resourceId=desk.stylist)
        made = desk.order("10:00", desk.colour, price=200_000, durationMin=90, amountDue=0)
        assert made.status == 200
        assert made.data["booking"]["price"] == 200_000
        # What was not shown does not matter.
        assert desk.order("12:00", desk.colour).data["booking"]["price"] == 340_000
        assert made.data["booking"]["endAt"] == f"{MONDAY}T08:30:00.000Z"

    def test_no_dearer_visit_than_shown_is_booked(self, desk: Desk) -> None:
        desk.salon.book(at("10:00"), "Bob", resourceId=desk.stylist)
        shown = {"price": 200_000, "durationMin": 90}
        refused = desk.order("10:00", desk.colour, **shown)
        assert (refused.status, refused.data["code"]) == (409, "changed")
        now = {name: refused.data[name] for name in shown}
        assert len(bookings_of(desk.owner.workspace.id)) == 1
        assert now == {"price": 340_000, "durationMin": 150}
        made = desk.order("10:00", desk.colour, **now)
        assert made.status == 200
        assert made.data["booking"]["price"] == 340_000

    def test_a_named_person_has_the_own_terms(self, desk: Desk) -> None:
        wrong = desk.order("10:00", desk.colour, resourceId=desk.master, price=200_000)
        assert wrong.data["price"] == 340_000
        made = desk.order("10:00", desk.colour, resourceId=desk.master, price=340_000)
        assert made.status == 200
        assert desk.places() == MASTERS


def test_the_advance_is_of_the_prices_of_who_does_the_services(
    api: Api, owner: Owner, time: Time
) -> None:
    desk = Desk(api, owner, requirePayment=True)
    set_merchant(owner.workspace.id)
    made = desk.order("10:00", desk.colour, resourceId=desk.master, amountDue=250_000)
    assert made.status == 200, made.body
    assert made.data["amountDue"] == 250_000
    stylists = desk.order("10:00", desk.colour, resourceId=desk.stylist)
    assert stylists.data["amountDue"] == 150_000


def test_what_is_free_with_one_person_is_not_paid_in_advance(
    api: Api, owner: Owner, time: Time
) -> None:
    desk = Desk(api, owner, requirePayment=True)
    desk.override(desk.salon.service, 0, 90)
    visit = desk.book("10:00", desk.colour, resourceId=desk.master)
    assert {each["status"] for each in visit} == {"confirmed"}
    visit = desk.book("10:00", desk.colour, resourceId=desk.stylist)
    assert {each["status"] for each in visit} == {"pending_payment"}
    # Without a provider, only the master's haircut can be booked online.
    desk.salon.book(at("16:00"), "Bob", resourceId=desk.master)
    online = desk.order("13:00", desk.colour)
    assert online.status == 200, online.body
    assert online.data["booking"]["resourceName"] == "Master, Stylist 0"
    assert (online.data["booking"]["price"], online.data["amountDue"]) == (50_000, 0)
