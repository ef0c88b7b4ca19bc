"""Reports equal a recount of all bookings, payments, notes and dialogs, whatever happened."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chalicelib.core.errors import AppError
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.identity.store import workspaces
from tests.conftest import Api, call_operator
from tests.domains.payments.checkout import Checkout
from tests.domains.reports.recount import figures_of, recount
from tests.factories.chat import read_events
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import AGENT, talk, top_up
from tests.factories.salon import DAILY, Salon, bookings_of

# The clock changes on 28 March in Berlin, on 14 March in New York, and never in Kolkata.
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")
STEPS, STEPS_EACH = 45, 5
FIRST = datetime(2027, 3, 10, 21, 0, tzinfo=UTC)
LONG = (date(2027, 2, 20), date(2027, 4, 20))
PLACED = ("confirmed", "completed", "no_show")
ENDED = ("cancelled", "completed", "no_show")
CLIENTS = ("Ada", "Bob", "Cleo", "Dan")


@dataclass
class Workday:
    """Random changes of a salon's bookings and money, through the API and the console."""

    random: Random
    checkout: Checkout
    api: Api
    services: list[str]
    resources: list[str]
    course: Salon
    # The checks choose by numbers of their own, so they change nothing of what is done.
    checks: Random
    bot: str
    # Local days on which dialogs began. Another zone leaves them where they were counted.
    dialogs: list[date] = field(default_factory=list)

    @property
    def rows(self) -> list[BookingRow]:
        return bookings_of(self.checkout.workspace)

    def one(self, *statuses: str) -> BookingRow | None:
        rows = [row for row in self.rows if not statuses or row.status in statuses]
        return self.random.choice(rows) if rows else None

    def upcoming(self) -> datetime:
        begin = self.checkout.time.now + timedelta(days=self.random.randrange(1, 9))
        return begin.replace(hour=self.random.randrange(9, 16), minute=0)

    def start(self) -> str:
        # On whole minutes, also around midnight and in the hours of a clock change.
        minutes = self.random.choice([0, 30, 60 * 22, 60 * 23 + 30, self.random.randrange(1440)])
        day = FIRST.replace(hour=0) + timedelta(days=self.random.randrange(-12, 22))
        return (day + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")

    def book(self) -> None:
        body = {
            "serviceId": self.random.choice(self.services),
            "startAt": self.start(),
            "resourceId": self.random.choice(self.resources),
            "client": {"name": (name := self.random.choice(CLIENTS)), "email": f"{name}@b.example"},
            "ignoreSchedule": True,
            "status": "confirmed",
        }
        if self.random.random() < 0.4:
            body["andThen"] = [self.random.choice(self.services)]
        if self.random.random() < 0.3:
            with suppress(AppError):
                self.checkout.console("create_booking", **body)
        else:
            self.api.call("POST", "/api/bookings/create", body)

    def hold_and_pay(self) -> None:
        with suppress(AppError, AssertionError):
            path = self.checkout.hold(f"{self.upcoming():%Y-%m-%dT%H:%M}")
            self.checkout.click(path)
            if self.random.random() < 0.8:
                self.checkout.shop.pay()
                if self.random.random() < 0.3:
                    self.checkout.cancel()
                self.checkout.hook()

    def hold_class(self) -> None:
        """Sell places of a class, and sometimes remove its date with all bookings."""
        start = {"serviceId": self.course.service, "startAt": f"{self.upcoming():%Y-%m-%dT%H:%M}"}
        self.api.call("POST", "/api/services/starts", start)
        for name in self.random.sample(CLIENTS, 3):
            self.course.try_to_book(start["startAt"], name)
        if self.random.random() < 0.4:
            body = {**start, "cancelBookings": True}
            self.api.call("POST", "/api/services/remove-starts", body)

    def be_absent(self) -> None:
        """Do for each booking of a day what the service proposes."""
        path, now = "/api/resources/arrange-absence", self.checkout.time.now
        rows = [row for row in self.rows if row.status == "confirmed" and row.starts_at > now]
        if not rows:
            return
        row = self.random.choice(rows)
        day = f"{row.starts_at:%Y-%m-%d}"
        # Without time off, the day is sold further.
        body = {"resourceId": row.resource_id, "startAt": day, "timeOff": False}
        preview = self.api.call("POST", path, {**body, "dryRun": True})
        if preview.status != HTTPStatus.OK:
            return  # The day has passed.
        choices = [
            {"id": each["id"], "ifVersion": each["booking"]["version"], **self.choice(each)}
            for each in preview.data["bookings"]
        ]
        if choices:
            self.api.post(path, {**body, "bookings": choices})

    def choice(self, affected: Any) -> dict[str, Any]:
        """Return what is done with a booking of somebody who is absent."""
        if affected["proposal"] == "reassign":
            return {"action": "reassign", "resourceId": affected["sameTime"][0]["id"]}
        if affected["proposal"] == "move":
            other = affected["otherTime"]
            return {
                "action": "move",
                "startAt": other["startAt"],
                "resourceId": other["resourceId"],
            }
        return {"action": "cancel"}

    def set_status(self) -> None:
        if row := self.one():
            status = self.random.choice(["confirmed", "completed", "no_show", "cancelled"])
            whole = {"wholeVisit": True} if self.random.random() < 0.3 else {}
            self.api.call(
                "POST", "/api/bookings/set-status", {"id": row.id, "status": status, **whole}
            )

    def move(self) -> None:
        if row := self.one("confirmed"):
            body = {"id": row.id, "startAt": self.start(), "ignoreSchedule": True}
            if self.random.random() < 0.5:
                body["resourceId"] = self.random.choice(self.resources)
            self.api.call("POST", "/api/bookings/reschedule", body)

    def note(self) -> None:
        if row := self.one("confirmed", "completed"):
            method = self.random.choice(["cash", "cash", "terminal", "withdrawn"])
            amount = {"amount": 50_000} if self.random.random() < 0.5 else {}
            with suppress(AppError):
                self.checkout.console(
                    "note_visit_payment", bookingId=row.id, method=method, **amount
                )

    def refund(self) -> None:
        self.checkout.shop.refund_status = self.random.choice(["done", "failed", "pending"])
        if paid := [row for row in self.checkout.payments if row.paid_at]:
            with suppress(AppError):
                self.checkout.console(
                    "refund_payment", id=self.random.choice(paid).id, amount=10_000
                )
        self.checkout.run_after(minutes=self.random.choice([0, 1, 90]))

    def refund_at_provider(self) -> None:
        if paid := [each for each in self.checkout.shop.payments.items() if each[1].paid_at]:
            provider_id, payment = self.random.choice(paid)
            if self.random.random() < 0.5:
                payment.elsewhere = 20_000
            else:
                payment.disputed = payment.amount
            self.checkout.hook(provider_id)

    def reprice(self) -> None:
        price = self.random.choice([0, 90_000, 200_000])
        with suppress(AppError):
            self.checkout.console(
                "update_service", id=self.random.choice(self.services[1:]), price=price
            )

    def erase(self) -> None:
        if (row := self.one()) and row.client_email:
            workspace = self.checkout.workspace
            call_operator("erase_client", workspaceId=workspace, email=row.client_email)
            run_until_idle()

    def change_zone(self) -> None:
        zone = self.random.choice(ZONES)
        self.checkout.console("set_workspace", timezone=zone)

    def wait(self) -> None:
        self.checkout.run_after(hours=self.random.choice([0.02, 0.1, 1, 7, 40]))

    def talk(self) -> None:
        """Begin a dialog with the bot, in which two messages are sent."""
        zone = ZoneInfo(workspaces.get(self.checkout.workspace).timezone)
        self.dialogs.append(self.checkout.time.now.astimezone(zone).date())
        session = next(iter(read_events(talk(self.bot, "Hi").body)))["sessionId"]
        talk(self.bot, "And on Sunday?", sessionId=session)

    def set_each_status(self) -> None:
        """Set the statuses that chance may have left out."""
        ended = set[str]()
        for status in ENDED:  # A cancellation is of a whole visit, so it is first.
            rows = [row for row in self.rows if row.status in PLACED and row.id not in ended]
            row = self.random.choice([row for row in rows if row.starts_at.year == FIRST.year])
            self.api.post("/api/bookings/set-status", {"id": row.id, "status": status})
            ended.add(row.id)

    def step(self) -> str:
        choices: list[tuple[Callable[[], None], int]] = [
            *((self.book, 6), (self.hold_and_pay, 3), (self.set_status, 5), (self.move, 5)),
            *((self.note, 4), (self.refund, 2), (self.refund_at_provider, 1), (self.reprice, 1)),
            *((self.erase, 1), (self.change_zone, 1), (self.wait, 3)),
            *((self.hold_class, 2), (self.be_absent, 2), (self.talk, 2)),
        ]
        steps, weights = zip(*choices, strict=True)
        chosen = self.random.choices(steps, weights)[0]
        chosen()
        name: str = chosen.__name__
        return name

    def check(self, steps: list[str]) -> None:
        periods = [LONG]
        if rows := self.rows:
            # A single day shows a booking that is counted on the day before.
            row = self.checks.choice(rows)
            zone = ZoneInfo(workspaces.get(self.checkout.workspace).timezone)
            day = row.starts_at.astimezone(zone).date()
            periods.append((day, day))
        for first, last in periods:
            period = {"from": str(first), "to": str(last)}
            read = self.checkout.console("get_money_report", **period)
            assert read["report"]["isComplete"], steps
            # A program reads the same figures without the money.
            by_key = self.api.get(f"/api/reports?from={first}&to={last}")
            assert {**read["report"], "asOf": by_key["asOf"], "status": True} == by_key
            expected = recount(self.checkout.workspace, first, last)
            dialogs = sum(first <= day <= last for day in self.dialogs)
            expected["totals"] |= {"dialogs": dialogs} if dialogs else {}
            shown = figures_of(read)
            differing = {
                name: (shown[part].get(name), number)
                for part in expected
                for name, number in expected[part].items()
                if shown[part].get(name) != number
            }
            assert shown == expected, (first, steps, differing)


@pytest.fixture
def workday(checkout: Checkout, api: Api) -> Workday:
    checkout.time.now = FIRST
    salon = checkout.salon
    other = api.post("/api/resources/create", {"name": "Eve"})["resource"]["id"]
    salon.set_hours(api, other, DAILY)
    services = [salon.service]
    for name, minutes in (("Colour", 90), ("Beard", 30)):
        body = {
            "name": name,
            "durationMin": minutes,
            "price": 70_000,
            "resourceIds": [salon.resource, other],
            "resourceOverrides": [{"resourceId": other, "price": 80_000}],
        }
        services.append(api.post("/api/services/create", body)["service"]["id"])
    # A class on dates, with three places.
    teacher = {"name": "Finn", "capacity": 3}
    course = Salon.opened(api, [teacher], name="Yoga", price=40_000, fixedStarts=True)
    resources = [salon.resource, other]
    top_up(checkout.owner.workspace.owner_id, 10**9)
    bot = api.post("/api/agents/create", AGENT)["agent"]["id"]
    return Workday(Random(), checkout, api, services, resources, course, Random(0), bot)


@pytest.mark.parametrize("seed", range(4))
def test_reports_equal_a_recount_after_any_changes(workday: Workday, seed: int) -> None:
    workday.random = Random(seed)
    workday.checkout.console("set_workspace", timezone=ZONES[seed % len(ZONES)])
    steps: list[str] = []
    for number in range(STEPS):
        steps.append(workday.step())
        if number % STEPS_EACH == 0:
            workday.check(steps)
    workday.set_each_status()
    workday.check([*steps, "set_each_status"])
    # Changes that book nothing would show nothing.
    assert {row.status for row in workday.rows} >= {*ENDED}
