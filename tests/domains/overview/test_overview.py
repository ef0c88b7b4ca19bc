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
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.engine.metrics import Increments
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.chat import read_events
from tests.factories.console import person
from tests.factories.examples import AGENT, FORM, submit, talk, top_up
from tests.factories.salon import CREATE, STATUS, Salon

NOTHING = {"leads": 0, "bookings": 0, "dialogs": 0, "visitors": 0}


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
        "leadsIncluded": 30_000,
        "leadsOverQuota": 0,
        "newLeads": 0,
        "bookingsToday": 0,
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
        assert overview["newLeads"] == 6

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


class TestBookings:
    def test_next_bookings_and_their_number_are_shown(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        starts = ("15T17:00", "16T09:00", "15T10:00", "21T17:00", "22T09:00", "29T09:00")
        booking_ids = {
            start: salon.book(f"2027-01-{start}", ignoreSchedule=True)["id"] for start in starts
        }
        overview = workspace.overview()
        assert overview["bookingsToday"] == 1
        coming = [starts[n] for n in (0, 1, 3, 4, 5)]
        listed_ids = [booking["id"] for booking in overview["nextBookings"]]
        assert listed_ids == [booking_ids[start] for start in coming]
        assert overview["nextBookings"][0] == {
            "id": booking_ids["15T17:00"],
            "status": "confirmed",
            "serviceName": "Haircut",
            "resourceName": "Stylist 0",
            "clientName": "Ada",
            "startAt": "2027-01-15T14:00:00.000Z",
            "startLocal": "2027-01-15T17:00:00+03:00",
            "timezone": "Europe/Moscow",
        }

    def test_at_most_five_bookings_are_shown(self, workspace: Workspace) -> None:
        salon = Salon.opened(workspace.api)
        for hour in range(9, 17):
            salon.book(f"2027-01-16T{hour:02}:00")
        overview = workspace.overview()
        assert len(overview["nextBookings"]) == 5
        assert overview["bookingsToday"] == 0

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
    assert (bare["total"], bare["newLeads"]) == (NOTHING, 0)
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
def test_a_busy_workspace_is_read_in_a_dozen_requests_and_few_units(
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
    with metering() as usage:
        overview = workspace.overview()
    totals_before = {"leads": 42, "bookings": 28, "dialogs": 28, "visitors": 28}
    assert overview["totalBefore"] == totals_before
    assert overview["total"] == totals_before | {"leads": 47, "bookings": 33, "dialogs": 31}
    lists = ("latestLeads", "nextBookings", "latestDialogs")
    assert [len(overview[list_name]) for list_name in lists] == [5, 5, 3]
    assert usage.round_trips <= 12, usage.calls
    if is_dynamodb_local:
        assert usage.units <= 30, usage.units
