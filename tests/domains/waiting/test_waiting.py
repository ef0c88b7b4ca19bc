"""Waiting lists: who is offered a free time, for how long, and who is told (ADR 142)."""

from datetime import datetime

import pytest

from chalicelib.engine import jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.domains.notifications.clients import mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.domains.waiting.helpers import (
    AN_HOUR,
    DAY,
    PATH,
    PUBLIC,
    TEN,
    Line,
    email_of,
    run,
    visitor,
)
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def line(api: Api, time: Time) -> Line:
    return Line.of_full_day(api)


def subjects(inbox: Inbox, name: str) -> list[str]:
    return [str(each["Subject"]).partition(":")[0] for each in mails_to(inbox, email_of(name))]


class TestOffers:
    def test_a_cancelled_time_is_offered_to_the_first_for_two_hours_and_then_to_the_next(
        self, line: Line, time: Time
    ) -> None:
        for name in ("Ada", "Grace", "Joan"):
            line.add(name)
        run(time, minutes=1)
        assert line.offered_to is None
        line.cancel()
        run(time, minutes=1)
        assert line.offered_to == "Ada"
        run(time, minutes=119)
        assert line.offered_to == "Ada"
        run(time, minutes=1)
        assert (line.offered_to, line.names) == ("Grace", ["Grace", "Joan"])
        run(time, hours=2)
        assert (line.offered_to, line.names) == ("Joan", ["Joan"])
        run(time, hours=2)
        assert line.names == []

    def test_an_offer_takes_half_of_what_is_left_until_the_start(
        self, line: Line, time: Time
    ) -> None:
        line.add("Ada")
        run(time)
        time.now = datetime.fromisoformat("2027-01-18T06:00:00Z")  # The time is at 07:00 UTC.
        line.cancel()
        run(time)
        (ada,) = line.waiting
        assert ada["offeredUntil"] == "2027-01-18T06:30:00.000Z"

    def test_who_books_leaves_and_the_others_keep_their_places(
        self, line: Line, time: Time
    ) -> None:
        line.add("Ada")
        line.add("Grace")
        run(time)
        line.cancel()
        run(time)
        line.book("Ada")
        run(time)
        assert (line.names, line.offered_to) == (["Grace"], None)
        run(time, hours=3)
        assert line.names == ["Grace"]

    def test_a_time_that_another_client_takes_leaves_the_place_as_it_was(
        self, line: Line, time: Time
    ) -> None:
        line.add("Ada")
        line.add("Grace")
        run(time)
        line.cancel()
        run(time)
        line.book("Somebody")
        run(time, hours=2)
        assert (line.names, line.offered_to) == (["Ada", "Grace"], None)
        line.cancel()
        run(time)
        assert line.offered_to == "Ada"

    def test_who_leaves_passes_the_offer_to_the_next(self, line: Line, time: Time) -> None:
        ada = line.add("Ada")
        line.add("Grace")
        run(time)
        line.cancel()
        run(time)
        assert line.offered_to == "Ada"
        assert line.remove(ada)
        run(time)
        assert line.offered_to == "Grace"

    def test_a_time_for_another_member_of_the_staff_passes_over_nobody(
        self, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{}, {}], [{"weekday": "mon", "start": "10:00", "end": "11:00"}])
        first, second = salon.resources
        line = Line(salon)
        taken = salon.book(TEN, "First", resourceId=first)
        salon.book(TEN, "Second", resourceId=second)
        line.add("Ada", resourceId=second)
        line.add("Grace")
        run(time)
        salon.set_status(taken["id"], "cancelled")
        run(time)
        assert (line.offered_to, line.names) == ("Grace", ["Ada", "Grace"])

    def test_longer_hours_are_found_within_an_hour(self, line: Line, time: Time) -> None:
        line.add("Ada")
        run(time)
        longer = [{"weekday": "mon", "start": "10:00", "end": "12:00"}]
        Salon.set_hours(line.salon.api, line.salon.resource, longer)
        run(time, minutes=59)
        assert line.offered_to is None
        run(time, minutes=1)
        assert line.offered_to == "Ada"

    def test_a_time_that_became_free_before_the_first_job_ran_is_offered(
        self, line: Line, time: Time
    ) -> None:
        line.add("Ada")
        line.cancel()
        run(time)
        assert line.offered_to == "Ada"

    def test_a_hold_that_ends_frees_a_time(self, api: Api, owner: Owner, time: Time) -> None:
        line = Line(Salon.opened(api, rules=AN_HOUR, requirePayment=True))
        line.book("Unpaid")
        line.add("Ada")
        run(time)
        run(time, minutes=31)
        run(time, minutes=1)
        assert line.offered_to == "Ada"

    def test_the_line_ends_with_its_day(self, line: Line, time: Time) -> None:
        line.add("Ada")
        run(time)
        time.now = datetime.fromisoformat("2027-01-18T21:00:00Z")  # midnight in Moscow
        run(time)
        assert line.waiting == []

    def test_nothing_is_offered_that_begins_within_minutes(self, line: Line, time: Time) -> None:
        line.add("Ada")
        run(time)
        time.now = datetime.fromisoformat("2027-01-18T06:51:00Z")
        line.cancel()
        run(time)
        assert (line.names, line.offered_to) == (["Ada"], None)


