"""The overview of a workspace with its events, bookings and totals."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.plans import LEADS_A_MONTH
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.overview.flows import waiting
from chalicelib.domains.payments.store import payments
from chalicelib.engine.metrics import Increments
from chalicelib.engine.unit import run_unit
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.chat import read_events
from tests.factories.console import person
from tests.factories.examples import AGENT, FORM, submit, talk, top_up
from tests.factories.payments import record_payments
from tests.factories.salon import CREATE, STATUS, Salon

NOTHING = {"leads": 0, "bookings": 0, "dialogs": 0, "visitors": 0}

NO_MONEY = {"revenue": 0, "taken": 0, "due": 0}


@dataclass
class Workspace:
    """A workspace, and the events that tests cause."""

    owner: Owner
    api: Api
    time: Time

    def overview(self, **caller: str) -> Any:
        caller = {"account_id": self.owner.workspace.owner_id, **caller}
        return call_console(self.owner.workspace.id, "get_overview", **caller)

    def today(self) -> Any:
        """Return today's numbers."""
        return self.overview()["days"][-1]["activity"]

    def create_form(self) -> str:
        form_id: str = self.api.post("/api/forms/create", FORM)["form"]["id"]
        return form_id

    def create_bot(self, **fields: Any) -> str:
        bot_id: str = self.api.post("/api/agents/create", AGENT | fields)["agent"]["id"]
        top_up(self.owner.workspace.owner_id, 100_000)
        return bot_id

    def create_site(self) -> tuple[str, str]:
        """Create a site with a page, and return their ids."""
        site = self.api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        body = {"projectId": site, "title": "Home"}
        return site, self.api.post("/api/pages/create", body)["page"]["id"]

    def visit(self, site: str, page: str, visitor: str) -> None:
        operation, seen = REGISTRY["record_hit"], {"projectId": site, "pageId": page}
        invoke(operation, VisitorPrincipal(visitor=visitor), lambda: seen, request_id=new_id())


@pytest.fixture
def workspace(new_owner: Callable[..., Owner], time: Time) -> Workspace:
    """A new workspace. In Moscow it is Friday, 15:00."""
    owner = new_owner()
    return Workspace(owner, owner.api(), time)


def test_a_new_workspace_shows_zeros(workspace: Workspace) -> None:
    overview = workspace.overview()
    days = [f"2027-01-{day:02}" for day in range(2, 16)]
    assert overview == {
        "timezone": "Europe/Moscow",
        "days": [{"date": day, "activity": NOTHING} for day in days],
        "total": NOTHING,
        "totalBefore": NOTHING,
        "funds": {"available": 0, "reserved": 0},
        "money": {"total": NO_MONEY, "totalBefore": NO_MONEY, "isComplete": True},
        "leadsIncluded": 30_000,
        "leadsOverQuota": 0,
        "waiting": {
            "newLeads": 0,
            "unpaidBookings": 0,
            "personRequests": [],
            "personRequestsTotal": 0,
            "failedRefunds": [],
            "failedRefundsTotal": 0,
        },
        "takesBookings": False,
        "today": "2027-01-15",
        "visits": [],
        "visitsTotal": 0,
        "latestLeads": [],
        "nextBookings": [],
        "latestDialogs": [],
    }


