"""Visitors book without a key, from any origin, without access to other bookings."""

import json
from typing import Any

import pytest

from tests.conftest import Api, Owner, Time, call_operator
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon
from tests.support.warned import warned
from tests.transports.public.bookings.helpers import BOOK, book, booking_input, visitor
from tests.transports.public.conftest import is_readable_from_any_origin


def slots(salon: Salon, query: str = "") -> Any:
    return visitor.get(f"/api/public/services/{salon.service}/slots?{query}")


class TestSlots:
    def test_visitors_see_the_same_slots_as_keys(self, salon: Salon) -> None:
        query = "from=2027-03-03&to=2027-03-04"
        found = salon.search(first="2027-03-03", to="2027-03-04")
        assert slots(salon, query).items() >= found.items()

    def test_an_empty_range_has_a_reason_and_the_next_available_time(self, salon: Salon) -> None:
        page = slots(salon, "from=2027-03-03T20:00:00Z&to=2027-03-03T21:00:00Z")
        assert page["slots"] == []
        assert page["reason"] == "closed"
        assert page["nextAvailable"]["startAt"] == "2027-03-04T06:00:00.000Z"

    def test_slots_of_an_unknown_service_are_404(self, salon: Salon) -> None:
        answer = visitor.call_refused("GET", "/api/public/services/nobody/slots")
        assert answer.status == 404
        assert is_readable_from_any_origin(answer)

    def test_slots_of_a_suspended_site_are_404(self, api: Api, salon: Salon) -> None:
        site = api.post("/api/projects/create", {"title": "Salon"})["project"]["id"]
        api.post("/api/services/update", {"id": salon.service, "siteId": site})
        slots(salon)
        call_operator("suspend_site", id=site)
        assert visitor.call("GET", f"/api/public/services/{salon.service}/slots").status == 404
        assert visitor.call("POST", BOOK, booking_input(salon)).status == 404
        call_operator("resume_site", id=site)
        book(salon)

    def test_slots_can_be_searched_on_any_plan(self, owner: Owner, salon: Salon) -> None:
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="free")
        assert slots(salon)["slots"]
        book(salon)


class TestBooking:
    def test_a_booking_takes_the_slot_and_returns_its_details(self, api: Api, salon: Salon) -> None:
        booked = book(salon, notes="By the window")
        links = {"cancelToken", "icsUrl", "manageUrl", "paymentUrl"}
        told = {"amountDue", "holdExpiresAt", "mail", "messengers"}
        assert set(booked) == {"status", "booking"} | told | links
        assert booked["booking"] == {
            "id": booked["booking"]["id"],
            "status": "confirmed",
            "serviceName": "Haircut",
            "resourceName": "Stylist 0",
            "startAt": "2027-03-03T12:00:00.000Z",
            "startLocal": "2027-03-03T15:00:00+03:00",
            "endAt": "2027-03-03T13:00:00.000Z",
            "timezone": "Europe/Moscow",
            "price": 150_000,
        }
        stored_booking = api.get(f"/api/bookings/{booked['booking']['id']}")["booking"]
        assert stored_booking["client"]["email"] == "ada@example.com"
        assert stored_booking["notes"] == "By the window"
        assert stored_booking["source"] == "public"
        free = slots(salon, "from=2027-03-03&to=2027-03-03")["slots"]
        assert booked["booking"]["startAt"] not in [slot["startAt"] for slot in free]

    def test_a_time_without_an_offset_is_read_in_the_given_zone(self, salon: Salon) -> None:
        booked = book(salon, "2027-03-03T12:00", timezone="Asia/Yekaterinburg")
        assert booked["booking"]["startAt"] == "2027-03-03T07:00:00.000Z"

    def test_a_slot_taken_meanwhile_is_409_with_alternatives(self, salon: Salon) -> None:
        book(salon)
        answer = visitor.call_refused("POST", BOOK, booking_input(salon, client="Bob"))
        assert answer.status == 409
        assert answer.data["code"] == "slot_unavailable"
        assert len(answer.data["alternatives"]) == 5
        assert "Ada" not in answer.body.decode()
        assert "ada@" not in answer.body.decode()

    @pytest.mark.parametrize("field", ["status", "ignoreSchedule", "clientId", "due", "source"])
    def test_a_visitor_cannot_set_other_fields(self, salon: Salon, field: str) -> None:
        booking_fields = booking_input(salon, "2027-03-03T22:00:00Z") | {field: True}
        assert visitor.call_refused("POST", BOOK, booking_fields).status == 409
        booked = visitor.post(BOOK, booking_input(salon) | {field: "cancelled"})
        assert [detail["field"] for detail in warned(booked)] == [field]
        assert booked["booking"]["status"] == "confirmed"

    def test_an_unpaid_booking_is_held_for_thirty_minutes(
        self, api: Api, salon: Salon, time: Time, owner: Owner
    ) -> None:
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        set_merchant(owner.workspace.id)
        assert book(salon)["booking"]["status"] == "pending_payment"
        time.pass_by(minutes=31)
        assert book(salon, client="Bob")["booking"]["status"] == "pending_payment"

    def test_invalid_input_is_reported_by_field(self, salon: Salon) -> None:
        for body, field in (
            ({**booking_input(salon), "client": {"name": "Ada"}}, "client"),
            ({**booking_input(salon), "client": {"name": "Ada", "phone": "12"}}, "client.phone"),
            (booking_input(salon, "2027-02-01T12:00:00Z"), "startAt"),
            (booking_input(salon, "2027-03-03T12:00:30Z"), "startAt"),
            ({"serviceId": salon.service}, "startAt"),
        ):
            answer = visitor.call_refused("POST", BOOK, body)
            assert answer.status == 400, body
            assert field in [error["field"] for error in answer.data["errors"]]

    def test_an_empty_text_of_an_optional_field_counts_as_omitted(self, salon: Salon) -> None:
        fields = {"resourceId": "", "notes": "", "idempotencyKey": ""}
        body = booking_input(salon, **fields)
        body["client"] = {"name": "Ada", "email": "", "phone": "+79161234567"}
        assert visitor.post(BOOK, body)["booking"]["status"] == "confirmed"

    def test_bookings_are_accepted_from_any_origin_also_as_plain_text(self, salon: Salon) -> None:
        preflight = visitor.call("OPTIONS", BOOK, headers={"Origin": "null"})
        assert preflight.status == 204
        assert is_readable_from_any_origin(preflight)
        body = json.dumps(booking_input(salon)).encode()
        answer = visitor.call("POST", BOOK, body, {"Content-Type": "text/plain", "Origin": "null"})
        assert answer.status == 200
        assert is_readable_from_any_origin(answer)

    def test_another_workspaces_resource_is_answered_like_an_unknown_one(
        self, new_owner: Any, salon: Salon
    ) -> None:
        theirs = Salon.opened(new_owner().api())
        answers = [
            visitor.call_refused("POST", BOOK, booking_input(salon, resourceId=resource))
            for resource in (theirs.resource, "01JNOBODYNOBODYNOBODYNOBOD")
        ]
        assert {answer.status for answer in answers} == {404}
        assert len({answer.data["message"] for answer in answers}) == 1


