"""A member of the staff is away: time off, and what happens to the bookings."""

from collections import Counter
from typing import Any

import pytest

from chalicelib.core.errors import ForbiddenError
from chalicelib.domains.bookings.flows import booking_changes
from chalicelib.domains.schedule.flows import absence_plan
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console, run_concurrently
from tests.domains.payments.checkout import Checkout
from tests.domains.payments.conftest import checkout, inbox, shop  # noqa: F401  fixtures
from tests.factories.salon import DAILY, Salon, check_calendars

PATH = "/api/resources/arrange-absence"
MONDAY = "2027-01-18"
FRIDAY = "2027-01-15"
"""Today. It is 15:00 in Moscow."""


@pytest.fixture
def salon(api: Api, time: Time) -> Salon:
    """Anna and Olga cut hair from 9 to 18 every day."""
    return Salon.opened(api, [{"name": "Anna"}, {"name": "Olga"}])


def arrange(salon: Salon, *choices: dict[str, Any], **fields: Any) -> Any:
    body = {"resourceId": salon.resource, "startAt": MONDAY, **fields}
    body = {name: value for name, value in body.items() if value is not None}
    return salon.api.post(PATH, body | ({"bookings": list(choices)} if choices else {}))


def preview(salon: Salon, **fields: Any) -> Any:
    return arrange(salon, dryRun=True, **fields)


def choose(booking: dict[str, Any], action: str, **fields: Any) -> dict[str, Any]:
    return {"id": booking["id"], "ifVersion": booking["version"], "action": action, **fields}


def codes(arranged: Any) -> list[str]:
    return [each["outcome"]["code"] for each in arranged["bookings"]]


def booking_of(salon: Salon, booking: dict[str, Any]) -> Any:
    return salon.api.get(f"/api/bookings/{booking['id']}")["booking"]


def time_off(salon: Salon) -> list[tuple[str, str]]:
    rows = salon.api.get("/api/resources/time-off")["timeOff"]
    return [(row["startAt"], row["endAt"]) for row in rows]


def book(salon: Salon, hour: int, client: str = "Ada", staff: int = 0, **fields: Any) -> Any:
    start = f"{MONDAY}T{hour:02}:00"
    return salon.book(start, client, resourceId=salon.resources[staff], **fields)


def hold(salon: Salon, hour: int) -> Any:
    """Book a time that is held for half an hour, until it is paid."""
    salon.api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
    held = book(salon, hour, "Held")
    assert held["holdExpiresAt"]
    return held


