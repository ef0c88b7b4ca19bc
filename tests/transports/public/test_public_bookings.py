"""Bookings by visitors: without a key, from any origin, without access to other bookings."""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from icalendar import Calendar

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.core.settings import settings
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from tests.conftest import Answer, Api, Owner, Time, as_operator, at_once, everything
from tests.factories.salon import Salon, check_calendars
from tests.transports.public.test_public_forms import is_shared

BOOK = "/api/public/bookings"
CANCEL = "/api/public/bookings/cancel"
NOON = "2027-03-03T12:00:00Z"
visitor = Api(None)


@pytest.fixture(autouse=True)
def _in_winter(time: Time) -> None:
    """The time is Monday morning in Moscow."""
    time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)


@pytest.fixture
def salon(api: Api) -> Salon:
    return Salon.opened(api)


def slots(salon: Salon, query: str = "") -> Any:
    return visitor.get(f"/api/public/services/{salon.service}/slots?{query}")


def wanted(salon: Salon, start: str = NOON, client: str = "Ada", **fields: Any) -> dict[str, Any]:
    return salon.order(start, client, **fields)


def book(salon: Salon, start: str = NOON, client: str = "Ada", **fields: Any) -> Any:
    return visitor.post(BOOK, wanted(salon, start, client, **fields))


def book_as(who: str, body: dict[str, Any]) -> None:
    """Book as a visitor with an IP address of their own."""
    operation, principal = REGISTRY["create_public_booking"], VisitorPrincipal(visitor=who)
    invoke(operation, principal, lambda: body, request_id=new_id())


def calendar(made: Any) -> Answer:
    return visitor.call("GET", urlsplit(made["icsUrl"]).path)


def event(made: Any) -> Any:
    (found,) = Calendar.from_ical(calendar(made).body).walk("VEVENT")
    return found


class TestSlots:
    def test_visitors_see_the_same_slots_as_keys(self, salon: Salon) -> None:
        query = "from=2027-03-03&to=2027-03-04"
        assert slots(salon, query) == salon.search(first="2027-03-03", to="2027-03-04")

    def test_an_empty_range_has_a_reason_and_the_next_available_time(self, salon: Salon) -> None:
        found = slots(salon, "from=2027-03-03T20:00:00Z&to=2027-03-03T21:00:00Z")
        assert found["slots"] == []
        assert found["reason"] == "closed"
        assert found["nextAvailable"]["startAt"] == "2027-03-04T06:00:00.000Z"

    def test_slots_of_an_unknown_service_are_404(self, salon: Salon) -> None:
        answer = visitor.refused("GET", "/api/public/services/nobody/slots")
        assert answer.status == 404
        assert is_shared(answer)

    def test_slots_of_a_suspended_site_are_404(self, api: Api, salon: Salon) -> None:
        site = api.post("/api/projects/create", {"title": "Salon"})["project"]["id"]
        api.post("/api/services/update", {"id": salon.service, "siteId": site})
        slots(salon)
        as_operator("suspend_site", id=site)
        assert visitor.call("GET", f"/api/public/services/{salon.service}/slots").status == 404
        assert visitor.call("POST", BOOK, wanted(salon)).status == 404
        as_operator("resume_site", id=site)
        book(salon)

    def test_slots_can_be_searched_on_any_plan(self, owner: Owner, salon: Salon) -> None:
        as_operator("set_plan", workspaceId=owner.workspace.id, plan="free")
        assert slots(salon)["slots"]
        book(salon)