class TestTotals:
    def test_leads_bookings_dialogs_and_visitors_of_today_are_counted(
        self, workspace: Workspace
    ) -> None:
        form, bot = workspace.create_form(), workspace.create_bot()
        submit(form, name="Ada")
        submit(form, name="Bob")
        Salon.opened(workspace.api).book("2027-03-01T12:00")
        talk(bot, "Do you sell bread?")
        site, page = workspace.create_site()
        for visitor in ("a", "b", "a"):
            workspace.visit(site, page, visitor)
        assert workspace.today() == {"leads": 2, "bookings": 1, "dialogs": 1, "visitors": 2}

    def test_counts_include_all_sites_services_and_bots(self, workspace: Workspace) -> None:
        for number in range(2):
            talk(workspace.create_bot(), "Hi", ip=f"203.0.113.{number}")
            workspace.visit(*workspace.create_site(), visitor="a")
        salon, with_site = (
            Salon.opened(workspace.api),
            Salon.opened(workspace.api, siteId=workspace.create_site()[0]),
        )
        salon.book("2027-03-01T12:00")
        with_site.book("2027-03-01T12:00")
        assert workspace.today() == {"leads": 0, "bookings": 2, "dialogs": 2, "visitors": 2}

    def test_a_dialog_counts_once_whatever_its_length(self, workspace: Workspace) -> None:
        bot = workspace.create_bot()
        session = next(iter(read_events(talk(bot, "Hi").body)))["sessionId"]
        talk(bot, "And rolls?", sessionId=session)
        assert workspace.today()["dialogs"] == 1

    def test_tests_by_members_are_not_counted(self, workspace: Workspace) -> None:
        counts = Increments(workspace.owner.workspace.id)
        day = workspace.time.now.date()
        bot_metrics.count(counts, "bot", channel="test", day=day, measures={bot_metrics.DIALOGS: 1})
        counts.write()
        assert workspace.today() == NOTHING

    def test_two_weeks_are_compared_with_the_two_before(self, workspace: Workspace) -> None:
        form = workspace.create_form()
        for days, count in ((0, 1), (1, 2), (13, 3), (1, 4), (14, 5)):
            workspace.time.pass_by(days=days)
            for _ in range(count):
                submit(form, name=new_id())
        # Submitted on days -29, -28, -15, -14 and 0.
        overview = workspace.overview()
        assert [day["activity"]["leads"] for day in overview["days"]] == [0] * 13 + [5]
        assert (overview["total"]["leads"], overview["totalBefore"]["leads"]) == (5, 7)
        dates = [day["date"] for day in overview["days"]]
        assert (dates[0], dates[-1]) == ("2027-01-31", "2027-02-13")

    def test_days_are_in_the_workspaces_zone(self, workspace: Workspace) -> None:
        form = workspace.create_form()
        workspace.time.now = datetime(2027, 1, 15, 20, 59, tzinfo=UTC)
        submit(form, name="Ada")
        workspace.time.pass_by(minutes=1)
        assert workspace.today()["leads"] == 0
        assert workspace.overview()["days"][-2] == {
            "date": "2027-01-15",
            "activity": NOTHING | {"leads": 1},
        }

    def test_a_cancelled_booking_still_counts(self, workspace: Workspace) -> None:
        booking = Salon.opened(workspace.api).book("2027-03-01T12:00")
        workspace.api.post(STATUS, {"id": booking["id"], "status": "cancelled"})
        assert workspace.today()["bookings"] == 1


