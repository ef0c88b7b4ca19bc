"""Cancelling, tokens and the calendar file of a visitor's booking."""

import logging
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib.core.settings import settings
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.identity.store import workspaces
from tests.conftest import Answer, Api, Owner, Time, all_rows, call_operator, run_concurrently
from tests.factories.salon import Salon
from tests.support import calendar_files
from tests.transports.public.bookings.helpers import CANCEL, book, visitor
from tests.transports.public.conftest import is_readable_from_any_origin


def calendar(booked: Any) -> Answer:
    return visitor.call("GET", urlsplit(booked["icsUrl"]).path)


def event(booked: Any) -> Any:
    return calendar_files.check(calendar(booked).body)[1]


class TestCancellation:
    def test_cancelling_frees_the_slot_and_can_be_repeated(self, api: Api, salon: Salon) -> None:
        booked = book(salon)
        for _ in range(2):
            answer = visitor.post(CANCEL, {"token": booked["cancelToken"]})
            assert answer["booking"] == {**booked["booking"], "status": "cancelled"}
        history = api.get(f"/api/bookings/{booked['booking']['id']}")["booking"]["statusHistory"]
        assert [change["status"] for change in history] == ["confirmed", "cancelled"]
        assert history[1]["by"].startswith("visitor:")
        book(salon, client="Bob")

    def test_a_dry_run_shows_the_booking_and_cancels_nothing(self, salon: Salon) -> None:
        booked = book(salon)
        preview = visitor.post(CANCEL, {"token": booked["cancelToken"], "dryRun": True})
        assert preview["booking"] == booked["booking"]
        assert event(booked)["STATUS"] == "CONFIRMED"

    def test_a_booking_that_has_begun_cannot_be_cancelled(self, salon: Salon, time: Time) -> None:
        booked = book(salon)
        time.now = datetime(2027, 3, 3, 12, tzinfo=UTC)
        answer = visitor.call_refused("POST", CANCEL, {"token": booked["cancelToken"]})
        assert (answer.status, answer.data["code"]) == (409, "booking_started")

    def test_cancelling_again_after_the_start_still_succeeds(
        self, salon: Salon, time: Time
    ) -> None:
        booked = book(salon)
        visitor.post(CANCEL, {"token": booked["cancelToken"]})
        time.now = datetime(2027, 3, 4, 12, tzinfo=UTC)
        visitor.post(CANCEL, {"token": booked["cancelToken"]})

    def test_concurrent_cancellations_are_one_line_of_history(self, api: Api, salon: Salon) -> None:
        booked = book(salon)
        request = {"token": booked["cancelToken"]}
        answers = run_concurrently(6, lambda _: visitor.call("POST", CANCEL, request))
        assert {answer.status for answer in answers} == {200}
        history = api.get(f"/api/bookings/{booked['booking']['id']}")["booking"]["statusHistory"]
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
        answers = [visitor.call_refused("POST", CANCEL, {"token": token}) for token in forged]
        assert {answer.status for answer in answers} == {404}
        assert len({answer.data["message"] for answer in answers}) == 1
        path = f"/api/public/bookings/{first['cancelToken']}.ics"
        assert visitor.call("GET", path).status == 404

    def test_a_token_becomes_invalid_when_the_client_is_erased(
        self, owner: Owner, salon: Salon
    ) -> None:
        booked = book(salon)
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        assert visitor.call("POST", CANCEL, {"token": booked["cancelToken"]}).status == 404
        assert calendar(booked).status == 404

    def test_tokens_are_in_no_log_and_no_audit_record(
        self, salon: Salon, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        booked = book(salon)
        calendar(booked)
        visitor.post(CANCEL, {"token": booked["cancelToken"]})
        file = booked["icsUrl"].rpartition("/")[2].removesuffix(".ics")
        logged = "".join(str(vars(record)) for record in caplog.records)
        rows = {key: row for key, row in all_rows().items() if not key.startswith("control/")}
        for token in (booked["cancelToken"], file):
            assert token not in logged
            assert token not in str(rows)


class TestCalendarFile:
    def test_the_calendar_file_has_the_standard_format(self, owner: Owner, salon: Salon) -> None:
        booked = book(salon, notes="Secret")
        answer = calendar(booked)
        assert booked["icsUrl"].startswith(settings().public_url)
        assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
        assert is_readable_from_any_origin(answer)
        calendar_event = event(booked)
        assert calendar_event["SUMMARY"] == "Haircut (Stylist 0)"
        assert calendar_event["LOCATION"] == owner.workspace.name
        assert calendar_event.decoded("DTSTART") == datetime(2027, 3, 3, 12, tzinfo=UTC)
        assert calendar_event.decoded("DTEND") == datetime(2027, 3, 3, 13, tzinfo=UTC)
        assert (calendar_event["STATUS"], calendar_event["SEQUENCE"]) == ("CONFIRMED", 0)
        assert b"DTSTART:20270303T120000Z" in answer.body
        for private in (b"Ada", b"example.com", b"Secret"):
            assert private not in answer.body

    def test_a_changed_booking_keeps_its_uid_and_raises_the_sequence(self, salon: Salon) -> None:
        booked = book(salon)
        uid = event(booked)["UID"]
        moved_booking = salon.set_status(
            booked["booking"]["id"], "confirmed", startAt="2027-03-05T12:00:00Z"
        )
        assert moved_booking.status == 200
        assert event(booked).decoded("DTSTART") == datetime(2027, 3, 5, 12, tzinfo=UTC)
        assert (event(booked)["UID"], event(booked)["SEQUENCE"]) == (uid, 1)
        visitor.post(CANCEL, {"token": booked["cancelToken"]})
        assert (event(booked)["STATUS"], event(booked)["SEQUENCE"]) == ("CANCELLED", 2)

    @pytest.mark.parametrize("name", ['Ёж "Hair"; a,b: c\\d^n', "x" * 100, "a;b=c", "é\u2028ü"])
    def test_the_workspace_organizes_the_event_under_any_name(
        self, name: str, owner: Owner, salon: Salon
    ) -> None:
        row = workspaces.get(owner.workspace.id)
        row.name = name
        row.save()
        booked = book(salon)
        organizer = event(booked)["ORGANIZER"]
        assert organizer == "mailto:noreply@127.0.0.1"
        assert organizer.params["CN"] == name.replace('"', "'")
        visitor.post(CANCEL, {"token": booked["cancelToken"]})
        method, cancelled = calendar_files.check(calendar(booked).body)
        assert (method, cancelled["ORGANIZER"]) == ("CANCEL", organizer)
        assert "ATTENDEE" not in cancelled

    def test_an_unchanged_calendar_file_is_304(self, salon: Salon) -> None:
        booked = book(salon)
        tag = calendar(booked).headers["ETag"]
        path = urlsplit(booked["icsUrl"]).path
        revalidated = visitor.call("GET", path, headers={"If-None-Match": tag})
        assert revalidated.status == 304

    @pytest.mark.parametrize("name", ["nothing.ics", "nothing", "cancel", "%00.ics"])
    def test_the_calendar_file_of_an_unknown_booking_is_404(self, salon: Salon, name: str) -> None:
        assert visitor.call_refused("GET", f"/api/public/bookings/{name}").status in {404, 405}