class TestClients:
    def test_a_visitor_neither_changes_nor_sees_an_existing_client(
        self, api: Api, salon: Salon
    ) -> None:
        salon.book("2027-03-02T12:00:00Z", client="Ada", notes="Allergic")
        (client_before,) = api.get("/api/clients/list")["clients"]
        who = {"name": "Somebody Else", "email": "ada@example.com", "phone": "+79161234567"}
        booked = visitor.post(BOOK, booking_input(salon) | {"client": who})
        (client_after,) = api.get("/api/clients/list")["clients"]
        unchanged = ("id", "name", "email", "phone", "notes", "tags")
        assert {field: client_after[field] for field in unchanged} == {
            field: client_before[field] for field in unchanged
        }
        assert client_after["bookingsCount"] == 2
        assert "Ada" not in str(booked["booking"])
        stored_booking = api.get(f"/api/bookings/{booked['booking']['id']}")["booking"]
        assert stored_booking["client"]["name"] == "Somebody Else"
        assert stored_booking["client"]["id"] == client_after["id"]

    def test_a_new_person_becomes_a_client(self, api: Api, salon: Salon) -> None:
        book(salon)
        (client,) = api.get("/api/clients/list")["clients"]
        assert (client["name"], client["bookingsCount"]) == ("Ada", 1)


class TestIdempotency:
    def test_a_repeated_key_books_once(self, api: Api, salon: Salon) -> None:
        booking_fields = booking_input(salon, idempotencyKey="order-1")
        first, second = (
            visitor.call("POST", BOOK, booking_fields),
            visitor.call("POST", BOOK, booking_fields),
        )
        assert first.body == second.body
        assert second.headers["Idempotency-Replayed"] == "true"
        assert api.get("/api/bookings/list")["pagination"]["total"] == 1

    def test_the_header_and_the_field_are_the_same_key(self, salon: Salon) -> None:
        first = visitor.post(BOOK, booking_input(salon), key="order-1")
        assert visitor.post(BOOK, booking_input(salon, idempotencyKey="order-1")) == first

    def test_a_merchants_key_with_the_same_name_is_separate(self, api: Api, salon: Salon) -> None:
        body = salon.order("2027-03-02T12:00:00Z")
        first = api.post("/api/bookings/create", body, key="order-1")["booking"]["id"]
        assert book(salon, idempotencyKey="order-1")["booking"]["id"] != first

    @pytest.mark.parametrize("key", [1, "k" * 256, ["k"]])
    def test_a_key_must_be_text(self, salon: Salon, key: Any) -> None:
        answer = visitor.call_refused("POST", BOOK, booking_input(salon, idempotencyKey=key))
        assert answer.status == 400
        assert answer.data["errors"][0]["field"] == "idempotencyKey"

    @pytest.mark.parametrize("key", [None, ""])
    def test_null_and_an_empty_text_count_as_no_key(self, key: str | None, salon: Salon) -> None:
        assert "warnings" not in book(salon, idempotencyKey=key)
