"""A workspace at a glance: what came in, what is next, and what there is, of nobody else."""

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
from infra.bench.dynamodb_usage import metering
from tests.conftest import Api, Owner, Time, in_console
from tests.factories.chat import read_events
from tests.factories.console import person
from tests.factories.examples import AGENT, FORM, submit, talk, top_up
from tests.factories.salon import CREATE, STATUS, Salon

pytestmark = pytest.mark.store

NOTHING = {"leads": 0, "bookings": 0, "dialogs": 0, "visitors": 0}


@dataclass
class Place:
    """A workspace, and what can happen in it."""

    owner: Owner
    api: Api
    time: Time

    def look(self, **who: str) -> Any:
        who = {"account_id": self.owner.workspace.owner_id, **who}
        return in_console(self.owner.workspace.id, "get_overview", **who)

    def today(self) -> Any:
        """Return what came in today."""
        return self.look()["days"][-1]["income"]

    def opens_a_form(self) -> str:
        made: str = self.api.post("/api/forms/create", FORM)["form"]["id"]
        return made

    def makes_a_bot(self, **fields: Any) -> str:
        made: str = self.api.post("/api/agents/create", AGENT | fields)["agent"]["id"]
        top_up(self.owner.workspace.owner_id, 100_000)
        return made

    def makes_a_site(self) -> tuple[str, str]:
        """Make a site with a page; return their ids."""
        site = self.api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        body = {"projectId": site, "title": "Home"}
        return site, self.api.post("/api/pages/create", body)["page"]["id"]

    def visits(self, site: str, page: str, visitor: str) -> None:
        operation, seen = REGISTRY["record_hit"], {"projectId": site, "pageId": page}
        invoke(operation, VisitorPrincipal(visitor=visitor), lambda: seen, request_id=new_id())


@pytest.fixture
def place(new_owner: Callable[..., Owner], time: Time) -> Place:
    """A new workspace, at three in the afternoon of a Friday in Moscow."""
    owner = new_owner()
    return Place(owner, owner.api(), time)


def test_a_new_workspace_shows_zeros(place: Place) -> None:
    shown = place.look()
    days = [f"2027-01-{day:02}" for day in range(2, 16)]
    assert shown == {
        "timezone": "Europe/Moscow",
        "days": [{"date": day, "income": NOTHING} for day in days],
        "total": NOTHING,
        "totalBefore": NOTHING,
        "funds": {"available": 0, "reserved": 0},
        "leadsIncluded": 30_000,
        "leadsOverQuota": 0,
        "newLeads": 0,
        "bookingsToday": 0,
        "bookingsWeek": 0,
        "activeSites": 0,
        "activeBots": 0,
        "latestLeads": [],
        "nextBookings": [],
        "latestDialogs": [],
    }


class TestIncome:
    def test_counts_leads_bookings_dialogs_and_visitors_of_today(self, place: Place) -> None:
        form, bot = place.opens_a_form(), place.makes_a_bot()
        submit(form, name="Ada")
        submit(form, name="Bob")
        Salon.opened(place.api).book("2027-03-01T12:00")
        talk(bot, "Do you sell bread?")
        site, page = place.makes_a_site()
        for visitor in ("a", "b", "a"):
            place.visits(site, page, visitor)
        assert place.today() == {"leads": 2, "bookings": 1, "dialogs": 1, "visitors": 2}

    def test_counts_over_all_sites_services_and_bots(self, place: Place) -> None:
        for number in range(2):
            talk(place.makes_a_bot(), "Hi", ip=f"203.0.113.{number}")
            place.visits(*place.makes_a_site(), visitor="a")
        salon, with_site = (
            Salon.opened(place.api),
            Salon.opened(place.api, siteId=place.makes_a_site()[0]),
        )
        salon.book("2027-03-01T12:00")
        with_site.book("2027-03-01T12:00")
        assert place.today() == {"leads": 0, "bookings": 2, "dialogs": 2, "visitors": 2}

    def test_counts_a_dialog_once_however_long_it_is(self, place: Place) -> None:
        bot = place.makes_a_bot()
        session = next(iter(read_events(talk(bot, "Hi").body)))["sessionId"]
        talk(bot, "And rolls?", sessionId=session)
        assert place.today()["dialogs"] == 1

    def test_leaves_out_what_ones_own_people_try(self, place: Place) -> None:
        counts = Increments(place.owner.workspace.id)
        day = place.time.now.date()
        bot_metrics.count(counts, "bot", "test", day, {bot_metrics.DIALOGS: 1})
        counts.write()
        assert place.today() == NOTHING

    def test_is_of_two_weeks_beside_the_two_before(self, place: Place) -> None:
        form = place.opens_a_form()
        for days, count in ((0, 1), (1, 2), (13, 3), (1, 4), (14, 5)):
            place.time.pass_by(days=days)
            for _ in range(count):
                submit(form, name=new_id())
        # Submitted on the days -29, -28, -15, -14 and 0.
        shown = place.look()
        assert [day["income"]["leads"] for day in shown["days"]] == [0] * 13 + [5]
        assert (shown["total"]["leads"], shown["totalBefore"]["leads"]) == (5, 7)
        assert (shown["days"][0]["date"], shown["days"][-1]["date"]) == ("2027-01-31", "2027-02-13")

    def test_is_of_days_in_the_workspaces_zone(self, place: Place) -> None:
        form = place.opens_a_form()
        place.time.now = datetime(2027, 1, 15, 20, 59, tzinfo=UTC)
        submit(form, name="Ada")
        place.time.pass_by(minutes=1)
        assert place.today()["leads"] == 0
        assert place.look()["days"][-2] == {"date": "2027-01-15", "income": NOTHING | {"leads": 1}}

    def test_keeps_a_booking_that_was_cancelled(self, place: Place) -> None:
        booking = Salon.opened(place.api).book("2027-03-01T12:00")
        place.api.post(STATUS, {"id": booking["id"], "status": "cancelled"})
        assert place.today()["bookings"] == 1


