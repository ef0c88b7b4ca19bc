"""Services whose price and length depend on the resource."""

from typing import Any

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.booking_page.flows import book_for_visitor
from tests.conftest import Answer, Api, Owner, Time, call_console
from tests.domains.bookings.test_booking_changes import RESCHEDULE
from tests.factories.event_runs import run_until_idle
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon, bookings_of, check_calendars, invalid, refusal

UPDATE = "/api/services/update"
BOOK = "/api/public/bookings"
TEN, HALF_TEN = "2027-01-18T10:00", "2027-01-18T10:30"
visitor = Api(None)


@pytest.fixture
def salon(api: Api, time: Time) -> Salon:
    """The first stylist takes an hour for 1,500, the master 90 minutes for 2,500."""
    new = Salon.opened(api, [{}, {"name": "Master"}], slotStepMin=30)
    override(new, [{"resourceId": new.resources[1], "price": 250_000, "durationMin": 90}])
    return new


def override(salon: Salon, overrides: Any, **more: Any) -> Any:
    body = {"id": salon.service, "resourceOverrides": overrides, **more}
    return salon.api.post(UPDATE, body)["service"]


def stored(salon: Salon) -> Any:
    return salon.api.get(f"/api/services/{salon.service}")["service"]["resourceOverrides"]


def terms(booking: Any) -> tuple[str, int, str]:
    return booking["resourceName"], booking["price"], booking["endAt"][11:16]


def request(salon: Salon, start: str = f"{TEN}:00+03:00", **fields: Any) -> Answer:
    return visitor.call("POST", BOOK, salon.order(start, "Eve", **fields))


class TestDeclaration:
    def test_a_service_returns_what_differs_in_the_order_of_its_resources(
        self, salon: Salon
    ) -> None:
        first, second = salon.resources
        override(
            salon,
            [{"resourceId": second, "price": 0}, {"resourceId": first, "durationMin": 1440}],
        )
        assert stored(salon) == [
            {"resourceId": first, "price": None, "durationMin": 1440},
            {"resourceId": second, "price": 0, "durationMin": None},
        ]
        salon.api.post(UPDATE, {"id": salon.service, "name": "Cut"})
        assert len(stored(salon)) == 2
        assert override(salon, [])["resourceOverrides"] == []

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"price": -1}, "resourceOverrides.0.price"),
            ({"durationMin": 0}, "resourceOverrides.0.durationMin"),
            ({"durationMin": -5}, "resourceOverrides.0.durationMin"),
            ({"durationMin": 1441}, "resourceOverrides.0.durationMin"),
            ({"price": 10**12}, "resourceOverrides.0.price"),
            ({}, "resourceOverrides.0"),
            ({"price": None, "durationMin": None}, "resourceOverrides.0"),
        ],
    )
    def test_a_wrong_price_or_length_is_refused(
        self, wrong: dict[str, Any], field: str, salon: Salon
    ) -> None:
        before = stored(salon)
        own = {"resourceId": salon.resource, **wrong}
        body = {"id": salon.service, "resourceOverrides": [own]}
        invalid(salon.api.call("POST", UPDATE, body), field)
        assert stored(salon) == before

    def test_each_resource_is_one_of_the_service_and_named_once(
        self, api: Api, salon: Salon
    ) -> None:
        other = Salon.opened(api).resource
        for resource in (other, new_id()):
            body = {
                "id": salon.service,
                "resourceOverrides": [{"resourceId": resource, "price": 1}],
            }
            assert resource in invalid(api.call("POST", UPDATE, body), "resourceOverrides")
        twice = [{"resourceId": salon.resource, "price": price} for price in (1, 2)]
        body = {"id": salon.service, "resourceOverrides": twice}
        invalid(api.call("POST", UPDATE, body), "resourceOverrides")
        many = [{"resourceId": new_id(), "price": 1} for _ in range(51)]
        invalid(api.call("POST", UPDATE, body | {"resourceOverrides": many}), "resourceOverrides")
        new = {"name": "Cut", "durationMin": 30, "resourceOverrides": twice[:1]}
        invalid(api.call("POST", "/api/services/create", new), "resourceOverrides")

    def test_unbinding_and_deleting_a_resource_forget_its_price(
        self, api: Api, salon: Salon
    ) -> None:
        first, second = salon.resources
        both = [{"resourceId": each, "price": 100} for each in salon.resources]
        override(salon, both)
        api.post(UPDATE, {"id": salon.service, "resourceIds": [second]})
        assert [each["resourceId"] for each in stored(salon)] == [second]
        api.post("/api/resources/update", {"id": first, "serviceIds": [salon.service]})
        api.post("/api/resources/update", {"id": second, "serviceIds": []})
        assert stored(salon) == []
        override(salon, both[:1])
        api.post("/api/resources/delete", {"id": first, "force": True})
        run_until_idle()
        assert stored(salon) == []

    def test_an_upsert_keeps_replaces_and_repeats_it_without_a_write(
        self, api: Api, salon: Salon
    ) -> None:
        own = {"resourceId": salon.resource, "price": 700, "durationMin": 45}
        item = {
            "externalId": "cut-1",
            "name": "Cut",
            "durationMin": 30,
            "resourceIds": salon.resources,
            "resourceOverrides": [own],
        }

        def upsert(**changes: Any) -> Any:
            body = {"items": [item | changes]}
            (result,) = api.post("/api/services/upsert", body)["results"]
            return result

        created = upsert()
        assert (created["code"], upsert()["code"]) == ("created", "unchanged")
        item.pop("resourceOverrides")
        assert upsert(price=100)["code"] == "updated"
        service = api.get(f"/api/services/{created['id']}")["service"]
        assert service["resourceOverrides"] == [own]
        assert upsert(resourceOverrides=[])["code"] == "updated"

    def test_two_versions_of_a_price_are_never_mixed(self, salon: Salon) -> None:
        master = salon.resources[1]
        booking = salon.book(TEN, resourceId=master)
        override(salon, [{"resourceId": master, "price": 1, "durationMin": 5}])
        assert terms(salon.api.get(f"/api/bookings/{booking['id']}")["booking"]) == (
            "Master",
            250_000,
            "08:30",
        )