class TestPreview:
    def test_each_booking_has_who_is_free_at_its_time_or_the_next_free_time(
        self, salon: Salon
    ) -> None:
        free, taken = book(salon, 10), book(salon, 12, "Bob")
        book(salon, 12, "Eve", staff=1)
        report = preview(salon)
        by_id = {each["id"]: each for each in report["bookings"]}
        assert list(by_id) == [free["id"], taken["id"]]
        assert by_id[free["id"]]["proposal"] == "reassign"
        assert [each["name"] for each in by_id[free["id"]]["sameTime"]] == ["Olga"]
        assert by_id[taken["id"]]["proposal"] == "move"
        assert by_id[taken["id"]]["sameTime"] == []
        assert by_id[taken["id"]]["otherTime"]["startLocal"] == "2027-01-18T13:00:00+03:00"
        assert by_id[taken["id"]]["otherTime"]["resourceName"] == "Olga"
        assert report["total"] == 2

    def test_nothing_is_changed(self, salon: Salon) -> None:
        booking = book(salon, 10)
        preview(salon)
        assert time_off(salon) == []
        assert booking_of(salon, booking) == booking

    def test_a_colleague_is_proposed_once_for_one_time(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, [{"name": "Room", "capacity": 2}, {"name": "Olga"}])
        book(salon, 10)
        book(salon, 10, "Bob")
        assert [each["proposal"] for each in preview(salon)["bookings"]] == ["reassign", "move"]

    @pytest.mark.parametrize("obstacle", ["hours", "time off", "inactive", "unbound"])
    def test_a_colleague_who_is_not_at_work_is_not_proposed(
        self, obstacle: str, salon: Salon
    ) -> None:
        book(salon, 10)
        olga = salon.resources[1]
        match obstacle:
            case "hours":
                Salon.set_hours(
                    salon.api, olga, [{"weekday": "mon", "start": "12:00", "end": "18:00"}]
                )
            case "time off":
                body = {"resourceId": olga, "startAt": MONDAY, "endAt": MONDAY}
                salon.api.post("/api/resources/create-time-off", body)
            case "inactive":
                salon.api.post("/api/resources/update", {"id": olga, "status": "inactive"})
            case _:
                services = {"id": salon.service, "resourceIds": [salon.resource]}
                salon.api.post("/api/services/update", services)
        (only,) = preview(salon)["bookings"]
        assert only["sameTime"] == []

    def test_notice_and_steps_do_not_bind_a_client_who_has_the_time(self, salon: Salon) -> None:
        booking = salon.book(f"{FRIDAY}T15:25", resourceId=salon.resource, ignoreSchedule=True)
        salon.api.post("/api/services/update", {"id": salon.service, "minNoticeMin": 600})
        (only,) = preview(salon, startAt=FRIDAY)["bookings"]
        assert only["proposal"] == "reassign"
        done = arrange(
            salon, choose(booking, "reassign", resourceId=salon.resources[1]), startAt=FRIDAY
        )
        assert codes(done) == ["reassigned"]

    def test_bookings_that_have_begun_or_ended_are_not_listed(self, salon: Salon) -> None:
        for start in ("13:00", "14:30"):
            salon.book(f"{FRIDAY}T{start}", resourceId=salon.resource, ignoreSchedule=True)
        later = salon.book(f"{FRIDAY}T16:00", resourceId=salon.resource, ignoreSchedule=True)
        for period in ({"startAt": FRIDAY}, {"startAt": None}):
            report = preview(salon, **period)
            assert [each["id"] for each in report["bookings"]] == [later["id"]]

    def test_cancelled_completed_and_lapsed_bookings_are_not_listed(
        self, salon: Salon, time: Time
    ) -> None:
        for hour, status in ((10, "cancelled"), (11, "completed"), (12, "no_show")):
            salon.set_status(book(salon, hour, status)["id"], status)
        held = hold(salon, 13)
        assert [each["id"] for each in preview(salon)["bookings"]] == [held["id"]]
        time.pass_by(minutes=31)
        report = preview(salon)
        assert (report["bookings"], report["total"]) == ([], 0)

    def test_a_booking_of_a_deleted_service_can_only_be_cancelled(self, salon: Salon) -> None:
        book(salon, 10)
        salon.api.post("/api/services/delete", {"id": salon.service, "force": True})
        (only,) = preview(salon)["bookings"]
        assert only["proposal"] == "cancel"

    def test_the_number_of_requests_does_not_follow_the_number_of_bookings(
        self, salon: Salon, owner: Owner
    ) -> None:
        def count() -> int:
            with metering() as usage:
                call_console(
                    owner.workspace.id,
                    "arrange_absence",
                    resourceId=salon.resource,
                    startAt=MONDAY,
                    dryRun=True,
                )
            return len(usage.calls)

        book(salon, 9)
        one = count()
        for hour in range(10, 17):
            book(salon, hour, f"Client {hour}")
        assert count() == one <= 14

    def test_a_long_list_is_cut_and_says_how_many_there_are(
        self, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from chalicelib.domains.schedule.operations import absences

        monkeypatch.setattr(absences, "MAX_BOOKINGS", 1)
        book(salon, 10)
        book(salon, 11, "Bob")
        report = preview(salon)
        assert (len(report["bookings"]), report["total"]) == (1, 2)


class TestCarryingOut:
    def test_each_booking_gets_what_was_chosen(self, salon: Salon, owner: Owner) -> None:
        rows = [book(salon, hour, f"Client {hour}") for hour in (10, 11, 12, 13)]
        olga = salon.resources[1]
        done = arrange(
            salon,
            choose(rows[0], "reassign", resourceId=olga),
            choose(rows[1], "move", startAt="2027-01-19T09:00", resourceId=salon.resource),
            choose(rows[2], "cancel"),
            choose(rows[3], "leave"),
            reason="Sick",
        )
        assert codes(done) == ["reassigned", "moved", "cancelled", "left"]
        assert done["summary"] == {"ok": 4, "failed": 0}
        assert done["total"] == 1
        now = [booking_of(salon, row) for row in rows]
        assert (now[0]["resourceId"], now[0]["startAt"]) == (olga, rows[0]["startAt"])
        assert now[1]["startLocal"][:16] == "2027-01-19T09:00"
        assert now[2]["status"] == "cancelled"
        assert now[2]["statusHistory"][-1]["reason"] == "Sick"
        assert now[3] == rows[3]
        assert time_off(salon) == [(MONDAY, MONDAY)]
        check_calendars(owner.workspace.id, salon.resources)

    def test_bookings_without_a_choice_stay(self, salon: Salon) -> None:
        booking = book(salon, 10)
        assert arrange(salon)["total"] == 1
        assert booking_of(salon, booking) == booking

    def test_nobody_books_the_period_while_bookings_are_changed(
        self, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        booking, tries = book(salon, 10), []
        change = booking_changes.change

        def change_late(*arguments: Any) -> Any:
            tries.append(salon.try_to_book(f"{MONDAY}T15:00", "Eve", resourceId=salon.resource))
            return change(*arguments)

        monkeypatch.setattr(booking_changes, "change", change_late)
        arrange(salon, choose(booking, "cancel"))
        assert [answer.status for answer in tries] == [409]

    def test_without_time_off_the_period_can_be_booked(self, salon: Salon) -> None:
        arrange(salon, choose(book(salon, 10), "cancel"), timeOff=False)
        assert time_off(salon) == []
        book(salon, 10, "Eve")

    def test_the_rest_of_today_begins_now(self, salon: Salon) -> None:
        done = arrange(salon, startAt=None)
        assert (done["startAt"][:16], done["endAt"][:16]) == (
            "2027-01-15T12:00",
            "2027-01-15T21:00",
        )
        assert time_off(salon) == [("2027-01-15T12:00:00.000Z", "2027-01-15T21:00:00.000Z")]

    def test_time_off_that_covers_the_period_is_not_made_again(
        self, salon: Salon, time: Time
    ) -> None:
        first = arrange(salon, startAt=None)
        time.pass_by(minutes=20)
        assert arrange(salon, startAt=None)["timeOff"] == first["timeOff"]
        assert len(time_off(salon)) == 1
        arrange(salon, startAt=FRIDAY, endAt="2027-01-16")
        assert len(time_off(salon)) == 2

    def test_a_booking_that_was_changed_since_the_preview_is_left_and_reported(
        self, salon: Salon
    ) -> None:
        booking = book(salon, 10)
        salon.set_status(booking["id"], "confirmed", startAt=f"{MONDAY}T11:00")
        done = arrange(salon, choose(booking, "cancel"))
        assert codes(done) == ["version_conflict"]
        assert done["bookings"][0]["outcome"]["status"] == 409
        assert done["bookings"][0]["booking"]["status"] == "confirmed"

    def test_a_booking_that_has_begun_or_is_of_somebody_else_is_left(
        self, salon: Salon, time: Time
    ) -> None:
        others, own = book(salon, 10, staff=1), book(salon, 11)
        later = salon.book("2027-01-19T10:00", "Eve", resourceId=salon.resource)
        time.now = time.now.replace(day=18, hour=8, minute=1)
        done = arrange(salon, *(choose(each, "cancel") for each in (others, own, later)))
        assert codes(done) == ["booking_not_affected"] * 3
        assert {booking_of(salon, each)["status"] for each in (others, own, later)} == {"confirmed"}

    def test_a_colleague_who_was_booked_meanwhile_keeps_the_client_with_the_absent(
        self, salon: Salon
    ) -> None:
        booking, next_one = book(salon, 10), book(salon, 11, "Bob")
        book(salon, 10, "Eve", staff=1)
        olga = salon.resources[1]
        done = arrange(
            salon, *(choose(each, "reassign", resourceId=olga) for each in (booking, next_one))
        )
        assert codes(done) == ["slot_unavailable", "reassigned"]
        assert done["bookings"][0]["outcome"]["reason"] == "fully_booked"
        assert booking_of(salon, booking) == booking

    def test_a_colleague_who_is_away_too_takes_nobody(self, salon: Salon) -> None:
        booking, olga = book(salon, 10), salon.resources[1]
        body = {"resourceId": olga, "startAt": MONDAY, "endAt": MONDAY}
        salon.api.post("/api/resources/create-time-off", body)
        done = arrange(salon, choose(booking, "reassign", resourceId=olga))
        assert done["bookings"][0]["outcome"]["reason"] == "time_off"

    def test_a_colleague_who_needs_longer_has_to_be_at_work_for_that_long(
        self, salon: Salon
    ) -> None:
        booking, olga = book(salon, 10), salon.resources[1]
        slower = [{"resourceId": olga, "durationMin": 120}]
        salon.api.post("/api/services/update", {"id": salon.service, "resourceOverrides": slower})
        Salon.set_hours(salon.api, olga, [{"weekday": "mon", "start": "09:00", "end": "11:30"}])
        (only,) = preview(salon)["bookings"]
        assert only["sameTime"] == []
        done = arrange(salon, choose(booking, "reassign", resourceId=olga))
        assert done["bookings"][0]["outcome"]["reason"] == "closed"

    @pytest.mark.parametrize("everybody", [True, False], ids=["everybody", "colleague"])
    def test_time_off_that_comes_meanwhile_is_noticed(
        self, everybody: bool, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        booking, olga = book(salon, 10), salon.resources[1]
        require, runs = absence_plan.require_at_work, Counter[str]()

        def require_then_close(*arguments: Any) -> None:
            require(*arguments)
            runs["all"] += 1
            if runs["all"] == 1:
                body = {"startAt": MONDAY, "endAt": MONDAY}
                body |= {} if everybody else {"resourceId": olga}
                salon.api.post("/api/resources/create-time-off", body)

        monkeypatch.setattr(absence_plan, "require_at_work", require_then_close)
        done = arrange(salon, choose(booking, "reassign", resourceId=olga))
        assert codes(done) == ["slot_unavailable"]
        assert booking_of(salon, booking) == booking

    @pytest.mark.parametrize("keyed", [True, False], ids=["key", "no key"])
    def test_a_call_killed_in_the_middle_is_continued_by_its_repetition(
        self, keyed: bool, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [book(salon, hour, f"Client {hour}") for hour in (10, 11, 12)]
        choices = [choose(row, "reassign", resourceId=salon.resources[1]) for row in rows]
        body = {"resourceId": salon.resource, "startAt": MONDAY, "bookings": choices}
        change, left = booking_changes.change, [1]

        def die(*arguments: Any) -> Any:
            if not left:
                raise KeyboardInterrupt
            left.pop()
            return change(*arguments)

        key = {"key": "sick"} if keyed else {}
        with monkeypatch.context() as patch:
            patch.setattr(booking_changes, "change", die)
            with pytest.raises(KeyboardInterrupt):
                salon.api.post(PATH, body, **key)
        assert len(time_off(salon)) == 1
        done = salon.api.post(PATH, body, **key)
        first = "reassigned" if keyed else "unchanged"
        assert codes(done) == [first, "reassigned", "reassigned"]
        assert done["total"] == 0
        assert len(time_off(salon)) == 1
        history = booking_of(salon, rows[0])["statusHistory"]
        assert len(history) == 2, "it is moved once"

    def test_two_calls_at_the_same_time_change_each_booking_once(
        self, salon: Salon, owner: Owner
    ) -> None:
        rows = [book(salon, hour, f"Client {hour}") for hour in (10, 11, 12)]
        actions: list[dict[str, Any]] = [
            {"action": "reassign", "resourceId": salon.resources[1]},
            {"action": "cancel"},
        ]

        def call(number: int) -> Any:
            return arrange(salon, *(choose(row, **actions[number]) for row in rows))

        results = run_concurrently(2, call)
        for row, *both in zip(rows, *(codes(result) for result in results), strict=True):
            assert sum(code in {"reassigned", "cancelled"} for code in both) == 1, both
            assert set(both) <= {
                "reassigned",
                "cancelled",
                "version_conflict",
                "booking_not_affected",
            }
            assert len(booking_of(salon, row)["statusHistory"]) == 2
        assert len(time_off(salon)) == 1
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_hold_keeps_its_expiry_with_the_colleague(self, salon: Salon) -> None:
        held = hold(salon, 10)
        done = arrange(salon, choose(held, "reassign", resourceId=salon.resources[1]))
        assert codes(done) == ["reassigned"]
        now = booking_of(salon, held)
        assert now["status"] == "pending_payment"
        assert now["holdExpiresAt"] == held["holdExpiresAt"]


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"startAt": "2027-01-14", "endAt": "2027-01-14"}, "endAt"),
            ({"startAt": MONDAY, "endAt": "2027-01-17"}, "endAt"),
            ({"startAt": MONDAY, "endAt": "2027-02-01"}, "endAt"),
            ({"bookings": [{"id": "b", "ifVersion": 1, "action": "reassign"}]}, "bookings.0"),
            ({"bookings": [{"id": "b", "ifVersion": 1, "action": "move"}]}, "bookings.0"),
            ({"bookings": [{"id": "b", "ifVersion": 1, "action": "leave"}] * 2}, "bookings"),
        ],
    )
    def test_a_wrong_call_changes_nothing(
        self, fields: dict[str, Any], field: str, salon: Salon
    ) -> None:
        body = {"resourceId": salon.resource, "startAt": MONDAY, **fields}
        answer = salon.api.call("POST", PATH, body)
        assert answer.status == 400
        assert [error["field"] for error in answer.data["errors"]] == [field]
        assert time_off(salon) == []

    def test_fourteen_days_are_arranged(self, salon: Salon) -> None:
        assert arrange(salon, endAt="2027-01-31")["timeOff"]["endAt"] == "2027-01-31"

    def test_time_off_needs_the_scope_of_staff(self, salon: Salon, owner: Owner) -> None:
        booking = book(salon, 10)
        narrow = owner.api("bookings:write")
        body = {"resourceId": salon.resource, "startAt": MONDAY, "bookings": []}
        answer = narrow.call("POST", PATH, body)
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")
        assert time_off(salon) == []
        choices = [choose(booking, "cancel")]
        done = narrow.post(PATH, body | {"timeOff": False, "bookings": choices})
        assert codes(done) == ["cancelled"]

    def test_it_is_for_managers(self, salon: Salon, owner: Owner) -> None:
        arguments: dict[str, Any] = {"resourceId": salon.resource, "dryRun": True}
        assert call_console(
            owner.workspace.id, "arrange_absence", membership="manager", **arguments
        )
        with pytest.raises(ForbiddenError):
            call_console(owner.workspace.id, "arrange_absence", membership="member", **arguments)