class TestJoining:
    def test_a_visitor_waits_once_and_learns_of_nobody(self, line: Line, time: Time) -> None:
        token = line.joined("Ada")
        again = line.joined("Ada")
        assert line.names == ["Ada"]
        assert token != again
        left = visitor.post(f"{PUBLIC}/leave", {"token": again})
        assert (left["left"], line.names) == (False, ["Ada"])
        assert visitor.post(f"{PUBLIC}/leave", {"token": token})["left"]
        assert line.names == []
        assert visitor.post(f"{PUBLIC}/leave", {"token": token})["left"] is False

    def test_who_is_added_twice_keeps_the_place(self, line: Line) -> None:
        ada = line.add("Ada")
        line.add("Grace")
        assert line.add("Ada") == ada
        assert line.names == ["Ada", "Grace"]

    def test_a_day_with_free_times_is_refused(self, api: Api, time: Time) -> None:
        line = Line(Salon.opened(api))
        refused = line.join("Ada")
        assert (refused.status, refused.data["code"]) == (409, "not_awaited")
        assert refused.data["key"] == "times_free"

    @pytest.mark.parametrize("day", ["2027-01-14", "2029-01-18"])
    def test_a_day_that_cannot_have_times_is_refused(self, line: Line, day: str) -> None:
        refused = Line(line.salon, day).join("Ada")
        assert (refused.status, refused.data["key"]) == (409, "day_closed")

    def test_a_line_has_room_for_thirty(self, line: Line) -> None:
        for number in range(30):
            line.add(f"Client{number}")
        refused = line.join("Ada")
        assert (refused.status, refused.data["key"]) == (409, "line_full")

    def test_another_persons_token_is_not_valid(self, line: Line) -> None:
        token = line.joined("Ada")
        forged = token[:-4] + ("aaaa" if token[-4:] != "aaaa" else "bbbb")
        assert visitor.call("POST", f"{PUBLIC}/leave", {"token": forged}).status == 404

    def test_ten_entries_a_day_are_a_visitors_share(
        self, line: Line, monkeypatch: pytest.MonkeyPatch, reload_settings: object
    ) -> None:
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()  # type: ignore[operator]
        statuses = [line.join(f"Client{number}").status for number in range(11)]
        assert statuses == [200] * 10 + [429]


class TestMessages:
    def test_a_visitor_is_told_of_waiting_and_of_the_offer(
        self, line: Line, inbox: Inbox, time: Time
    ) -> None:
        token = line.joined("Zoe", language="en")
        run(time)
        assert subjects(inbox, "Zoe") == ["You are on the waiting list"]
        line.cancel()
        run(time)
        (offer,) = (each for each in mails_to(inbox, email_of("Zoe")) if "free" in each["Subject"])
        text = text_of(offer)
        assert "it is not held" in text
        assert f"/booking/waiting/{token}" in text.replace("=\n", "")
        assert line.waiting[0]["told"] == "sent"

    def test_an_offer_that_has_ended_is_not_sent(
        self, line: Line, inbox: Inbox, time: Time
    ) -> None:
        line.add("Zoe")
        run(time)
        line.cancel()
        time.pass_by(minutes=1)
        run_jobs()
        assert line.offered_to == "Zoe"
        run(time, hours=2)
        assert len(subjects(inbox, "Zoe")) == 1

    def test_a_client_whom_no_channel_reaches_is_shown_as_untold(
        self, line: Line, time: Time
    ) -> None:
        phone = {"name": "Zoe", "phone": "8 916 123-45-67"}
        line.salon.api.post(PATH, line.body("Zoe") | {"client": phone})
        run(time)
        assert line.waiting[0]["told"] == "none"


def test_a_day_that_nobody_waits_for_makes_no_job(line: Line, owner: Owner) -> None:
    line.cancel()
    kinds = {job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)}
    assert not kinds & {"waiting-days", "waiting-line"}


def test_the_list_is_of_a_day_and_a_service(line: Line) -> None:
    line.add("Ada")
    api = line.salon.api
    assert [each["day"] for each in api.get(f"{PATH}?day={DAY}")["waiting"]] == [DAY]
    assert api.get(f"{PATH}?day=2027-01-19")["waiting"] == []
    other = Salon.opened(api).service
    assert api.get(f"{PATH}?serviceId={other}")["waiting"] == []


def test_an_erased_client_waits_no_more_and_the_next_moves_up(line: Line) -> None:
    line.joined("Zoe")
    line.add("Grace")
    line.salon.api.post("/api/clients/delete", {"email": email_of("Zoe")})
    assert [(each["name"], each["position"]) for each in line.waiting] == [("Grace", 1)]