class TestLeads:
    def test_latest_leads_and_the_number_of_new_ones_are_shown(self, workspace: Workspace) -> None:
        form = workspace.create_form()
        ids = []
        for number in range(7):
            workspace.time.pass_by(minutes=1)
            ids.append(submit(form, name=f"N{number}", email=f"n{number}@example.com"))
        workspace.api.post("/api/forms/collection-status", {"id": ids[6], "status": "completed"})
        overview = workspace.overview()
        assert [lead["id"] for lead in overview["latestLeads"]] == ids[:1:-1]
        assert overview["latestLeads"][0] == {
            "id": ids[6],
            "status": "completed",
            "name": "N6",
            "email": "n6@example.com",
            "phone": None,
            "phoneEntered": None,
            "sourceName": "direct",
            "createdAt": "2027-01-15T12:07:00.000Z",
        }
        assert overview["waiting"]["newLeads"] == 6

    def test_the_console_shows_the_leads_beyond_the_plan_with_advice(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        form, path = workspace.create_form(), f"/console/w/{workspace.owner.workspace.slug}"
        submit(form, name="Ada")
        owner_session = person(workspace.owner)
        assert b"beyond the plan" not in owner_session.get(path, **{"Accept-Language": "en"}).body
        monkeypatch.setitem(LEADS_A_MONTH, "business", 0)
        submit(form, name="Bob")
        page = owner_session.get(path, **{"Accept-Language": "en"}).body.decode()
        assert (
            "Leads beyond the plan in the last four weeks: 1. The plan includes 0 in 30 days."
            in page
        )
        assert "upgrade the plan" in page


class TestVisits:
    def test_visits_of_today_are_shown_from_the_first_to_the_last(
        self, workspace: Workspace
    ) -> None:
        salon = Salon.opened(workspace.api)
        starts = ("15T17:00", "16T00:00", "15T10:00", "14T23:30", "14T22:30")
        ids = {start: salon.book(f"2027-01-{start}", ignoreSchedule=True)["id"] for start in starts}
        workspace.api.post(STATUS, {"id": ids["15T10:00"], "status": "completed"})
        overview = workspace.overview()
        # The visit that begins before midnight still runs, and the next day's begins at midnight.
        assert [visit["id"] for visit in overview["visits"]] == [
            ids[start] for start in ("14T23:30", "15T10:00", "15T17:00")
        ]
        assert overview["visitsTotal"] == 3
        assert [booking["id"] for booking in overview["nextBookings"]] == [ids["16T00:00"]]
        assert overview["visits"][2] == {
            "id": ids["15T17:00"],
            "status": "confirmed",
            "serviceName": "Haircut",
            "resourceName": "Stylist 0",
            "clientName": "Ada",
            "startAt": "2027-01-15T14:00:00.000Z",
            "endAt": "2027-01-15T15:00:00.000Z",
            "startLocal": "2027-01-15T17:00:00+03:00",
            "timezone": "Europe/Moscow",
            "isPaid": False,
        }

    def test_of_many_visits_those_that_are_not_over_are_shown(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api, [{"capacity": 10}])
        for hour in (10, 10, 10, 10, 10, 14, 14, 16, 16, 16, 16, 16, 16, 16):
            salon.book(f"2027-01-15T{hour}:00", ignoreSchedule=True)
        overview = workspace.overview()
        shown = [visit["startLocal"][11:13] for visit in overview["visits"]]
        # At 15:00, seven are over. Five of them fill the page.
        assert shown == ["10", "10", "10", "14", "14", *["16"] * 7]
        assert overview["visitsTotal"] == 14
        for _ in range(3):
            salon.book("2027-01-15T20:00", ignoreSchedule=True)
        workspace.time.pass_by(hours=1, minutes=30)
        assert [visit["startLocal"][11:13] for visit in workspace.overview()["visits"]] == [
            *("14", "14", *["16"] * 7, *["20"] * 3)
        ]

    def test_a_day_has_no_more_visits_after_midnight(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        booking = salon.book("2027-01-15T20:00", ignoreSchedule=True)["id"]
        workspace.time.now = datetime(2027, 1, 15, 20, 59, tzinfo=UTC)
        assert [visit["id"] for visit in workspace.overview()["visits"]] == [booking]
        workspace.time.pass_by(minutes=1)
        overview = workspace.overview()
        assert (overview["today"], overview["visits"]) == ("2027-01-16", [])

    def test_a_day_of_23_hours_has_its_visits(self, workspace: Workspace) -> None:
        call_console(workspace.owner.workspace.id, "set_workspace", timezone="Europe/Berlin")
        salon = Salon.opened(workspace.api)
        ids = [
            salon.book(f"2027-03-{start}", ignoreSchedule=True)["id"]
            for start in ("27T22:00", "28T00:00", "28T03:30", "28T23:00", "29T00:00")
        ]
        workspace.time.now = datetime(2027, 3, 27, 23, 0, tzinfo=UTC)  # midnight
        overview = workspace.overview()
        assert [visit["id"] for visit in overview["visits"]] == ids[1:4]
        assert [booking["id"] for booking in overview["nextBookings"]] == ids[4:]

    def test_an_expired_hold_is_no_visit(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api, requirePayment=True)
        salon.book("2027-01-15T17:00")
        assert workspace.overview()["visitsTotal"] == 1
        workspace.time.pass_by(hours=1)
        overview = workspace.overview()
        assert (overview["visits"], overview["visitsTotal"]) == ([], 0)

    def test_a_workspace_with_a_service_or_a_booking_takes_bookings(
        self, workspace: Workspace
    ) -> None:
        submit(workspace.create_form(), name="Ada")
        assert workspace.overview()["takesBookings"] is False
        Salon.opened(workspace.api)
        assert workspace.overview()["takesBookings"] is True


class TestWaiting:
    def test_unpaid_bookings_are_counted(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        for day in (20, 21):
            salon.book(f"2027-01-{day}T10:00", status="pending_payment")
        salon.book("2027-01-22T10:00")
        assert workspace.overview()["waiting"]["unpaidBookings"] == 2

    def request_person(self, workspace: Workspace, **attributes: Any) -> str:
        """Create a dialog in which the visitor has asked for a person, and return its id."""
        now = workspace.time.now
        values = {"agent_id": "bot", "channel": "widget", "last_message_at": now}
        values |= {"last_number": 2, "messages_count": 2, "words": "A cake", "handover_at": now}
        dialog = DIALOGS.new(workspace.owner.workspace.id, **values | attributes)
        run_unit(
            workspace.owner.workspace.id,
            AuditEvent("chat", "bot"),
            lambda unit: unit.create(dialog),
        )
        return str(dialog.id)

    def requests(self, workspace: Workspace) -> list[str]:
        """Return the dialogs of the overview in which a visitor waits for a person."""
        waiting = workspace.overview()["waiting"]
        assert waiting["personRequestsTotal"] >= len(waiting["personRequests"])
        return [dialog["id"] for dialog in waiting["personRequests"]]

    def test_a_request_for_a_person_waits_for_a_reply(self, workspace: Workspace) -> None:
        first = self.request_person(workspace)
        workspace.time.pass_by(minutes=1)
        second = self.request_person(workspace)
        self.request_person(workspace, channel="test")
        self.request_person(workspace, handover_at=None)
        assert self.requests(workspace) == [second, first]
        workspace.time.pass_by(minutes=1)
        home = workspace.owner.workspace.id
        call_console(home, "reply_to_visitor", id=first, text="We call you", key="1")
        assert self.requests(workspace) == [second]

    def test_a_request_waits_until_its_lead_is_processed(self, workspace: Workspace) -> None:
        lead = submit(workspace.create_form(), name="Ada")
        dialog = self.request_person(workspace, lead_id=lead)
        assert self.requests(workspace) == [dialog]
        workspace.api.post("/api/forms/collection-status", {"id": lead, "status": "in_progress"})
        assert self.requests(workspace) == []

    def test_of_many_requests_the_newest_and_the_number_are_shown(
        self, workspace: Workspace
    ) -> None:
        for _ in range(waiting.MAX_READ + 2):
            workspace.time.pass_by(minutes=1)
            newest = self.request_person(workspace)
        shown = workspace.overview()["waiting"]
        assert [len(shown["personRequests"]), shown["personRequestsTotal"]] == [5, 27]
        assert shown["personRequests"][0]["id"] == newest

    @pytest.mark.parametrize(("membership", "sees"), [("owner", 1), ("manager", 1), ("member", 0)])
    def test_a_failed_refund_waits_for_those_who_may_repeat_it(
        self, workspace: Workspace, membership: str, sees: int
    ) -> None:
        home, salon = workspace.owner.workspace, Salon.opened(workspace.api)
        booking = salon.book("2027-01-20T10:00")["id"]
        ids = record_payments(home.id, home.owner_id, booking)
        shown = workspace.overview(membership=membership)["waiting"]
        assert shown["failedRefundsTotal"] == sees
        assert [each["bookingId"] for each in shown["failedRefunds"]] == [booking] * sees
        call_console(home.id, "retry_refund", id=ids.payment, refundId=ids.refund)
        assert workspace.overview()["waiting"]["failedRefundsTotal"] == 0

    def test_a_refund_that_was_made_at_the_provider_waits_no_more(
        self, workspace: Workspace
    ) -> None:
        home, salon = workspace.owner.workspace, Salon.opened(workspace.api)
        ids = record_payments(home.id, home.owner_id, salon.book("2027-01-20T10:00")["id"])
        payment = payments.require(home.id, payment_id=ids.payment)
        run_unit(
            home.id,
            None,
            lambda unit: payments.stage_change(unit, payment, refunded_at_provider=50_000),
        )
        assert workspace.overview()["waiting"]["failedRefundsTotal"] == 0

    def test_an_old_request_waits_no_more(self, workspace: Workspace) -> None:
        self.request_person(workspace)
        workspace.time.pass_by(days=31)
        assert self.requests(workspace) == []


class TestNextBookings:
    def test_the_next_five_after_today_are_shown(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        starts = ("15T17:00", "16T09:00", "21T17:00", "22T09:00", "25T09:00", "29T09:00")
        ids = [salon.book(f"2027-01-{start}", ignoreSchedule=True)["id"] for start in starts]
        coming = workspace.overview()["nextBookings"]
        assert [booking["id"] for booking in coming] == ids[1:]

    def test_at_most_five_bookings_are_shown(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        for hour in range(9, 17):
            salon.book(f"2027-01-16T{hour:02}:00")
        assert len(workspace.overview()["nextBookings"]) == 5

    def test_cancelled_bookings_are_left_out(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        for start, status in (("16T09:00", "cancelled"), ("25T09:00", "cancelled")):
            booking = salon.book(f"2027-01-{start}")["id"]
            workspace.api.post(STATUS, {"id": booking, "status": status})
        overview = workspace.overview()
        assert overview["nextBookings"] == []

    def test_an_unpaid_hold_is_shown_while_it_lasts(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        workspace.api.post(CREATE, salon.order("2027-01-16T09:00", status="pending_payment"))
        assert [booking["status"] for booking in workspace.overview()["nextBookings"]] == [
            "pending_payment"
        ]


class TestDialogs:
    def test_the_last_five_dialogs_are_shown(self, workspace: Workspace) -> None:
        bot = workspace.create_bot()
        for number in range(6):
            workspace.time.pass_by(minutes=1)
            talk(bot, f"Do  you sell\nbread № {number}?", ip=f"203.0.113.{number}")
        dialogs = workspace.overview()["latestDialogs"]
        assert [dialog["preview"][-2:] for dialog in dialogs] == ["5?", "4?", "3?", "2?", "1?"]
        assert dialogs[0] | {"id": "d"} == {
            "id": "d",
            "agentId": bot,
            "channel": "api",
            "leadId": None,
            "messagesCount": 2,
            "preview": "Do you sell bread № 5?",
            "startedAt": "2027-01-15T12:06:00.000Z",
        }


class TestFunds:
    def test_the_owner_sees_the_funds(self, workspace: Workspace) -> None:
        top_up(workspace.owner.workspace.owner_id, 12_345)
        assert workspace.overview()["funds"] == {"available": 12_345, "reserved": 0}

    @pytest.mark.parametrize("membership", ["manager", "member"])
    def test_other_members_do_not_see_the_funds(
        self, workspace: Workspace, membership: str
    ) -> None:
        top_up("somebody", 12_345)
        assert workspace.overview(account_id="somebody", membership=membership)["funds"] is None


def test_another_workspaces_data_is_not_included(
    workspace: Workspace, new_owner: Callable[..., Owner]
) -> None:
    submit(workspace.create_form(), name="Ada")
    talk(workspace.create_bot(), "Hi")
    workspace.visit(*workspace.create_site(), visitor="a")
    Salon.opened(workspace.api).book("2027-01-16T09:00")
    elsewhere = new_owner()
    bare = Workspace(elsewhere, elsewhere.api(), workspace.time).overview()
    assert (bare["total"], bare["waiting"]["newLeads"]) == (NOTHING, 0)
    lists = ("latestLeads", "nextBookings", "latestDialogs")
    assert [bare[list_name] for list_name in lists] == [[], [], []]


def count_a_month(workspace: Workspace) -> None:
    """Count events on each of 28 days, without creating the records."""
    counts = Increments(workspace.owner.workspace.id)
    for number in range(28):
        day = workspace.time.now.date() - timedelta(number)
        for source in ("direct", "search.example", "mail"):
            counts.add(crm_metrics.subject(), day, {crm_metrics.CREATED: 1}, source=source)
        for measure in ("BOOKINGS", "DIALOGS", "VISITORS"):
            name = getattr(workspace_metrics, measure)
            counts.add(workspace_metrics.SUBJECT, day, {name: 2})
    counts.write()


@pytest.mark.store
def test_a_busy_workspace_is_read_in_few_requests_and_units(
    workspace: Workspace, is_dynamodb_local: bool
) -> None:
    count_a_month(workspace)
    form, bot, salon = workspace.create_form(), workspace.create_bot(), Salon.opened(workspace.api)
    workspace.create_site()
    for number in range(5):
        submit(form, name=f"N{number}", email=f"n{number}@example.com", message="bread " * 500)
        salon.book(f"2027-03-{number + 1:02}T09:00")
    for number in range(3):
        talk(bot, "Do you sell bread? " * 100, ip=f"203.0.113.{number}")
    workspace.overview()  # The first one counts all bookings.
    with metering() as usage:
        overview = workspace.overview()
    totals_before = {"leads": 42, "bookings": 28, "dialogs": 28, "visitors": 28}
    assert overview["totalBefore"] == totals_before
    assert overview["total"] == totals_before | {"leads": 47, "bookings": 33, "dialogs": 31}
    lists = ("latestLeads", "nextBookings", "latestDialogs")
    assert [len(overview[list_name]) for list_name in lists] == [5, 5, 3]
    assert usage.round_trips <= 16, usage.calls
    if is_dynamodb_local:
        assert usage.units <= 30, usage.units