@pytest.mark.parametrize("action", ["reassign", "cancel"])
def test_a_paid_booking_keeps_its_payment_and_the_client_is_told(
    action: str,
    checkout: Checkout,  # noqa: F811  the fixture
) -> None:
    salon = checkout.salon
    olga = salon.api.post("/api/resources/create", {"name": "Olga"})["resource"]["id"]
    Salon.set_hours(salon.api, olga, DAILY)
    both = [salon.resource, olga]
    salon.api.post("/api/services/update", {"id": salon.service, "resourceIds": both})
    salon.api.post("/api/resources/update", {"id": salon.resource, "sortOrder": 1})
    checkout.click(checkout.hold(resourceId=salon.resource))
    checkout.shop.pay()
    checkout.hook()
    mails = len(checkout.subjects())
    booking = salon.api.get(f"/api/bookings/{checkout.booking.id}")["booking"]
    done = arrange(salon, choose(booking, action, resourceId=olga))
    assert done["summary"]["ok"] == 1
    assert checkout.booking.paid == checkout.payments[0].amount
    # As after any cancellation by the business, a member decides about the refund.
    assert checkout.refunds == []
    assert checkout.console("list_payments", bookingIds=[booking["id"]])["payments"][0][
        "refundDue"
    ] is (action == "cancel")
    told = {"reassign": "Booking changed", "cancel": "Booking cancelled"}
    assert checkout.subjects()[mails:] == [told[action]]


