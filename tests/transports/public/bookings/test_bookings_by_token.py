"""Clients read, move, cancel and pay bookings over the API, by the token of their link."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.domains.booking_page.operations import cancel_and_move
from tests.conftest import Answer, Api, Owner, Time, all_rows, call_operator, run_concurrently
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon, check_calendars
from tests.transports.public.bookings.helpers import BOOK, CANCEL, NOON, book, visitor
from tests.transports.public.conftest import is_readable_from_any_origin

BY_TOKEN, MOVE, PAY = f"{BOOK}/by-token", f"{BOOK}/reschedule", f"{BOOK}/pay"
TEN, ELEVEN = "2027-03-03T10:00:00Z", "2027-03-03T11:00:00Z"


def token_of(booked: Any) -> str:
    return str(booked["manageUrl"]).rpartition("/")[2]


def read(token: str) -> Any:
    return visitor.post(BY_TOKEN, {"token": token})


def move(token: str, start: str, **fields: Any) -> Answer:
    return visitor.call("POST", MOVE, {"token": token, "startAt": start, **fields})


def history_of(api: Api, booked: Any) -> Any:
    return api.get(f"/api/bookings/{booked['booking']['id']}")["booking"]["statusHistory"]


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.data["code"]


class TestReading:
    def test_response_has_what_the_page_shows_and_no_contacts(self, salon: Salon) -> None:
        booked = book(salon, notes="By the window")
        answer = visitor.call("POST", BY_TOKEN, {"token": token_of(booked)})
        assert answer.headers["Cache-Control"] == "no-store"
        assert is_readable_from_any_origin(answer)
        assert answer.data["booking"] == booked["booking"]
        links = {"manageUrl", "icsUrl", "paymentUrl", "amountDue", "holdExpiresAt"}
        assert {name: answer.data[name] for name in links} == {n: booked[n] for n in links}
        assert (answer.data["serviceId"], answer.data["resourceId"]) == (
            salon.service,
            salon.resource,
        )
        assert (answer.data["canMove"], answer.data["canCancel"]) == (True, True)
        for hidden in ("Ada", "ada@example.com", "window"):
            assert hidden not in answer.body.decode()

    def test_reading_changes_nothing(self, salon: Salon) -> None:
        token = token_of(book(salon))
        rows_before = _rows_without_limits()
        for _ in range(2):
            visitor.call("POST", BY_TOKEN, {"token": token, "idempotencyKey": "k"})
        assert _rows_without_limits() == rows_before

    def test_booking_without_a_payment_offers_none(self, salon: Salon) -> None:
        managed = read(token_of(book(salon)))
        assert (managed["paymentUrl"], managed["amountDue"], managed["paid"]) == (None, 0, None)
        answer = visitor.call_refused("POST", PAY, {"token": token_of(book(salon, TEN))})
        assert code(answer) == (409, "not_payable")

    def test_link_of_a_key_returns_itself_and_not_the_links_of_the_client(
        self, salon: Salon
    ) -> None:
        made = salon.api.post("/api/bookings/create", salon.order(NOON))
        assert read(token_of(made))["manageUrl"] == made["manageUrl"]
        moved = move(token_of(made), TEN)
        assert moved.data["manageUrl"] == made["manageUrl"]


def _rows_without_limits() -> dict[str, Any]:
    return {key: row for key, row in all_rows().items() if "LIMIT#" not in key}


class TestTokens:
    @pytest.mark.parametrize("path", [BY_TOKEN, MOVE, PAY])
    def test_only_the_token_of_the_link_reads_moves_and_pays(self, path: str, salon: Salon) -> None:
        first, second = book(salon), book(salon, TEN, client="Bob")
        calendar = first["icsUrl"].rpartition("/")[2].removesuffix(".ics")
        own, ids = token_of(first), 48
        forged = [
            first["cancelToken"],
            calendar,
            token_of(second)[:ids] + own[ids:],
            own[:-1] + ("B" if own[-1] == "A" else "A"),
            f"{own}A",
            own.lower(),
            "",
        ]
        answers = [
            visitor.call_refused("POST", path, {"token": token, "startAt": ELEVEN})
            for token in forged
        ]
        assert {code(answer) for answer in answers} == {(404, "not_found")}
        assert len({answer.data["message"] for answer in answers}) == 1

    def test_token_of_the_link_cancels(self, api: Api, salon: Salon) -> None:
        booked = book(salon)
        for _ in range(2):
            answer = visitor.post(CANCEL, {"token": token_of(booked)})
            assert answer["booking"]["status"] == "cancelled"
        assert [entry["status"] for entry in history_of(api, booked)] == ["confirmed", "cancelled"]

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    def test_token_in_a_query_is_not_read(self, method: str, salon: Salon) -> None:
        query = f"?token={token_of(book(salon))}"
        for path in (BY_TOKEN, MOVE, PAY):
            answer = visitor.call_refused(method, path + query)
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert visitor.call_refused("POST", BY_TOKEN + query).status == 400

    def test_tokens_are_in_no_log_and_in_no_row(
        self, salon: Salon, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        token = token_of(book(salon))
        read(token)
        move(token, TEN)
        move(token, "x" * 200)
        move(token + "x" * 100, TEN)
        visitor.post(CANCEL, {"token": token})
        logged = "".join(str(vars(record)) for record in caplog.records)
        assert token not in logged
        assert token not in str(_rows_without_limits())

    def test_erasure_of_the_client_ends_the_token(self, owner: Owner, salon: Salon) -> None:
        token = token_of(book(salon))
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        answers = [visitor.call("POST", BY_TOKEN, {"token": token}), move(token, TEN)]
        assert [answer.status for answer in answers] == [404, 404]

    @pytest.mark.parametrize("path", [BY_TOKEN, MOVE, PAY])
    def test_large_bodies_are_refused(self, path: str) -> None:
        body = {"token": "x" * 40_000}
        answer = visitor.call_refused("POST", path, body)
        assert code(answer) == (413, "payload_too_large")

    def test_page_of_another_origin_may_call(self) -> None:
        headers = {"Origin": "https://example.com", "Access-Control-Request-Method": "POST"}
        for path in (BY_TOKEN, MOVE, PAY):
            preflight = visitor.call("OPTIONS", path, headers=headers)
            assert preflight.status == 204
            assert is_readable_from_any_origin(preflight)
            plain = {"Origin": "https://example.com", "Content-Type": "text/plain"}
            refused = visitor.call("POST", path, b'{"token": "x", "startAt": "2027"}', plain)
            assert refused.status in {400, 404}
            assert is_readable_from_any_origin(refused)

    def test_reads_of_a_visitor_are_counted(
        self,
        salon: Salon,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        token = token_of(book(salon))
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        body = {"token": token}
        number = cancel_and_move.VIEWS.max_requests + 1
        statuses = [visitor.call("POST", BY_TOKEN, body).status for _ in range(number)]
        assert (statuses[0], statuses[-1]) == (200, 429)
        time.pass_by(minutes=1)
        assert read(token)


class TestMoves:
    def test_move_keeps_id_price_status_and_links(self, api: Api, salon: Salon) -> None:
        booked = book(salon)
        api.post("/api/services/update", {"id": salon.service, "price": 999_900})
        moved = move(token_of(booked), TEN).data
        assert moved["booking"] == {
            **booked["booking"],
            "startAt": "2027-03-03T10:00:00.000Z",
            "startLocal": "2027-03-03T13:00:00+03:00",
            "endAt": "2027-03-03T11:00:00.000Z",
        }
        assert (moved["manageUrl"], moved["icsUrl"]) == (booked["manageUrl"], booked["icsUrl"])
        assert read(token_of(booked))["movesLeft"] == 4
        assert history_of(api, booked)[-1]["by"].startswith("visitor:")
        book(salon, client="Bob")

    def test_time_that_overlaps_its_own_is_free_for_the_move(self, api: Api, salon: Salon) -> None:
        api.post("/api/services/update", {"id": salon.service, "slotStepMin": 30})
        booked = book(salon)
        assert move(token_of(booked), "2027-03-03T12:30:00Z").status == 200

    @pytest.mark.parametrize("start", [NOON, "2027-03-03T15:00:00+03:00", "2027-03-03T15:00"])
    def test_move_to_its_own_time_has_no_effect(self, start: str, api: Api, salon: Salon) -> None:
        booked = book(salon)
        for _ in range(2):
            answer = move(token_of(booked), start)
            assert answer.data["booking"] == booked["booking"]
        assert len(history_of(api, booked)) == 1
        assert read(token_of(booked))["movesLeft"] == 5

    def test_time_without_an_offset_is_one_of_the_resource(self, salon: Salon) -> None:
        moved = move(token_of(book(salon)), "2027-03-03T13:00")
        assert moved.data["booking"]["startAt"] == "2027-03-03T10:00:00.000Z"
        moved = move(token_of(book(salon)), "2027-03-03T16:00:00+05:00")
        assert moved.data["booking"]["startAt"] == "2027-03-03T11:00:00.000Z"

    def test_time_without_an_offset_is_one_of_the_named_staff(self, api: Api) -> None:
        zones = [{"timezone": "Europe/Moscow"}, {"timezone": "Asia/Tokyo"}]
        salon = Salon.opened(api, resources=zones)
        token = token_of(book(salon, resourceId=salon.resource))
        for resource, offset in zip(salon.resources[::-1], ("+09:00", "+03:00"), strict=True):
            moved = move(token, "2027-03-04T10:00", resourceId=resource).data["booking"]
            assert moved["startLocal"] == f"2027-03-04T10:00:00{offset}"

    def test_cancelled_booking_stays_cancelled(self, api: Api, salon: Salon) -> None:
        booked = book(salon)
        visitor.post(CANCEL, {"token": booked["cancelToken"]})
        for start in (TEN, ELEVEN):
            assert code(move(token_of(booked), start)) == (409, "move_refused")
        assert read(token_of(booked))["booking"]["status"] == "cancelled"
        assert len(history_of(api, booked)) == 2

    def test_answer_that_was_lost_is_repeated(self, api: Api, salon: Salon) -> None:
        booked = book(salon)
        fields = {"idempotencyKey": "move-1"}
        first = move(token_of(booked), TEN, **fields)
        salon.set_status(booked["booking"]["id"], "confirmed", startAt=ELEVEN)
        again = move(token_of(booked), TEN, **fields)
        assert again.body == first.body
        assert read(token_of(booked))["booking"]["startAt"] == "2027-03-03T11:00:00.000Z"
        assert len(history_of(api, booked)) == 3

    def test_key_of_one_booking_does_not_answer_for_another(self, salon: Salon) -> None:
        first, second = book(salon), book(salon, ELEVEN, client="Bob")
        move(token_of(first), TEN, idempotencyKey="k")
        answer = move(token_of(second), TEN, idempotencyKey="k")
        assert code(answer) == (409, "idempotency_mismatch")

    def test_client_moves_at_most_five_times(self, salon: Salon) -> None:
        token = token_of(book(salon))
        for number in range(5):
            assert move(token, (TEN, ELEVEN)[number % 2]).status == 200
        assert code(move(token, ELEVEN)) == (409, "move_refused")
        assert move(token, TEN).status == 200, "its own time is no move"
        managed = read(token)
        assert (managed["canMove"], managed["movesLeft"]) == (False, 0)

    def test_times_that_are_not_offered_are_refused(self, api: Api, salon: Salon) -> None:
        token = token_of(book(salon))
        book(salon, TEN, client="Bob")
        taken = move(token, TEN)
        assert code(taken) == (409, "slot_unavailable")
        assert len(taken.data["alternatives"]) == 5
        api.post("/api/services/update", {"id": salon.service, "minNoticeMin": 24 * 60})
        for start in ("2027-03-03T02:00:00Z", "2027-03-01T08:00:00Z", "2027-09-03T10:00:00Z"):
            assert code(move(token, start)) == (409, "slot_unavailable")
        for start in ("2027-03-04", "2027-03-03T10:00:30Z", "x", "2027-02-01T12:00:00Z"):
            assert move(token, start).data["errors"][0]["field"] == "startAt"

    @pytest.mark.parametrize("change", ["inactive", "deleted", "suspended"])
    def test_service_that_is_not_offered_lets_clients_only_cancel(
        self, change: str, api: Api, salon: Salon
    ) -> None:
        token = token_of(book(salon))
        match change:
            case "inactive":
                api.post("/api/services/update", {"id": salon.service, "status": "inactive"})
            case "deleted":
                api.post("/api/services/delete", {"id": salon.service})
            case _:
                site = api.post("/api/projects/create", {"title": "Salon"})["project"]["id"]
                api.post("/api/services/update", {"id": salon.service, "siteId": site})
                call_operator("suspend_site", id=site)
        assert read(token)["canMove"] is False
        assert code(move(token, TEN)) == (409, "move_refused")
        assert visitor.post(CANCEL, {"token": token})["booking"]["status"] == "cancelled"

    def test_booking_that_has_begun_stays(self, salon: Salon, time: Time) -> None:
        token = token_of(book(salon))
        time.now = datetime(2027, 3, 3, 12, tzinfo=UTC)
        managed = read(token)
        assert (managed["canMove"], managed["canCancel"]) == (False, False)
        assert code(move(token, "2027-03-04T10:00:00Z")) == (409, "booking_started")

    def test_staff_of_another_service_or_workspace_is_refused(self, api: Api, salon: Salon) -> None:
        token = token_of(book(salon))
        other = api.post("/api/resources/create", {"name": "Boris"})["resource"]["id"]
        assert move(token, TEN, resourceId=other).status == 409
        assert move(token, TEN, resourceId="unknown").status == 404

    def test_moves_to_one_time_at_once_sell_it_once(self, owner: Owner, salon: Salon) -> None:
        starts = [f"2027-03-0{day}T12:00:00Z" for day in range(4, 8)]
        tokens = [token_of(book(salon, start, client=f"C{start[9]}")) for start in starts]
        answers = run_concurrently(4, lambda number: move(tokens[number], TEN))
        assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
        check_calendars(owner.workspace.id, salon.resources)

    def test_move_and_cancellation_at_once_end_cancelled(self, owner: Owner, salon: Salon) -> None:
        token = token_of(book(salon))

        def act(number: int) -> Answer:
            if number % 2:
                return visitor.call("POST", CANCEL, {"token": token})
            return move(token, f"2027-03-0{4 + number // 2}T10:00:00Z")

        answers = run_concurrently(6, act)
        assert {answer.status for answer in answers[1::2]} == {200}
        assert {answer.status for answer in answers[::2]} <= {200, 409}
        assert read(token)["booking"]["status"] == "cancelled"
        check_calendars(owner.workspace.id, salon.resources)


def test_hold_ends_at_the_new_start_and_the_response_says_so(
    api: Api, salon: Salon, time: Time, owner: Owner
) -> None:
    api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
    set_merchant(owner.workspace.id)
    booked = book(salon, "2027-03-01T09:00:00Z")
    assert (booked["amountDue"], booked["holdExpiresAt"]) == (150_000, "2027-03-01T06:30:00.000Z")
    time.now = datetime(2027, 3, 1, 6, 10, tzinfo=UTC)
    moved = move(token_of(booked), "2027-03-01T07:00:00Z").data
    for name in ("amountDue", "holdExpiresAt", "paymentUrl"):
        assert moved[name] == booked[name]
    time.now = datetime(2027, 3, 1, 6, 31, tzinfo=UTC)
    ended = read(token_of(booked))
    assert (ended["amountDue"], ended["paymentUrl"]) == (0, None)
    answer = visitor.call_refused("POST", PAY, {"token": token_of(booked)})
    assert code(answer) == (409, "not_payable")