class TestBooking:
    def test_a_booking_takes_the_slot_and_returns_its_details(self, api: Api, salon: Salon) -> None:
        made = book(salon, notes="By the window")
        assert set(made) == {"status", "booking", "cancelToken", "icsUrl"}
        assert made["booking"] == {
            "id": made["booking"]["id"],
            "status": "confirmed",
            "serviceName": "Haircut",
            "resourceName": "Master 0",
            "startAt": "2027-03-03T12:00:00.000Z",
            "startLocal": "2027-03-03T15:00:00+03:00",
            "endAt": "2027-03-03T13:00:00.000Z",
            "timezone": "Europe/Moscow",
            "price": 150_000,
        }
        stored = api.get(f"/api/bookings/{made['booking']['id']}")["booking"]
        assert stored["client"]["email"] == "ada@example.com"
        assert stored["notes"] == "By the window"
        assert stored["source"] == "public"
        free = slots(salon, "from=2027-03-03&to=2027-03-03")["slots"]
        assert made["booking"]["startAt"] not in [each["startAt"] for each in free]

    def test_a_time_without_an_offset_is_read_in_the_given_zone(self, salon: Salon) -> None:
        made = book(salon, "2027-03-03T12:00", timezone="Asia/Yekaterinburg")
        assert made["booking"]["startAt"] == "2027-03-03T07:00:00.000Z"

    def test_a_slot_taken_meanwhile_is_409_with_alternatives(self, salon: Salon) -> None:
        book(salon)
        answer = visitor.refused("POST", BOOK, wanted(salon, client="Bob"))
        assert answer.status == 409
        assert answer.data["code"] == "slot_unavailable"
        assert len(answer.data["alternatives"]) == 5
        assert "ada" not in answer.body.decode().lower()

    def test_of_many_concurrent_visitors_for_one_slot_one_gets_it(
        self, owner: Owner, salon: Salon
    ) -> None:
        answers = at_once(12, lambda n: visitor.call("POST", BOOK, wanted(salon, client=f"V {n}")))
        assert sorted(each.status for each in answers) == [200, *[409] * 11]
        check_calendars(owner.workspace.id, salon.resources)

    @pytest.mark.parametrize("field", ["status", "ignoreSchedule", "clientId", "price", "source"])
    def test_a_visitor_cannot_set_other_fields(self, salon: Salon, field: str) -> None:
        sent = wanted(salon, "2027-03-03T22:00:00Z") | {field: True}
        assert visitor.refused("POST", BOOK, sent).status == 409
        made = visitor.post(BOOK, wanted(salon) | {field: "cancelled"})
        assert field in str(made["warnings"])
        assert made["booking"]["status"] == "confirmed"

    def test_an_unpaid_booking_is_held_for_thirty_minutes(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        assert book(salon)["booking"]["status"] == "pending_payment"
        time.pass_by(minutes=31)
        assert book(salon, client="Bob")["booking"]["status"] == "pending_payment"

    def test_invalid_input_is_reported_by_field(self, salon: Salon) -> None:
        for body, field in (
            ({**wanted(salon), "client": {"name": "Ada"}}, "client"),
            ({**wanted(salon), "client": {"name": "Ada", "phone": "12"}}, "client.phone"),
            (wanted(salon, "2027-02-01T12:00:00Z"), "startAt"),
            (wanted(salon, "2027-03-03T12:00:30Z"), "startAt"),
            ({"serviceId": salon.service}, "startAt"),
        ):
            answer = visitor.refused("POST", BOOK, body)
            assert answer.status == 400, body
            assert field in [each["field"] for each in answer.data["errors"]]

    def test_bookings_are_accepted_from_any_origin_also_as_plain_text(self, salon: Salon) -> None:
        preflight = visitor.call("OPTIONS", BOOK, headers={"Origin": "null"})
        assert preflight.status == 204
        assert is_shared(preflight)
        body = json.dumps(wanted(salon)).encode()
        answer = visitor.call("POST", BOOK, body, {"Content-Type": "text/plain", "Origin": "null"})
        assert answer.status == 200
        assert is_shared(answer)

    def test_another_workspaces_resource_is_answered_like_an_unknown_one(
        self, new_owner: Any, salon: Salon
    ) -> None:
        theirs = Salon.opened(new_owner().api())
        answers = [
            visitor.refused("POST", BOOK, wanted(salon, resourceId=each))
            for each in (theirs.resource, "01JNOBODYNOBODYNOBODYNOBOD")
        ]
        assert {each.status for each in answers} == {404}
        assert len({each.data["message"] for each in answers}) == 1


class TestClients:
    def test_a_visitor_neither_changes_nor_sees_an_existing_client(
        self, api: Api, salon: Salon
    ) -> None:
        salon.book("2027-03-02T12:00:00Z", client="Ada", notes="Allergic")
        (before,) = api.get("/api/clients/list")["clients"]
        who = {"name": "Somebody Else", "email": "ada@example.com", "phone": "+79161234567"}
        made = visitor.post(BOOK, wanted(salon) | {"client": who})
        (after,) = api.get("/api/clients/list")["clients"]
        unchanged = ("id", "name", "email", "phone", "notes", "tags")
        assert {each: after[each] for each in unchanged} == {
            each: before[each] for each in unchanged
        }
        assert after["bookingsCount"] == 2
        assert "Ada" not in str(made)
        stored = api.get(f"/api/bookings/{made['booking']['id']}")["booking"]
        assert stored["client"]["name"] == "Somebody Else"
        assert stored["client"]["id"] == after["id"]

    def test_a_new_person_becomes_a_client(self, api: Api, salon: Salon) -> None:
        book(salon)
        (client,) = api.get("/api/clients/list")["clients"]
        assert (client["name"], client["bookingsCount"]) == ("Ada", 1)


class TestLimits:
    @pytest.fixture(autouse=True)
    def _at_scale_one(self, monkeypatch: pytest.MonkeyPatch, read_anew: Any) -> None:
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        read_anew()

    def test_a_visitor_sends_at_most_thirty_requests_a_minute(
        self, salon: Salon, time: Time
    ) -> None:
        answers = [visitor.call("POST", BOOK, {"serviceId": salon.service}) for _ in range(31)]
        assert [each.status for each in answers] == [400] * 30 + [429]
        assert int(answers[-1].headers["Retry-After"]) <= 60
        time.pass_by(minutes=1)
        book(salon)

    @pytest.mark.slow
    def test_a_visitor_sends_at_most_two_hundred_requests_a_day(
        self, salon: Salon, time: Time
    ) -> None:
        statuses = []
        for number in range(201):
            if number % 25 == 0:
                time.pass_by(minutes=1)
            sent = wanted(salon, "2027-03-03T22:00:00Z", client=f"V {number}")
            statuses.append(visitor.call("POST", BOOK, sent).status)
        assert statuses == [409] * 200 + [429]

    def test_a_contact_has_at_most_five_future_bookings_in_any_spelling(
        self, salon: Salon, time: Time
    ) -> None:
        for day, phone in enumerate(
            ["8 916 123-45-67", "+79161234567", "79161234567", "8(916)1234567", "+7 916 123 45 67"]
        ):
            who = {"name": "Ada", "phone": phone}
            visitor.post(BOOK, wanted(salon, f"2027-03-0{day + 2}T12:00:00Z") | {"client": who})
        sent = wanted(salon, "2027-03-08T12:00:00Z") | {"client": who}
        refused = visitor.refused("POST", BOOK, sent)
        assert refused.status == 429
        time.now = datetime(2027, 3, 2, 12, 1, tzinfo=UTC)
        visitor.post(BOOK, sent)

    def test_a_cancelled_booking_makes_room_for_another_one(self, salon: Salon) -> None:
        made = [book(salon, f"2027-03-{day:02}T12:00:00Z") for day in range(2, 7)]
        sent = wanted(salon, "2027-03-08T12:00:00Z")
        assert visitor.refused("POST", BOOK, sent).status == 429
        visitor.post(CANCEL, {"token": made[0]["cancelToken"]})
        visitor.post(BOOK, sent)

    def test_bookings_of_a_contact_in_another_workspace_do_not_count(self, salon: Salon) -> None:
        for day in range(2, 8):
            salon.book(f"2027-03-{day:02}T12:00:00Z")
        book(salon, "2027-03-08T12:00:00Z")

    def test_a_strangers_bookings_with_a_contact_do_not_block_the_contacts_owner(
        self, salon: Salon
    ) -> None:
        for day in range(2, 7):
            book_as("stranger", wanted(salon, f"2027-03-{day:02}T12:00:00Z"))
        sent = wanted(salon, "2027-03-08T12:00:00Z")
        with pytest.raises(RateLimitedError):
            book_as("stranger", sent)
        book_as("owner", sent)

    def test_the_refusal_does_not_depend_on_the_contacts_bookings(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        """A visitor who enters another person's e-mail must not learn when that person comes."""
        salon.book("2027-03-02T06:00:00Z", "Bob")
        refusals = []
        for client, first in (("Ada", 10), ("Bob", 20)):
            for day in range(first, first + 6):
                answer = visitor.call("POST", BOOK, wanted(salon, f"2027-03-{day}T12:00Z", client))
            told = {**answer.data, "requestId": ""}
            refusals.append((answer.status, told, answer.headers["Retry-After"]))
            time.pass_by(minutes=7)
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        for day in (10, 11, 12):
            answer = visitor.call("POST", BOOK, wanted(salon, f"2027-03-{day}T09:00Z", "Eve"))
        told = {**answer.data, "requestId": ""}
        refusals.append((answer.status, told, answer.headers["Retry-After"]))
        assert refusals[0] == refusals[1] == refusals[2]
        assert refusals[0][0] == 429

    def test_concurrent_bookings_do_not_exceed_the_limit_of_a_contact(
        self, api: Api, salon: Salon
    ) -> None:
        days = [f"2027-03-{day:02}T12:00:00Z" for day in range(2, 14)]
        answers = at_once(12, lambda n: visitor.call("POST", BOOK, wanted(salon, days[n])))
        assert sorted(each.status for each in answers) == [200] * 5 + [429] * 7
        assert api.get("/api/bookings/list")["pagination"]["total"] == 5

    def test_a_contact_has_at_most_two_unpaid_holds(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        book(salon, "2027-03-02T12:00:00Z")
        book(salon, "2027-03-03T12:00:00Z")
        sent = wanted(salon, "2027-03-04T12:00:00Z")
        refused = visitor.refused("POST", BOOK, sent)
        assert refused.status == 429
        time.pass_by(minutes=30)
        visitor.post(BOOK, sent)

    def test_bookings_by_the_business_itself_are_not_limited(self, salon: Salon) -> None:
        for day in range(2, 10):
            salon.book(f"2027-03-{day:02}T12:00:00Z")

    def test_a_service_takes_at_most_twenty_visitor_bookings_an_hour(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        starts = [
            f"2027-03-{day:02}T{hour:02}:00:00Z" for day in range(2, 6) for hour in range(6, 12)
        ]
        for number, start in enumerate(starts[:20]):
            book_as(f"{number}", wanted(salon, start, f"V {number}"))
        taken = wanted(salon, starts[0], "Late")
        assert visitor.refused("POST", BOOK, taken).data["code"] == "slot_unavailable"
        refused = visitor.refused("POST", BOOK, wanted(salon, starts[20], "Late"))
        assert refused.status == 429
        assert refused.headers["Retry-After"] == "3600"
        salon.book(starts[20])
        other = Salon.opened(api)
        book(other)
        time.pass_by(hours=1)
        book(salon, starts[21])

    def test_a_service_can_set_its_own_hourly_limit(self, api: Api, salon: Salon) -> None:
        body = {"id": salon.service, "unverifiedPerHour": 1}
        assert api.post("/api/services/update", body)["service"]["unverifiedPerHour"] == 1
        book(salon, "2027-03-02T12:00:00Z", "Ada")
        sent = wanted(salon, "2027-03-03T12:00:00Z", "Bob")
        assert visitor.refused("POST", BOOK, sent).status == 429
        api.post("/api/services/update", body | {"unverifiedPerHour": 2})
        visitor.post(BOOK, sent)


class TestIdempotency:
    def test_a_repeated_key_books_once(self, api: Api, salon: Salon) -> None:
        sent = wanted(salon, idempotencyKey="order-1")
        first, second = visitor.call("POST", BOOK, sent), visitor.call("POST", BOOK, sent)
        assert first.body == second.body
        assert second.headers["Idempotency-Replayed"] == "true"
        assert api.get("/api/bookings/list")["pagination"]["total"] == 1

    def test_the_header_and_the_field_are_the_same_key(self, salon: Salon) -> None:
        first = visitor.post(BOOK, wanted(salon), key="order-1")
        assert visitor.post(BOOK, wanted(salon, idempotencyKey="order-1")) == first

    def test_other_input_under_the_same_key_is_409(self, salon: Salon) -> None:
        book(salon, idempotencyKey="order-1")
        answer = visitor.refused("POST", BOOK, wanted(salon, client="B", idempotencyKey="order-1"))
        assert answer.data["code"] == "idempotency_mismatch"

    def test_a_merchants_key_with_the_same_name_is_separate(self, api: Api, salon: Salon) -> None:
        body = salon.order("2027-03-02T12:00:00Z")
        first = api.post("/api/bookings/create", body, key="order-1")["booking"]["id"]
        assert book(salon, idempotencyKey="order-1")["booking"]["id"] != first

    @pytest.mark.parametrize("key", [1, "k" * 256, ["k"]])
    def test_a_key_must_be_text(self, salon: Salon, key: Any) -> None:
        answer = visitor.refused("POST", BOOK, wanted(salon, idempotencyKey=key))
        assert answer.status == 400
        assert answer.data["errors"][0]["field"] == "idempotencyKey"

    @pytest.mark.parametrize("key", [None, ""])
    def test_null_and_an_empty_text_count_as_no_key(self, key: str | None, salon: Salon) -> None:
        assert "warnings" not in book(salon, idempotencyKey=key)


class TestCancellation:
    def test_cancelling_frees_the_slot_and_can_be_repeated(self, api: Api, salon: Salon) -> None:
        made = book(salon)
        for _ in range(2):
            answer = visitor.post(CANCEL, {"token": made["cancelToken"]})
            assert answer["booking"] == {**made["booking"], "status": "cancelled"}
        history = api.get(f"/api/bookings/{made['booking']['id']}")["booking"]["statusHistory"]
        assert [each["status"] for each in history] == ["confirmed", "cancelled"]
        assert history[1]["by"].startswith("visitor:")
        book(salon, client="Bob")

    def test_a_dry_run_shows_the_booking_and_cancels_nothing(self, salon: Salon) -> None:
        made = book(salon)
        shown = visitor.post(CANCEL, {"token": made["cancelToken"], "dryRun": True})
        assert shown["booking"] == made["booking"]
        assert event(made)["STATUS"] == "CONFIRMED"

    def test_a_booking_that_has_begun_cannot_be_cancelled(self, salon: Salon, time: Time) -> None:
        made = book(salon)
        time.now = datetime(2027, 3, 3, 12, tzinfo=UTC)
        answer = visitor.refused("POST", CANCEL, {"token": made["cancelToken"]})
        assert (answer.status, answer.data["code"]) == (409, "booking_started")

    def test_cancelling_again_after_the_start_still_succeeds(
        self, salon: Salon, time: Time
    ) -> None:
        made = book(salon)
        visitor.post(CANCEL, {"token": made["cancelToken"]})
        time.now = datetime(2027, 3, 4, 12, tzinfo=UTC)
        visitor.post(CANCEL, {"token": made["cancelToken"]})

    def test_concurrent_cancellations_are_one_line_of_history(self, api: Api, salon: Salon) -> None:
        made = book(salon)
        sent = {"token": made["cancelToken"]}
        answers = at_once(6, lambda _: visitor.call("POST", CANCEL, sent))
        assert {each.status for each in answers} == {200}
        history = api.get(f"/api/bookings/{made['booking']['id']}")["booking"]["statusHistory"]
        assert len(history) == 2


class TestTokens:
    def test_a_token_gives_access_to_one_action_on_one_booking(self, salon: Salon) -> None:
        first, second = book(salon), book(salon, "2027-03-04T12:00:00Z", client="Bob")
        file = first["icsUrl"].rpartition("/")[2].removesuffix(".ics")
        ids = 48  # characters, and the first three bytes of the signature
        forged = [
            file,
            second["cancelToken"][:ids] + first["cancelToken"][ids:],
            first["cancelToken"][:-1] + ("B" if first["cancelToken"][-1] == "A" else "A"),
            first["cancelToken"] + "A",
            first["cancelToken"].lower(),
            "",
            "х" * booking_tokens.LENGTH,
        ]
        answers = [visitor.refused("POST", CANCEL, {"token": each}) for each in forged]
        assert {each.status for each in answers} == {404}
        assert len({each.data["message"] for each in answers}) == 1
        path = f"/api/public/bookings/{first['cancelToken']}.ics"
        assert visitor.call("GET", path).status == 404

    def test_a_token_becomes_invalid_when_the_client_is_erased(
        self, owner: Owner, salon: Salon
    ) -> None:
        made = book(salon)
        as_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        assert visitor.call("POST", CANCEL, {"token": made["cancelToken"]}).status == 404
        assert calendar(made).status == 404

    def test_tokens_are_in_no_log_and_no_audit_record(
        self, salon: Salon, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        made = book(salon)
        calendar(made)
        visitor.post(CANCEL, {"token": made["cancelToken"]})
        file = made["icsUrl"].rpartition("/")[2].removesuffix(".ics")
        logged = "".join(str(vars(each)) for each in caplog.records)
        rows = {key: row for key, row in everything().items() if not key.startswith("control/")}
        for token in (made["cancelToken"], file):
            assert token not in logged
            assert token not in str(rows)


class TestCalendarFile:
    def test_the_calendar_file_has_the_standard_format(self, owner: Owner, salon: Salon) -> None:
        made = book(salon, notes="Secret")
        answer = calendar(made)
        assert made["icsUrl"].startswith(settings().public_url)
        assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
        assert is_shared(answer)
        found = event(made)
        assert found["SUMMARY"] == "Haircut (Master 0)"
        assert found["LOCATION"] == owner.workspace.name
        assert found.decoded("DTSTART") == datetime(2027, 3, 3, 12, tzinfo=UTC)
        assert found.decoded("DTEND") == datetime(2027, 3, 3, 13, tzinfo=UTC)
        assert (found["STATUS"], found["SEQUENCE"]) == ("CONFIRMED", 0)
        assert b"DTSTART:20270303T120000Z" in answer.body
        for private in (b"Ada", b"example.com", b"Secret"):
            assert private not in answer.body

    def test_a_changed_booking_keeps_its_uid_and_raises_the_sequence(self, salon: Salon) -> None:
        made = book(salon)
        uid = event(made)["UID"]
        moved = salon.set_status(made["booking"]["id"], "confirmed", startAt="2027-03-05T12:00:00Z")
        assert moved.status == 200
        assert event(made).decoded("DTSTART") == datetime(2027, 3, 5, 12, tzinfo=UTC)
        assert (event(made)["UID"], event(made)["SEQUENCE"]) == (uid, 1)
        visitor.post(CANCEL, {"token": made["cancelToken"]})
        assert (event(made)["STATUS"], event(made)["SEQUENCE"]) == ("CANCELLED", 2)

    def test_an_unpaid_hold_is_tentative(self, api: Api, salon: Salon) -> None:
        api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
        assert event(book(salon))["STATUS"] == "TENTATIVE"

    def test_an_unchanged_calendar_file_is_304(self, salon: Salon) -> None:
        made = book(salon)
        tag = calendar(made).headers["ETag"]
        path = urlsplit(made["icsUrl"]).path
        again = visitor.call("GET", path, headers={"If-None-Match": tag})
        assert again.status == 304

    @pytest.mark.parametrize("name", ["nothing.ics", "nothing", "cancel", "%00.ics"])
    def test_the_calendar_file_of_an_unknown_booking_is_404(self, salon: Salon, name: str) -> None:
        assert visitor.refused("GET", f"/api/public/bookings/{name}").status in {404, 405}


@pytest.mark.store
def test_every_listed_slot_can_be_booked_and_no_other_time(api: Api) -> None:
    salon = Salon.opened(api, [{}, {"capacity": 2}], bufferAfterMin=30, slotStepMin=45)
    begin = datetime(2027, 3, 2, 5, tzinfo=UTC)
    for number in range(40):
        start = begin + timedelta(minutes=15 * number)
        sent = wanted(salon, start.isoformat(), client=f"V {number}")
        day = f"from={start:%Y-%m-%dT%H:%M:%SZ}&to={start:%Y-%m-%dT%H:%M:%SZ}"
        shown = bool(slots(salon, day)["slots"])
        assert (visitor.call("POST", BOOK, sent).status == 200) == shown
    assert len(list(BOOKINGS.entries(_workspace(api)))) > 5


def _workspace(api: Api) -> str:
    found: str = api.get("/api/workspaces/list")["activeWorkspaceId"]
    return found