class TestVisits:
    """Anna and Olga cut and colour, each in the same time."""

    @pytest.fixture
    def colour(self, salon: Salon) -> str:
        body = {"name": "Colour", "durationMin": 30, "price": 100, "resourceIds": salon.resources}
        created: str = salon.api.post("/api/services/create", body)["service"]["id"]
        return created

    def book(self, salon: Salon, colour: str, hour: int = 10) -> Any:
        start, who = f"{MONDAY}T{hour:02}:00", salon.resource
        answer = salon.try_to_book(start, andThen=[colour], resourceId=who)
        return answer.data["visit"]

    def test_a_colleague_takes_both_services_in_one_call(
        self, salon: Salon, colour: str, owner: Owner
    ) -> None:
        self.book(salon, colour)
        proposed = preview(salon)["bookings"]
        assert [each["proposal"] for each in proposed] == ["reassign", "reassign"]
        olga = {"resourceId": salon.resources[1]}
        choices = [choose(each["booking"], "reassign", **olga) for each in proposed]
        assert codes(arrange(salon, *choices)) == ["reassigned", "reassigned"]
        now = [booking_of(salon, each) for each in proposed]
        assert {each["resourceName"] for each in now} == {"Olga"}
        assert [each["startAt"][11:16] for each in now] == ["07:00", "08:00"]
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_service_that_somebody_has_changed_meanwhile_is_left(
        self, salon: Salon, colour: str
    ) -> None:
        first, second = self.book(salon, colour)
        salon.set_status(second["id"], "completed")
        salon.set_status(second["id"], "confirmed")
        olga = {"resourceId": salon.resources[1]}
        choices = [choose(each, "reassign", **olga) for each in (first, second)]
        assert codes(arrange(salon, *choices)) == ["reassigned", "version_conflict"]

    def test_one_cancellation_is_of_the_whole_visit(self, salon: Salon, colour: str) -> None:
        visit = self.book(salon, colour)
        shown = preview(salon)["bookings"]
        assert {each["booking"]["visitId"] for each in shown} == {visit[0]["id"]}
        done = arrange(salon, *(choose(each["booking"], "cancel") for each in shown))
        assert codes(done) == ["cancelled", "unchanged"]
        assert {booking_of(salon, each)["status"] for each in visit} == {"cancelled"}

    def test_nobody_whose_other_length_would_move_the_next_service_is_proposed(
        self, salon: Salon, colour: str
    ) -> None:
        visit = self.book(salon, colour)
        olga = salon.resources[1]
        own = [{"resourceId": olga, "durationMin": 90}]
        salon.api.post("/api/services/update", {"id": salon.service, "resourceOverrides": own})
        first, second = preview(salon)["bookings"]
        assert (first["sameTime"], first["otherTime"], first["proposal"]) == ([], None, "cancel")
        assert [each["id"] for each in second["sameTime"]] == [olga]
        done = arrange(salon, choose(visit[0], "reassign", resourceId=olga))
        assert done["bookings"][0]["outcome"]["reason"] == "does_not_fit"

        assert booking_of(salon, visit[1])["version"] == visit[1]["version"]