class TestSlots:
    def test_each_resource_is_offered_where_its_own_length_fits(self, salon: Salon) -> None:
        first, second = salon.resources
        day = {"first": "2027-01-18", "to": "2027-01-18"}
        assert salon.starts(**day, resourceId=first)[-1] == "2027-01-18T17:00"
        assert salon.starts(**day, resourceId=second)[-1] == "2027-01-18T16:30"
        page = salon.search(**day, limit=100)
        last = page["slots"][-1]
        assert (last["resourceIds"], last["endAt"][11:16]) == ([first], "15:00")
        assert page["slots"][0]["resourceIds"] == salon.resources
        assert [(each["price"], each["durationMin"]) for each in page["resources"]] == [
            (150_000, 60),
            (250_000, 90),
        ]
        alone = salon.search(**day, resourceId=second)
        assert (alone["durationMin"], alone["slots"][0]["endAt"][11:16]) == (90, "07:30")

    def test_a_longer_booking_blocks_the_times_of_its_own_length(self, salon: Salon) -> None:
        master = salon.resources[1]
        salon.book(TEN, resourceId=master)
        refusal(salon.try_to_book("2027-01-18T11:00", resourceId=master))
        refusal(salon.try_to_book("2027-01-18T09:00", resourceId=master))
        salon.book("2027-01-18T11:30", resourceId=master)

    def test_a_grid_of_its_own_length_is_each_resources(self, salon: Salon) -> None:
        salon.api.post(UPDATE, {"id": salon.service, "slotStepMin": None})
        day = {"first": "2027-01-18", "to": "2027-01-18"}
        starts = salon.starts(**day, resourceId=salon.resources[1])
        assert [start[11:] for start in starts[:3]] == ["09:00", "10:30", "12:00"]
        assert [start[11:] for start in salon.starts(**day)[:4]] == [
            *("09:00", "10:00", "10:30", "11:00"),
        ]

    def test_a_service_that_fits_only_the_quick_one_can_be_booked(
        self, api: Api, salon: Salon
    ) -> None:
        lunch = [{"weekdays": ["mon"], "start": "12:00", "end": "13:00"}]
        for resource in salon.resources:
            Salon.set_hours(api, resource, lunch)
        (slot,) = salon.search(first="2027-01-18", to="2027-01-18")["slots"]
        assert slot["resourceIds"] == [salon.resource]
        query = f"serviceId={salon.service}&resourceId={salon.resources[1]}"
        assert api.get(f"/api/bookings/slots?{query}")["reason"] == "does_not_fit"


