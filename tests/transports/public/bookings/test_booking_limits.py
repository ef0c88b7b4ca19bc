"""Limits of bookings by visitors."""

from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.booking_page.flows.visitor_shares import (
    BOOKINGS_PER_DAY,
    BookingLimitError,
)
from chalicelib.domains.booking_page.operations.cancel_and_move import BOOKING_CHANGES
from chalicelib.engine import limits
from tests.conftest import Api, Owner, Time, call_console, run_concurrently
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon
from tests.transports.public.bookings.helpers import BOOK, CANCEL, book, booking_input, visitor


def book_as(
    who: str,
    body: dict[str, Any],
    network: str = "",
    *,
    operation: str = "create_public_booking",
) -> None:
    """Book as a visitor with an IP address of their own."""
    principal = VisitorPrincipal(visitor=who, network=network)
    invoke(REGISTRY[operation], principal, lambda: body, request_id=new_id())


with_large_share = pytest.mark.usefixtures("large_share")


class TestLimits:
    @pytest.fixture(autouse=True)
    def _set_scale_one(self, monkeypatch: pytest.MonkeyPatch, reload_settings: Any) -> None:
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()

    def test_a_visitor_sends_at_most_thirty_requests_a_minute(
        self, salon: Salon, time: Time
    ) -> None:
        answers = [visitor.call("POST", BOOK, {"serviceId": salon.service}) for _ in range(31)]
        assert [answer.status for answer in answers] == [400] * 30 + [429]
        assert int(answers[-1].headers["Retry-After"]) <= 60
        time.pass_by(minutes=1)
        book(salon)

    @pytest.mark.parametrize("operation", ["create_public_booking", "book_on_page"])
    @pytest.mark.parametrize("limit", [BOOKING_CHANGES, BOOKINGS_PER_DAY], ids=lambda it: it.name)
    def test_a_refusal_by_a_limit_of_requests_has_the_phone(
        self, limit: Limit, operation: str, salon: Salon, owner: Owner
    ) -> None:
        settings = {"isOn": True, "offer": [salon.service], "phone": "+7 495 000-00-00"}
        call_console(owner.workspace.id, "set_booking_page", **settings)
        body = booking_input(salon)
        if operation == "book_on_page":
            body["workspace"] = owner.workspace.slug
        limits.take(limit, "visitor:v", limit.max_requests)
        with pytest.raises(BookingLimitError) as refused:
            book_as("v", body, operation=operation)
        assert refused.value.details == {
            "reason": "requests",
            "phone": "+7 495 000-00-00",
            "byMail": False,
        }
        assert limit.what in refused.value.message
        assert refused.value.message.endswith("Or call +7 495 000-00-00.")

    @pytest.mark.slow
    def test_a_visitor_sends_at_most_two_hundred_requests_a_day(
        self, salon: Salon, time: Time
    ) -> None:
        statuses = []
        for number in range(201):
            if number % 25 == 0:
                time.pass_by(minutes=1)
            booking_fields = booking_input(salon, "2027-03-03T22:00:00Z", client=f"V {number}")
            statuses.append(visitor.call("POST", BOOK, booking_fields).status)
        assert statuses == [409] * 200 + [429]

    @with_large_share
    def test_a_contact_has_at_most_five_future_bookings_in_any_spelling(
        self, salon: Salon, time: Time
    ) -> None:
        for day, phone in enumerate(
            ["8 916 123-45-67", "+79161234567", "79161234567", "8(916)1234567", "+7 916 123 45 67"]
        ):
            who = {"name": "Ada", "phone": phone}
            visitor.post(
                BOOK, booking_input(salon, f"2027-03-0{day + 2}T12:00:00Z") | {"client": who}
            )
        booking_fields = booking_input(salon, "2027-03-08T12:00:00Z") | {"client": who}
        refusal = visitor.call_refused("POST", BOOK, booking_fields)
        assert refusal.status == 429
        time.now = datetime(2027, 3, 2, 12, 1, tzinfo=UTC)
        visitor.post(BOOK, booking_fields)

    @with_large_share
    def test_a_cancelled_booking_makes_room_for_another_one(self, salon: Salon) -> None:
        bookings = [book(salon, f"2027-03-{day:02}T12:00:00Z") for day in range(2, 7)]
        booking_fields = booking_input(salon, "2027-03-08T12:00:00Z")
        assert visitor.call_refused("POST", BOOK, booking_fields).status == 429
        visitor.post(CANCEL, {"token": bookings[0]["cancelToken"]})
        visitor.post(BOOK, booking_fields)

    def test_bookings_of_a_contact_in_another_workspace_do_not_count(self, salon: Salon) -> None:
        for day in range(2, 8):
            salon.book(f"2027-03-{day:02}T12:00:00Z")
        book(salon, "2027-03-08T12:00:00Z")

    @with_large_share
    def test_a_strangers_bookings_with_a_contact_do_not_block_the_contacts_owner(
        self, salon: Salon
    ) -> None:
        for day in range(2, 7):
            book_as("stranger", booking_input(salon, f"2027-03-{day:02}T12:00:00Z"))
        booking_fields = booking_input(salon, "2027-03-08T12:00:00Z")
        with pytest.raises(RateLimitedError):
            book_as("stranger", booking_fields)
        book_as("owner", booking_fields)

    @with_large_share
    def test_the_refusal_does_not_depend_on_the_contacts_bookings(
        self, api: Api, salon: Salon, time: Time, owner: Owner
    ) -> None:
        """A visitor who enters another client's e-mail must not learn that client's bookings."""
        salon.book("2027-03-02T06:00:00Z", "Bob")
        refusals = []
        for client, first in (("Ada", 10), ("Bob", 20)):
            for day in range(first, first + 6):
                answer = visitor.call(
                    "POST", BOOK, booking_input(salon, f"2027-03-{day}T12:00Z", client)
                )
            data = {**answer.data, "requestId": ""}
            refusals.append((answer.status, data, answer.headers["Retry-After"]))
            time.pass_by(minutes=7)
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        set_merchant(owner.workspace.id)
        for day in (10, 11, 12):
            answer = visitor.call(
                "POST", BOOK, booking_input(salon, f"2027-03-{day}T09:00Z", "Eve")
            )
        refusals.append((answer.status, answer.data, answer.headers["Retry-After"]))
        assert refusals[0] == refusals[1]
        assert [data["reason"] for _, data, _ in refusals] == ["upcoming", "upcoming", "holds"]
        assert {(status, wait) for status, _, wait in refusals} == {(429, "3600")}

    @with_large_share
    def test_concurrent_bookings_do_not_exceed_the_limit_of_a_contact(
        self, api: Api, salon: Salon
    ) -> None:
        days = [f"2027-03-{day:02}T12:00:00Z" for day in range(2, 14)]
        answers = run_concurrently(
            12, lambda n: visitor.call("POST", BOOK, booking_input(salon, days[n]))
        )
        assert sorted(answer.status for answer in answers) == [200] * 5 + [429] * 7
        assert api.get("/api/bookings/list")["pagination"]["total"] == 5

    def test_a_visitor_has_at_most_two_unpaid_holds_whatever_the_contacts(
        self, api: Api, salon: Salon, time: Time, owner: Owner
    ) -> None:
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        set_merchant(owner.workspace.id)
        first = book(salon, "2027-03-02T12:00:00Z")
        book(salon, "2027-03-03T12:00:00Z", "Bob")
        booking_fields = booking_input(salon, "2027-03-04T12:00:00Z", "Eve")
        assert visitor.call_refused("POST", BOOK, booking_fields).status == 429
        book_as("another", booking_fields | {"startAt": "2027-03-05T12:00:00Z"})
        visitor.post(CANCEL, {"token": first["cancelToken"]})
        visitor.post(BOOK, booking_fields)
        booking_fields = booking_input(salon, "2027-03-06T12:00:00Z", "Zoe")
        refusal = visitor.call_refused("POST", BOOK, booking_fields)
        assert (refusal.status, refusal.data["reason"]) == (429, "holds")
        assert "not paid yet" in refusal.data["message"]
        time.pass_by(hours=1)
        visitor.post(BOOK, booking_fields)

    def test_a_network_of_48_bits_has_at_most_twenty_unpaid_holds(
        self, api: Api, salon: Salon, owner: Owner
    ) -> None:
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        set_merchant(owner.workspace.id)
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in (2, 3, 4) for hour in range(6, 14)
        ]
        for number, start in enumerate(starts[:20]):
            book_as(f"{number}", booking_input(salon, start, f"V {number}"), "a")
        late = booking_input(salon, starts[20], "Late")
        with pytest.raises(BookingLimitError) as refusal:
            book_as("20", late, "a")
        assert refusal.value.details["reason"] == "holds"
        book_as("21", late, "b")

    @with_large_share
    def test_a_network_of_48_bits_has_ten_times_the_upcoming_bookings_of_a_contact(
        self, salon: Salon
    ) -> None:
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in range(2, 9) for hour in range(6, 14)
        ]
        api_limit = {"id": salon.service, "unverifiedPerHour": 200}
        salon.api.post("/api/services/update", api_limit)
        for number, start in enumerate(starts[:50]):
            book_as(f"{number // 5}", booking_input(salon, start), "a")
        with pytest.raises(BookingLimitError) as refusal:
            book_as("late", booking_input(salon, starts[50]), "a")
        assert refusal.value.details["reason"] == "upcoming"
        book_as("late", booking_input(salon, starts[50]), "b")

    def test_bookings_by_the_business_itself_are_not_limited(self, salon: Salon) -> None:
        for day in range(2, 10):
            salon.book(f"2027-03-{day:02}T12:00:00Z")

    def test_a_service_takes_at_most_sixty_visitor_bookings_an_hour_without_a_proof(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in range(2, 14) for hour in range(6, 12)
        ]
        for number, start in enumerate(starts[:60]):
            book_as(f"{number}", booking_input(salon, start, f"V {number}"))
        booking_fields = booking_input(salon, starts[0], "Late")
        assert visitor.call_refused("POST", BOOK, booking_fields).data["code"] == "slot_unavailable"
        refusal = visitor.call_refused("POST", BOOK, booking_input(salon, starts[60], "Late"))
        assert refusal.status == 429
        assert refusal.headers["Retry-After"] == "3600"
        salon.book(starts[60])
        other = Salon.opened(api)
        book(other)
        time.pass_by(hours=1)
        book(salon, starts[61])

    def test_a_visitor_alone_cannot_close_a_service_for_others(self, salon: Salon) -> None:
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in (2, 3, 4) for hour in range(6, 14)
        ]
        attempts = [
            visitor.call("POST", BOOK, booking_input(salon, start, f"V {number}"))
            for number, start in enumerate(starts)
        ]
        assert [attempt.status for attempt in attempts] == [200] * 20 + [429] * 4
        assert attempts[-1].data["reason"] == "connection"
        book_as("another", booking_input(salon, starts[-1], "Late"))

    def test_the_fourth_client_behind_one_address_books_and_the_21st_is_asked_to_call(
        self, api: Api, salon: Salon, owner: Owner
    ) -> None:
        """Guests of a salon share its Wi-Fi, and clients of a carrier its address."""
        call_console(owner.workspace.id, "set_booking_page", phone="+7 495 000-00-00")
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in (2, 3, 4) for hour in range(6, 15)
        ]
        for number, start in enumerate(starts[:20]):
            book(salon, start, f"V {number}")
        refusal = visitor.call_refused("POST", BOOK, booking_input(salon, starts[20], "Late"))
        assert (refusal.status, refusal.data["code"]) == (429, "rate_limited")
        assert refusal.data["reason"] == "connection"
        assert refusal.data["phone"] == "+7 495 000-00-00"
        assert "+7 495 000-00-00" in refusal.data["message"]
        # A server that books for visitors uses a key, whose bookings are not limited.
        salon.book(starts[20], "Late")

    @pytest.mark.parametrize("same", ["phone", "email"])
    def test_a_contact_is_booked_three_times_an_hour_by_one_visitor(
        self, salon: Salon, time: Time, same: str
    ) -> None:
        def attempt(day: int, **changes: Any) -> Any:
            body = booking_input(salon, f"2027-03-{day:02}T12:00:00Z", f"V {day}")
            who = {"name": "Ada", "email": f"v{day}@example.com", "phone": f"+7916123450{day}"}
            shared = {"phone": "+79161234599", "email": "Ada@Example.com"}
            who[same] = shared[same]
            return visitor.call("POST", BOOK, body | {"client": who | changes})

        assert [attempt(day).status for day in (2, 3, 4)] == [200] * 3
        refusal = attempt(5)
        assert (refusal.status, refusal.data["reason"]) == (429, "contact")
        who = {"email": "new@example.com", "phone": "+79161234577"}
        assert attempt(6, **who).status == 200
        time.pass_by(hours=1)
        assert attempt(7).status == 200

    def test_a_strangers_bookings_of_an_hour_do_not_count_for_the_contacts_owner(
        self, salon: Salon
    ) -> None:
        for day in (2, 3, 4):
            book_as("stranger", booking_input(salon, f"2027-03-0{day}T12:00:00Z"))
        booking_fields = booking_input(salon, "2027-03-05T12:00:00Z")
        with pytest.raises(BookingLimitError):
            book_as("stranger", booking_fields)
        book_as("owner", booking_fields)

    def test_refused_bookings_take_nothing_from_the_share(self, salon: Salon) -> None:
        booking_fields = booking_input(salon, "2027-03-03T22:00:00Z")
        for _ in range(4):
            assert (
                visitor.call_refused("POST", BOOK, booking_fields).data["code"]
                == "slot_unavailable"
            )
        for day in (2, 3, 4):
            book(salon, f"2027-03-0{day}T12:00:00Z", f"V {day}")

    def test_the_share_is_that_of_all_services_of_all_workspaces(
        self, api: Api, salon: Salon
    ) -> None:
        for day in (2, 3, 4):
            book(salon, f"2027-03-0{day}T12:00:00Z")
        other = Salon.opened(api)
        booking_fields = booking_input(other, "2027-03-05T12:00:00Z")
        assert visitor.call_refused("POST", BOOK, booking_fields).status == 429
        book(other, "2027-03-05T12:00:00Z", "Bob")

    def test_concurrent_bookings_do_not_exceed_the_share(self, api: Api, salon: Salon) -> None:
        days = [f"2027-03-{day:02}T12:00:00Z" for day in range(2, 8)]
        answers = run_concurrently(
            6, lambda n: visitor.call("POST", BOOK, booking_input(salon, days[n]))
        )
        assert sorted(answer.status for answer in answers) == [200] * 3 + [429] * 3

    def test_an_ipv6_network_of_48_bits_has_ten_shares(self, salon: Salon) -> None:
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in range(2, 8) for hour in range(6, 12)
        ]
        for number, start in enumerate(starts[:30]):
            book_as(f"{number // 2}", booking_input(salon, start, f"V {number}"), "a")
        with pytest.raises(RateLimitedError):
            book_as("31", booking_input(salon, starts[30], "Late"), "a")
        book_as("31", booking_input(salon, starts[30], "Late"), "b")

    def test_a_service_can_set_its_own_hourly_limit(self, api: Api, salon: Salon) -> None:
        body = {"id": salon.service, "unverifiedPerHour": 1}
        assert api.post("/api/services/update", body)["service"]["unverifiedPerHour"] == 1
        book(salon, "2027-03-02T12:00:00Z", "Ada")
        booking_fields = booking_input(salon, "2027-03-03T12:00:00Z", "Bob")
        assert visitor.call_refused("POST", BOOK, booking_fields).status == 429
        api.post("/api/services/update", body | {"unverifiedPerHour": 2})
        visitor.post(BOOK, booking_fields)