class TestLeads:
    def test_are_the_last_five_and_how_many_are_new(self, place: Place) -> None:
        form = place.opens_a_form()
        ids = []
        for number in range(7):
            place.time.pass_by(minutes=1)
            ids.append(submit(form, name=f"N{number}", email=f"n{number}@example.com"))
        place.api.post("/api/forms/collection-status", {"id": ids[6], "status": "completed"})
        shown = place.look()
        assert [lead["id"] for lead in shown["latestLeads"]] == ids[:1:-1]
        assert shown["latestLeads"][0] == {
            "id": ids[6],
            "status": "completed",
            "name": "N6",
            "email": "n6@example.com",
            "phone": None,
            "sourceName": "direct",
            "createdAt": "2027-01-15T12:07:00.000Z",
        }
        assert shown["newLeads"] == 6

    def test_the_console_says_how_many_came_beyond_the_plan_and_what_to_do(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        form, path = place.opens_a_form(), f"/console/w/{place.owner.workspace.slug}"
        submit(form, name="Ada")
        boss = person(place.owner)
        assert b"beyond the plan" not in boss.get(path, **{"Accept-Language": "en"}).body
        monkeypatch.setitem(LEADS_A_MONTH, "business", 0)
        submit(form, name="Bob")
        page = boss.get(path, **{"Accept-Language": "en"}).body.decode()
        assert "Leads beyond the plan in the last four weeks: 1; it includes 0 in 30 days." in page
        assert "upgrade the plan" in page


class TestBookings:
    def test_are_the_next_ones_and_how_many_come_soon(self, place: Place) -> None:
        salon = Salon.opened(place.api)
        starts = ("15T17:00", "16T09:00", "15T10:00", "21T17:00", "22T09:00", "29T09:00")
        made = {each: salon.book(f"2027-01-{each}", ignoreSchedule=True)["id"] for each in starts}
        shown = place.look()
        assert (shown["bookingsToday"], shown["bookingsWeek"]) == (1, 3)
        coming = [starts[n] for n in (0, 1, 3, 4, 5)]
        assert [booking["id"] for booking in shown["nextBookings"]] == [made[e] for e in coming]
        assert shown["nextBookings"][0] == {
            "id": made["15T17:00"],
            "status": "confirmed",
            "serviceName": "Haircut",
            "resourceName": "Master 0",
            "clientName": "Ada",
            "startAt": "2027-01-15T14:00:00.000Z",
            "startLocal": "2027-01-15T17:00:00+03:00",
            "timezone": "Europe/Moscow",
        }

    def test_are_five_at_most(self, place: Place) -> None:
        salon = Salon.opened(place.api)
        for hour in range(9, 17):
            salon.book(f"2027-01-16T{hour:02}:00")
        shown = place.look()
        assert len(shown["nextBookings"]) == 5
        assert (shown["bookingsToday"], shown["bookingsWeek"]) == (0, 8)

    def test_leave_out_what_does_not_take_place(self, place: Place) -> None:
        salon = Salon.opened(place.api)
        for start, status in (("16T09:00", "cancelled"), ("25T09:00", "cancelled")):
            booking = salon.book(f"2027-01-{start}")["id"]
            place.api.post(STATUS, {"id": booking, "status": status})
        shown = place.look()
        assert (shown["bookingsWeek"], shown["nextBookings"]) == (0, [])

    def test_show_an_unpaid_hold_while_it_lasts(self, place: Place) -> None:
        salon = Salon.opened(place.api)
        place.api.post(CREATE, salon.order("2027-01-16T09:00", status="pending_payment"))
        assert [each["status"] for each in place.look()["nextBookings"]] == ["pending_payment"]


class TestBotsAndSites:
    def test_count_those_that_are_there_for_visitors(self, place: Place) -> None:
        place.makes_a_bot()
        switched = place.makes_a_bot()
        place.makes_a_bot(isActive=False)
        sites = [place.makes_a_site()[0] for _ in range(3)]
        place.api.post("/api/projects/update", {"id": sites[0], "status": "inactive"})
        place.api.post("/api/projects/delete", {"id": sites[1]})
        shown = place.look()
        assert (shown["activeBots"], shown["activeSites"]) == (2, 1)
        place.api.call("PUT", f"/api/agents/{switched}", {"isActive": False})
        assert place.look()["activeBots"] == 1

    def test_show_the_last_five_dialogs(self, place: Place) -> None:
        bot = place.makes_a_bot()
        for number in range(6):
            place.time.pass_by(minutes=1)
            talk(bot, f"Do  you sell\nbread № {number}?", ip=f"203.0.113.{number}")
        shown = place.look()["latestDialogs"]
        assert [each["preview"][-2:] for each in shown] == ["5?", "4?", "3?", "2?", "1?"]
        assert shown[0] | {"id": "d"} == {
            "id": "d",
            "agentId": bot,
            "channel": "api",
            "leadId": None,
            "messagesCount": 2,
            "preview": "Do you sell bread № 5?",
            "startedAt": "2027-01-15T12:06:00.000Z",
        }


class TestFunds:
    def test_are_the_owners_to_see(self, place: Place) -> None:
        top_up(place.owner.workspace.owner_id, 12_345)
        assert place.look()["funds"] == {"available": 12_345, "reserved": 0}

    @pytest.mark.parametrize("membership", ["manager", "member"])
    def test_are_nobody_elses(self, place: Place, membership: str) -> None:
        top_up("somebody", 12_345)
        assert place.look(account_id="somebody", membership=membership)["funds"] is None


def test_nothing_of_another_workspace_is_in_it(
    place: Place, new_owner: Callable[..., Owner]
) -> None:
    submit(place.opens_a_form(), name="Ada")
    talk(place.makes_a_bot(), "Hi")
    place.visits(*place.makes_a_site(), visitor="a")
    Salon.opened(place.api).book("2027-01-16T09:00")
    elsewhere = new_owner()
    bare = Place(elsewhere, elsewhere.api(), place.time).look()
    assert (bare["total"], bare["newLeads"], bare["bookingsWeek"]) == (NOTHING, 0, 0)
    assert (bare["activeBots"], bare["activeSites"]) == (0, 0)
    lists = ("latestLeads", "nextBookings", "latestDialogs")
    assert [bare[each] for each in lists] == [[], [], []]


def count_a_month(place: Place) -> None:
    """Count what comes in on each of 28 days, without the things themselves."""
    counts = Increments(place.owner.workspace.id)
    for number in range(28):
        day = place.time.now.date() - timedelta(number)
        for source in ("direct", "search.example", "mail"):
            counts.add(crm_metrics.subject(), day, {crm_metrics.CREATED: 1}, source=source)
        for measure in ("BOOKINGS", "DIALOGS", "VISITORS"):
            name = getattr(workspace_metrics, measure)
            counts.add(workspace_metrics.SUBJECT, day, {name: 2})
    counts.write()


def test_a_dozen_requests_and_few_units_show_a_busy_workspace(
    place: Place, on_dynamodb_local: bool
) -> None:
    count_a_month(place)
    form, bot, salon = place.opens_a_form(), place.makes_a_bot(), Salon.opened(place.api)
    place.makes_a_site()
    for number in range(5):
        submit(form, name=f"N{number}", email=f"n{number}@example.com", message="bread " * 500)
        salon.book(f"2027-03-{number + 1:02}T09:00")
    for number in range(3):
        talk(bot, "Do you sell bread? " * 100, ip=f"203.0.113.{number}")
    with metering() as usage:
        shown = place.look()
    before = {"leads": 42, "bookings": 28, "dialogs": 28, "visitors": 28}
    assert shown["totalBefore"] == before
    assert shown["total"] == before | {"leads": 47, "bookings": 33, "dialogs": 31}
    lists = ("latestLeads", "nextBookings", "latestDialogs")
    assert [len(shown[each]) for each in lists] == [5, 5, 3]
    assert usage.round_trips <= 12, usage.calls
    if on_dynamodb_local:
        assert usage.units <= 30, usage.units