class TestBooking:
    def test_a_booking_takes_the_price_and_the_length_of_its_resource(
        self, owner: Owner, salon: Salon
    ) -> None:
        first, second = (salon.book(TEN, resourceId=each) for each in salon.resources)
        assert terms(first) == ("Stylist 0", 150_000, "08:00")
        assert terms(second) == ("Master", 250_000, "08:30")
        check_calendars(owner.workspace.id, salon.resources)

    def test_anyone_is_whoever_is_free_with_that_ones_terms(self, salon: Salon) -> None:
        booked = {terms(salon.book(TEN, f"Client {number}")) for number in range(2)}
        assert booked == {("Stylist 0", 150_000, "08:00"), ("Master", 250_000, "08:30")}

    @pytest.mark.parametrize(
        ("shown", "expected"),
        [
            ({"price": 150_000}, ("Stylist 0", 150_000, "08:00")),
            ({"price": 250_000, "durationMin": 90}, ("Master", 250_000, "08:30")),
            ({"durationMin": 60}, ("Stylist 0", 150_000, "08:00")),
        ],
    )
    def test_a_visitor_gets_somebody_at_the_shown_price(
        self, shown: dict[str, int], expected: tuple[str, int, str], salon: Salon
    ) -> None:
        booking = request(salon, **shown).data["booking"]
        assert terms(booking) == expected
        refusal(request(salon, f"{HALF_TEN}:00+03:00", **shown))

    @pytest.mark.parametrize("who", [None, 0, 1])
    def test_a_price_that_nobody_offers_is_refused_with_the_present_one(
        self, who: int | None, salon: Salon
    ) -> None:
        resource = {} if who is None else {"resourceId": salon.resources[who]}
        answer = request(salon, price=200_000, **resource)
        assert (answer.status, answer.data["code"]) == (409, "changed")
        price, minutes = (250_000, 90) if who == 1 else (150_000, 60)
        assert (answer.data["price"], answer.data["durationMin"]) == (price, minutes)
        again = request(salon, price=price, durationMin=minutes, **resource)
        assert again.data["booking"]["price"] == price

    def test_a_mixture_of_two_offers_is_refused(self, salon: Salon) -> None:
        answer = request(salon, price=150_000, durationMin=90)
        assert (answer.status, answer.data["code"]) == (409, "changed")

    def test_an_advance_is_the_share_of_the_price_that_is_booked(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        set_merchant(owner.workspace.id)
        api.post(UPDATE, {"id": salon.service, "requirePayment": True})
        terms_now = {"id": salon.service, "depositPercent": 20, "refundUntilMin": 60}
        call_console(owner.workspace.id, "set_payment_terms", **terms_now)
        made = [request(salon, resourceId=each).data for each in salon.resources]
        assert [each["amountDue"] for each in made] == [30_000, 50_000]
        slots = f"/api/public/services/{salon.service}/slots"
        of_master = visitor.get(f"{slots}?resourceId={salon.resources[1]}")
        assert [of_master[name] for name in ("price", "durationMin", "amountDue")] == [
            *(250_000, 90, 50_000),
        ]
        assert visitor.get(slots)["amountDue"] == 30_000

    def test_whoever_is_free_of_charge_needs_no_payment(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        set_merchant(owner.workspace.id)
        trainee, master = salon.resources
        override(salon, [{"resourceId": trainee, "price": 0}], requirePayment=True)
        assert request(salon, resourceId=trainee).data["booking"]["status"] == "confirmed"
        assert request(salon, resourceId=master).data["booking"]["status"] == "pending_payment"

    def test_a_price_that_changes_while_a_visitor_books_is_read_again(
        self, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        master, read = salon.resources[1], book_for_visitor.read_advance
        pending = [{"resourceId": master, "price": 300_000, "durationMin": 120}]

        def read_then_change(*arguments: Any) -> Any:
            advance = read(*arguments)
            if pending:
                override(salon, [pending.pop()])
            return advance

        monkeypatch.setattr(book_for_visitor, "read_advance", read_then_change)
        answer = request(salon, resourceId=master, price=250_000)
        assert (answer.status, answer.data["code"]) == (409, "changed")
        assert (answer.data["price"], answer.data["durationMin"]) == (300_000, 120)


class TestMove:
    def test_a_move_keeps_the_price_and_takes_the_length_of_the_other_resource(
        self, owner: Owner, salon: Salon
    ) -> None:
        booking = salon.book(TEN, resourceId=salon.resource)
        moved = salon.set_status(booking["id"], "confirmed", resourceId=salon.resources[1])
        assert terms(moved.data["booking"]) == ("Master", 150_000, "08:30")
        check_calendars(owner.workspace.id, salon.resources)
        back = salon.set_status(booking["id"], "confirmed", resourceId=salon.resource)
        assert terms(back.data["booking"]) == ("Stylist 0", 150_000, "08:00")
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_move_needs_the_time_of_the_other_length(self, salon: Salon) -> None:
        first, master = salon.resources
        booking = salon.book(TEN, resourceId=first)
        salon.book("2027-01-18T11:00", "Bob", resourceId=master)
        answer = salon.set_status(booking["id"], "confirmed", resourceId=master)
        refusal(answer)
        page = salon.search(bookingId=booking["id"], first=TEN, to=TEN)
        assert page["slots"][0]["resourceIds"] == [first]
        assert [(each["price"], each["durationMin"]) for each in page["resources"]] == [
            (None, 60),
            (None, 90),
        ]

    def test_a_move_in_time_keeps_the_length_that_was_booked(self, salon: Salon) -> None:
        master = salon.resources[1]
        booking = salon.book(TEN, resourceId=master)
        override(salon, [{"resourceId": master, "durationMin": 120}])
        body = {"id": booking["id"], "startAt": "2027-01-18T12:00"}
        moved = salon.api.post(RESCHEDULE, body)["booking"]
        assert terms(moved) == ("Master", 250_000, "10:30")

    def test_a_move_between_equal_resources_keeps_the_length_that_was_booked(
        self, api: Api, salon: Salon
    ) -> None:
        override(salon, [])
        booking = salon.book(TEN, resourceId=salon.resource)
        api.post(UPDATE, {"id": salon.service, "durationMin": 240})
        body = {"id": booking["id"], "resourceId": salon.resources[1]}
        assert terms(api.post(RESCHEDULE, body)["booking"]) == ("Master", 150_000, "08:00")

    def test_a_client_moves_a_booking_to_another_member_by_its_link(
        self, owner: Owner, salon: Salon
    ) -> None:
        made = request(salon, resourceId=salon.resource).data
        token = made["manageUrl"].rpartition("/")[2]
        managed = visitor.post("/api/public/bookings/by-token", {"token": token})
        assert managed["otherLengths"] == [{"resourceId": salon.resources[1], "durationMin": 90}]
        body = {"token": token, "startAt": f"{TEN}:00+03:00", "resourceId": salon.resources[1]}
        moved = visitor.post("/api/public/bookings/reschedule", body)["booking"]
        assert terms(moved) == ("Master", 150_000, "08:30")
        (row,) = bookings_of(owner.workspace.id)
        assert row.duration_min == 90
