"""Scenarios of the simulation, and the checks at their end.

A scenario is a workspace that was made beforehand, and the clients of one seed. ``check`` compares
the responses that clients received with the stored records.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from pynamodb.attributes import NumberAttribute

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import JobKind, Queue
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import PLATFORM, VisitorPrincipal
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.chat.flows import exchange
from chalicelib.domains.chat.flows.exchange import Ending
from chalicelib.domains.chat.store import messages
from chalicelib.domains.chat.store.messages import Ended
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.services.store import dated_starts
from chalicelib.domains.sites.flows.page_objects import HTML_TYPE
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.domains.waiting.rules.job_kinds import TELL_WAITING
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing import counters
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import payments as gateway
from chalicelib.gateways.object_store import object_store
from chalicelib.gateways.payments import Account, Merchant, PaymentStatus, UnknownOutcomeError
from chalicelib.gateways.post import PostReply
from chalicelib.gateways.public_http import UpstreamError
from chalicelib.lib.spans import Span
from tests.conftest import Answer, Api, Owner, call_console, call_operator
from tests.domains.billing import books
from tests.domains.billing.books import check_prefixes
from tests.factories.examples import submit
from tests.factories.salon import CREATE, STATUS, Salon, bookings_of, check_calendars
from tests.fakes.payment_shop import FakePayment, FakeProvider, FakeShop
from tests.simulation.schedule import Process
from tests.simulation.simulation import Simulation

UPDATE = "/api/services/update"
ADD_DATES, REMOVE_DATES = "/api/services/starts", "/api/services/remove-starts"
CLIENTS = 4
CANCELS = 0.3
"""Share of payments whose booking is cancelled before the money arrives."""
ERASES = 0.15
"""Share of payments whose client is erased before the money arrives."""
FAILS = 0.2
"""Share of the model's answers that fail."""


class Scenario(ABC):
    """The clients of one seed, and the responses that they received."""

    PROMISE: ClassVar[str]
    """What ``check`` checks, for the report."""

    def __init__(self, owner: Owner, api: Api) -> None:
        """Make what the clients will use. It runs once, without faults."""
        self.owner, self.api = owner, api
        self.prepare()

    def prepare(self) -> None:  # noqa: B027  some scenarios need nothing
        """Make what the clients will use, if anything."""

    def begin(self, simulation: Simulation) -> None:
        """Add the clients."""
        self.answers: dict[str, Answer | None] = {}
        for number in range(CLIENTS):
            simulation.client(partial(self.act, simulation, number))

    @abstractmethod
    def act(self, simulation: Simulation, number: int) -> None:
        """Act as a client."""

    @abstractmethod
    def check(self) -> None:
        """Check what must hold when all clients and jobs have ended."""

    @property
    def workspace(self) -> str:
        """The workspace's id."""
        return self.owner.workspace.id


class Booking(Scenario):
    """Clients book, cancel and move, and often want the same time."""

    PROMISE = "A time is sold once. Every acknowledged booking, move and cancellation is stored."
    TIMES = ("2027-01-18T10:00", "2027-01-18T10:30", "2027-01-18T11:00")

    def prepare(self) -> None:
        self.salon = Salon.opened(self.api, [{}, {}])

    def act(self, simulation: Simulation, number: int) -> None:
        pick, name = simulation.random.choice, f"Client {number}"
        order = self.salon.order(pick(self.TIMES), name, resourceId=pick(self.salon.resources))
        answer = simulation.persist(self.api, CREATE, order, f"book {number}")
        self.answers[name] = answer
        if answer is None or answer.status != 200 or pick([True, False]):
            return
        change: dict[str, Any] = {"id": answer.data["booking"]["id"], "status": "cancelled"}
        if pick([True, False]):
            change |= {"status": "confirmed", "startAt": pick(self.TIMES)}
        self.answers[name] = None
        change_result = simulation.persist(self.api, STATUS, change, f"change {number}")
        self.answers[name] = (
            answer if change_result is not None and change_result.status != 200 else change_result
        )

    def check(self) -> None:
        check_calendars(self.workspace, self.salon.resources)
        bookings = bookings_of(self.workspace)
        for name, answer in self.answers.items():
            own_bookings = [row for row in bookings if row.client_name == name]
            assert len(own_bookings) <= 1, f"{name} has {len(own_bookings)} bookings"
            if answer is None:
                continue
            if answer.status != 200:
                assert (answer.status, answer.data["code"]) == (409, "slot_unavailable")
                assert own_bookings == [], f"{name} was refused, and has a booking"
                continue
            booking = answer.data["booking"]
            assert [(row.id, row.status) for row in own_bookings] == [
                (booking["id"], booking["status"])
            ]
            assert own_bookings[0].starts_at == datetime.fromisoformat(booking["startAt"])


class Staff(Scenario):
    """Clients book a person or anyone and move, while the owner changes one person's terms."""

    PROMISE = "A booking has the price and the length of its resource, as they were saved together."
    TIMES = Booking.TIMES
    OWN = (150_000, 60)
    TERMS = ((250_000, 90), (300_000, 120), (100_000, 30))
    """Price and minutes with the second resource, one after another."""

    def prepare(self) -> None:
        self.salon = Salon.opened(self.api, [{}, {}], slotStepMin=30)
        self.api.post(UPDATE, self._terms(0))

    def _terms(self, number: int) -> dict[str, Any]:
        price, minutes = self.TERMS[number]
        own = {"resourceId": self.salon.resources[1], "price": price, "durationMin": minutes}
        return {"id": self.salon.service, "resourceOverrides": [own]}

    def begin(self, simulation: Simulation) -> None:
        super().begin(simulation)
        simulation.client(partial(self._reprice, simulation))

    def _reprice(self, simulation: Simulation) -> None:
        for number in (1, 2):
            simulation.schedule.pause(simulation.random.uniform(0, 0.1))
            simulation.persist(self.api, UPDATE, self._terms(number), f"terms {number}")

    def act(self, simulation: Simulation, number: int) -> None:
        pick, name = simulation.random.choice, f"Client {number}"
        staff = pick([{}, *({"resourceId": each} for each in self.salon.resources)])
        order = self.salon.order(pick(self.TIMES), name, **staff)
        answer = simulation.persist(self.api, CREATE, order, f"book {number}")
        if answer is None or answer.status != 200 or pick([True, False]):
            self.answers[name] = answer
            return
        booking = answer.data["booking"]
        change = {"id": booking["id"], "status": "confirmed", "startAt": pick(self.TIMES)}
        simulation.persist(self.api, STATUS, change, f"move {number}")

    def check(self) -> None:
        check_calendars(self.workspace, self.salon.resources)
        rows = bookings_of(self.workspace)
        first, second = self.salon.resources
        for row in rows:
            terms = (int(row.price), int(row.duration_min))
            assert terms in {first: [self.OWN], second: self.TERMS}[row.resource_id]
            assert row.ends_at - row.starts_at == timedelta(minutes=int(row.duration_min))
        for name, answer in self.answers.items():
            if answer is not None and answer.status == 200:
                (own,) = (row for row in rows if row.client_name == name)
                assert int(own.price) == answer.data["booking"]["price"]


class Closing(Scenario):
    """Clients book and move, while the owner closes two of the three days."""

    PROMISE = "A booking in time off is refused, or reported to whoever takes the time off."
    DAYS = ("2027-01-18", "2027-01-19", "2027-01-20")
    CLOSE = "/api/resources/create-time-off"

    def prepare(self) -> None:
        self.salon = Salon.opened(self.api, [{}, {}])

    def begin(self, simulation: Simulation) -> None:
        super().begin(simulation)
        for day in self.DAYS[:2]:
            simulation.client(partial(self._close, simulation, day))

    def _close(self, simulation: Simulation, day: str) -> None:
        simulation.schedule.pause(simulation.random.uniform(0, 0.1))
        body = {"startAt": day, "endAt": day}
        self.answers[day] = simulation.persist(self.api, self.CLOSE, body, f"close {day}")

    def act(self, simulation: Simulation, number: int) -> None:
        random, name = simulation.random, f"Client {number}"
        order = self.salon.order(f"{random.choice(self.DAYS)}T1{number}:00", name)
        answer = simulation.persist(self.api, CREATE, order, f"book {number}")
        if answer is None or answer.status != 200:
            return
        start = f"{random.choice(self.DAYS)}T1{number}:00"
        change = {"id": answer.data["booking"]["id"], "status": "confirmed", "startAt": start}
        simulation.persist(self.api, STATUS, change, f"move {number}")

    def check(self) -> None:
        check_calendars(self.workspace, self.salon.resources)
        for day in self.DAYS[:2]:
            answer = self.answers[day]
            if answer is not None:
                assert answer.status == 200, answer.body
                booked = {
                    row.id
                    for row in bookings_of(self.workspace)
                    if str(row.starts_at.date()) == day
                }
                assert booked <= set(answer.data["affectedBookings"])


class Waiting(Scenario):
    """Clients begin to wait for a full day, while its booking is cancelled and jobs run."""

    PROMISE = "A line has one offer at a time, in its order, and nobody who waits is passed over."
    DAY, TIME = "2027-01-18", "2027-01-18T10:00"
    OFFER_MS = 120 * 60_000

    def prepare(self) -> None:
        hours = [{"weekday": "mon", "start": "10:00", "end": "11:00"}]
        self.salon = Salon.opened(self.api, rules=hours)
        self.booking = self.salon.book(self.TIME, "Holder")["id"]

    def begin(self, simulation: Simulation) -> None:
        self.offers: set[tuple[int, str]] = set()
        simulation.handlers[TELL_WAITING] = self._note
        super().begin(simulation)
        for _ in range(2):
            simulation.client(partial(self._run_jobs, simulation))

    def _note(self, job: JobRow) -> None:
        # A job that runs twice tells of the same offer.
        if job.payload["until"] is not None:
            self.offers.add((job.payload["until"], job.payload["waitingId"]))

    def _run_jobs(self, simulation: Simulation) -> None:
        for _ in range(4):
            simulation.schedule.pause(simulation.random.uniform(0, 30))
            simulation.run_jobs()

    def act(self, simulation: Simulation, number: int) -> None:
        simulation.schedule.pause(simulation.random.uniform(0, 20))
        if number == 0:
            change = {"id": self.booking, "status": "cancelled"}
            self.answers["cancel"] = simulation.persist(self.api, STATUS, change, "cancel")
            return
        client = {"name": f"Client {number}", "email": f"client.{number}@example.com"}
        body = {"serviceId": self.salon.service, "day": self.DAY, "client": client}
        name = f"wait {number}"
        self.answers[name] = simulation.persist(self.api, "/api/bookings/waiting", body, name)

    def check(self) -> None:
        offers = sorted(self.offers)
        for (until, one), (next_until, other) in pairwise(offers):
            assert next_until - self.OFFER_MS >= until, f"{one} and {other} have offers at once"
        joined = sorted(
            (answer.data["waitingEntry"]["position"], answer.data["waitingEntry"]["id"])
            for name, answer in self.answers.items()
            if answer is not None and answer.status == 200 and name != "cancel"
        )
        # Who began to wait after a cancellation was refused, because the time was free.
        assert len({position for position, _ in joined}) == len(joined)
        order = list(dict.fromkeys(waiting_id for _, waiting_id in offers))
        known = [waiting_id for _, waiting_id in joined]
        assert [each for each in order if each in known] == known[: len(order)]
        if (cancelled := self.answers["cancel"]) is not None and cancelled.status == 200:
            assert set(known) <= set(order), "somebody was passed over"


class Dates(Scenario):
    """Clients book a class and a massage of one person, while dates are added and removed."""

    PROMISE = "A date sells no more than its places, and keeps its person from other services."
    TIMES = Booking.TIMES
    PLACES = 2

    def prepare(self) -> None:
        teacher = {"capacity": self.PLACES}
        self.school = Salon.opened(self.api, [teacher], name="Yoga", fixedStarts=True)
        body = {"name": "Massage", "durationMin": 60, "resourceIds": self.school.resources}
        massage = self.api.post("/api/services/create", body | {"slotStepMin": 30})["service"]
        self.massage = Salon(self.api, massage["id"], self.school.resources)
        self.api.post(ADD_DATES, self._date(self.TIMES[0]))

    def _date(self, start: str) -> dict[str, Any]:
        return {"serviceId": self.school.service, "startAt": start}

    def begin(self, simulation: Simulation) -> None:
        super().begin(simulation)
        for path in (ADD_DATES, REMOVE_DATES):
            simulation.client(partial(self._change_dates, simulation, path))

    def _change_dates(self, simulation: Simulation, path: str) -> None:
        for turn in range(3):
            simulation.schedule.pause(simulation.random.uniform(0, 0.1))
            start = simulation.random.choice(self.TIMES)
            answer = simulation.persist(self.api, path, self._date(start), f"{path} {turn}")
            assert answer is None or answer.status in {200, 404, 409}, answer.body

    def act(self, simulation: Simulation, number: int) -> None:
        pick, name = simulation.random.choice, f"Client {number}"
        wanted = pick([self.school, self.massage])
        order = wanted.order(pick(self.TIMES), name)
        answer = simulation.persist(self.api, CREATE, order, f"book {number}")
        self.answers[name] = answer
        if answer is None or answer.status != 200 or pick([True, False]):
            return
        change = {"id": answer.data["booking"]["id"], "status": "confirmed"}
        change |= {"startAt": pick(self.TIMES)}
        simulation.persist(self.api, STATUS, change, f"move {number}")

    def check(self) -> None:
        (teacher,) = self.school.resources
        check_calendars(self.workspace, [teacher], self.PLACES)
        rows = dated_starts.between(self.workspace, service_id=self.school.service, first_ms=0)
        listed = [row.dated for row in rows]
        assert listed == calendar_days.read_kept(self.workspace, resource_id=teacher).starts
        bookings = [row for row in bookings_of(self.workspace) if row.blocks]
        for row in bookings:
            meeting = [each for each in listed if _overlap(each.buffered, row.busy.buffered)]
            if row.service_id == self.school.service:
                assert [each.start for each in meeting] == [row.busy.start]
            else:
                assert meeting == [], f"{row.client_name} is booked over a date"
        for name, answer in self.answers.items():
            if answer is not None and answer.status == 200:
                assert [row.client_name for row in bookings].count(name) == 1


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


class Creating(Scenario):
    """Clients create sites, with a key or without one."""

    PROMISE = "A key creates one record, and a call without a key at most one. Counters agree."

    def act(self, simulation: Simulation, number: int) -> None:
        key = simulation.random.choice(["first", "second", None])
        title = key or f"without a key {number}"
        send = partial(simulation.request, self.api, "/api/projects/create")
        if key:
            send = partial(simulation.persist, self.api, "/api/projects/create", key=key)
        self.answers[f"{title}#{number}"] = send({"title": title})

    def check(self) -> None:
        projects = self.api.get("/api/projects/list?size=100")["projects"]
        titles = Counter(site["title"] for site in projects)
        assert counters.read(self.workspace, noun="SITE").get("total", 0) == len(projects)
        for place, answer in self.answers.items():
            title = place.partition("#")[0]
            assert titles[title] <= 1, f"{titles[title]} sites of one call"
            if answer is not None and answer.status == 200:
                assert answer.data["project"]["id"] in {site["id"] for site in projects}
        bodies: dict[str, set[bytes]] = {}
        for place, answer in self.answers.items():
            if answer is not None and answer.status == 200:
                bodies.setdefault(place.partition("#")[0], set()).add(answer.body)
        assert all(len(answers) == 1 for answers in bodies.values())


class Stock(Scenario):
    """Clients take pieces out of one stock."""

    PROMISE = "Each key changes a stock once, and no stock is below zero."
    PIECES = 7

    def prepare(self) -> None:
        body = {"name": "Bread", "price": 100, "stock": self.PIECES}
        self.product = self.api.post("/api/products/create", body)["product"]["id"]

    def act(self, simulation: Simulation, number: int) -> None:
        for turn in range(simulation.random.randint(1, 2)):
            key, body = f"{number} {turn}", {"id": self.product, "stockDelta": -2}
            self.answers[key] = simulation.persist(self.api, "/api/products/update", body, key)

    def check(self) -> None:
        stock_left = self.api.get(f"/api/products/{self.product}")["product"]["stock"]
        ends = self.answers.items()
        sold = [key for key, answer in ends if answer is not None and answer.status == 200]
        unknown = sum(answer is None for answer in self.answers.values())
        assert stock_left >= 0
        assert stock_left in {self.PIECES - 2 * (len(sold) + n) for n in range(unknown + 1)}
        for answer in self.answers.values():
            assert (
                answer is None
                or answer.status == 200
                or answer.data["code"] == "insufficient_stock"
            )


class Editing(Scenario):
    """Clients add a word to one page, each to the version that it has read."""

    PROMISE = "No acknowledged save of a page is lost."

    def prepare(self) -> None:
        site = self.api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        page = self.api.post("/api/pages/create", {"projectId": site, "title": "Bread"})
        self.page = page["page"]["id"]
        self.api.post("/api/pages/save-html", {"id": self.page, "html": "<p>-</p>"})
        self.html_key = PAGES.require(self.workspace, record_id=self.page).html_key

    def begin(self, simulation: Simulation) -> None:
        # The rows are restored for each seed. The jobs of the last one may have removed this
        # version of the page, whose object is no row.
        object_store().put(self.html_key, b"<p>-</p>", HTML_TYPE)
        super().begin(simulation)

    def act(self, simulation: Simulation, number: int) -> None:
        word = f"word{number}"
        for turn in range(6):
            read: list[Answer] = []
            simulation.serve(partial(self._read, read))
            if not read or read[0].status != 200:
                continue
            page = read[0].data["page"]
            body = {
                "id": self.page,
                "html": page["html"] + word,
                "ifVersion": page["version"],
            }
            key = f"{word} {turn}"
            answer = simulation.persist(self.api, "/api/pages/save-html", body, key)
            self.answers[word] = answer
            if answer is None or answer.status == 200:
                return

    def _read(self, answers: list[Answer]) -> None:
        answers.append(self.api.call("GET", self._path))

    @property
    def _path(self) -> str:
        return f"/api/pages/{self.page}"

    def check(self) -> None:
        html = self.api.get(self._path)["page"]["html"]
        for word, answer in self.answers.items():
            if answer is not None:
                expected = 1 if answer.status == 200 else 0
                assert html.count(word) == expected, (word, html)
            assert html.count(word) <= 1


class TallyRow(ControlRow):
    """A counter of the commits of a step."""

    times = NumberAttribute(default=0)

    @classmethod
    def stage(cls, unit: UnitOfWork, name: str) -> None:
        """Count a step in the transaction of the unit."""
        either = cls.pk.exists() | cls.pk.does_not_exist()
        unit.update(cls(f"TALLY#{name}", "-"), [cls.times.add(1)], either)

    @classmethod
    def read_count(cls, name: str) -> int:
        """Return how often a step was counted."""
        row = cls.find(f"TALLY#{name}", "-")
        return int(row.times) if row else 0


class Charging(Scenario):
    """Servers reserve money, use the model, and settle or release. An operator tops up."""

    PROMISE = "Each answer is charged once. No money remains reserved, appears or is lost."
    TERMS = Prices(10**6, 10**6)

    def prepare(self) -> None:
        self.account = self.owner.workspace.owner_id
        self.agents = (new_id(), new_id())

    def begin(self, simulation: Simulation) -> None:
        self.costs: dict[str, set[int]] = {}  # request -> costs that are right
        self.closed: dict[str, str] = {}
        self.credited: dict[str, bool] = {}
        super().begin(simulation)
        simulation.client(partial(self._top_up, simulation))

    def _top_up(self, simulation: Simulation) -> None:
        for number in range(2):
            body = {"account": self.account, "kopecks": 300, "reason": "x"}
            for _ in range(6):
                key = f"top-up {number}"
                call = partial(call_operator, "credit", **body, idempotencyKey=key)
                responses: list[Any] = []
                if simulation.serve(partial(self._note, responses, call)) and responses:
                    break
            self.credited[f"top-up {number}"] = bool(responses)

    @staticmethod
    def _note(responses: list[Any], call: Any) -> None:
        with suppress(AppError):
            responses.append(call())

    def act(self, simulation: Simulation, number: int) -> None:
        for turn in range(2):
            request = f"{simulation.seed} {number} {turn}"
            agent = simulation.random.choice(self.agents)
            simulation.serve(partial(self._chat, simulation, request, agent))

    def _chat(self, simulation: Simulation, request: str, agent: str) -> None:
        terms = Terms(self.account, self.workspace, agent, "Europe/Moscow", self.TERMS, "model")
        usage = TokenUsage(10, simulation.random.randint(0, 60))
        cost = sum(usage)
        dialog = request.replace(" ", "-")
        self.costs[request] = {0}
        with suppress(AppError):
            hold = charging.reserve(
                terms, request, 10, max_output_tokens=100, message_id=exchange.message_id(dialog, 2)
            )
            run_unit(self.workspace, None, partial(self._stage_messages, dialog=dialog))
            simulation.schedule.seam("the model answers")
            if simulation.random.random() < FAILS:
                ending = Ending("", "error", None, "provider_failed")
                close = partial(charging.release, hold)
            else:
                ending = Ending("text", "ok", usage)
                close = partial(charging.settle, hold, usage)
                self.costs[request] = {0, cost}  # A lost checkpoint may have been stored.
                ended = Ended("ok", usage, [], None)
                messages.checkpoint(
                    self.workspace, dialog_id=dialog, number=2, content="text", ended=ended
                )
                self.costs[request] = {cost}
            self.closed[request] = close(partial(self._stage_end, hold=hold, ending=ending)).outcome

    @staticmethod
    def _stage_messages(unit: UnitOfWork, dialog: str) -> None:
        about = {"channel": "api", "session_hash": "none", "input_tokens": 10}
        messages.stage_exchange(unit, dialog, 1, "question", **about, sources=[])

    @staticmethod
    def _stage_end(unit: UnitOfWork, hold: Hold, ending: Ending) -> None:
        rows = exchange.read_rows(hold, None)
        exchange.stage_end(unit, hold, ending, rows, channel="api", zone="Europe/Moscow")

    def check(self) -> None:
        books.audit(self.account, self.workspace, *self.agents)
        assert books.open_holds(self.account) == []
        assert ledger.wallet(self.account).reserved == 0
        rows = {row.request_id: row for row in ledger.holds(self.account)}
        for request, costs in self.costs.items():
            if request in self.closed:
                assert rows[request].state.startswith(self.closed[request][:6])
            if request in rows:
                assert rows[request].cost in costs
            answer = messages.find(self.workspace, dialog_id=request.replace(" ", "-"), number=2)
            assert answer is None or not answer.is_open
        entries = ledger.entries(self.account)
        booked = sum(entry.kind == ledger.TOPUP for entry in entries)
        sure = sum(self.credited.values())
        assert sure <= booked <= len(self.credited)


class Jobs(Scenario):
    """Several runners do the same jobs, and die."""

    PROMISE = (
        "One worker at a time runs a job, each job is done, and its writes are committed once."
    )
    KIND = JobKind("simulated_work")

    def begin(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.shared = False
        self.holders: dict[str, list[Process]] = {}
        simulation.handlers[self.KIND] = self.work
        self.names = [f"{simulation.seed} {number}" for number in range(5)]
        for name in self.names:
            jobs.schedule(jobs.row(self.KIND, self.workspace, {"name": name}, job_id=name))
        super().begin(simulation)

    def act(self, simulation: Simulation, number: int) -> None:
        simulation.run_jobs()
        simulation.schedule.pause(simulation.random.uniform(0, 400))
        simulation.run_jobs()

    def work(self, job: JobRow) -> None:
        """Do a job: its effect is committed together with its removal."""
        name, schedule = job.payload["name"], self.simulation.schedule
        assert schedule.task is not None
        process = schedule.task.process
        holders = self.holders.setdefault(name, [])
        self.shared |= any(holder.alive for holder in holders)
        holders.append(process)
        try:
            schedule.pause(self.simulation.random.uniform(0, 5))

            def stage(unit: UnitOfWork) -> None:
                workspaces.get(self.workspace)
                TallyRow.stage(unit, name)
                unit.delete(job, if_there=True)

            run_unit(self.workspace, None, stage)
        finally:
            holders.remove(process)

    def check(self) -> None:
        assert not self.shared, "two live runners did one job at the same time"
        assert {name: TallyRow.read_count(name) for name in self.names} == dict.fromkeys(
            self.names, 1
        )
        assert jobs.oldest_due(Queue.MAIN) is None


class Events(Scenario):
    """Visitors submit a form, members set the status of leads, and a webhook receives events."""

    PROMISE = "Each committed change, and nothing else, reaches the webhook under one id."
    STATUSES = ("in_progress", "completed", "rejected")
    TYPES = ("lead.created", "lead.status_changed")

    def prepare(self) -> None:
        site = self.api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        fields = [{"name": "name", "label": "Name", "type": "text"}]
        body = {"projectId": site, "title": "Contact", "fields": fields}
        self.form = self.api.post("/api/forms/create", body)["form"]["id"]
        webhook = {"url": "https://receiver.example/events", "events": list(self.TYPES)}
        call_operator("create_webhook", workspaceId=self.workspace, **webhook)

    def begin(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.acknowledged: set[str] = set()
        self.received: dict[str, tuple[str, str, int, str | None]] = {}
        super().begin(simulation)
        for _ in range(2):
            simulation.client(self._run_jobs)

    def _run_jobs(self) -> None:
        for _ in range(3):
            self.simulation.schedule.pause(self.simulation.random.uniform(0, 30))
            self.simulation.run_jobs()

    def act(self, simulation: Simulation, number: int) -> None:
        lead = self._submit(simulation, f"Visitor {number}")
        if lead is None:
            return
        self.acknowledged.add(lead)
        for turn in range(simulation.random.randint(0, 2)):
            body = {"id": lead, "status": simulation.random.choice(self.STATUSES)}
            key = f"{number} {turn}"
            simulation.persist(self.api, "/api/forms/collection-status", body, key)

    def _submit(self, simulation: Simulation, visitor: str) -> str | None:
        lead_ids: list[str] = []

        def send() -> None:
            with suppress(AppError):
                lead_ids.append(submit(self.form, visitor, visitor, name=visitor))

        for _ in range(6):
            if simulation.serve(send) and lead_ids:
                return lead_ids[0]
            simulation.schedule.pause(simulation.random.uniform(0.1, 10))
        return None

    def receive(self, _url: str, body: bytes, headers: Mapping[str, str]) -> PostReply:
        """Respond as the receiver of the webhook, which may fail, or lose its response."""
        schedule, random = self.simulation.schedule, self.simulation.random
        schedule.pause(random.uniform(0, 2))
        fails = self.simulation.database.rate
        if random.random() < fails:
            return PostReply(500, b"", None, 1)
        event = json.loads(body)
        data = event["data"]
        reported = (event["type"], data["id"], data["revision"], data.get("previousStatus"))
        assert self.received.setdefault(headers["webhook-id"], reported) == reported
        if random.random() < fails:
            raise UpstreamError("the answer is lost", key="malformed_response")
        return PostReply(200, b"", None, 1)

    def check(self) -> None:
        leads = self.api.get("/api/forms/collection-list?size=100")["collections"]
        created_counts = Counter(lead["id"] for lead in leads)
        assert self.acknowledged <= created_counts.keys()
        reports = sorted(self.received.values(), key=lambda report: report[2])
        assert (
            Counter(lead for kind, lead, *_ in reports if kind == self.TYPES[0]) == created_counts
        )
        for lead in created_counts:
            history = self.api.get(f"/api/forms/collection/{lead}")["history"]
            changes = [change_record["change"].split() for change_record in history]
            former = [words[1] for words in changes if words[0] == "status:"]
            assert [
                was for kind, of, _, was in reports if (kind, of) == (self.TYPES[1], lead)
            ] == former


class Paying(Scenario):
    """Clients pay bookings and a top-up. Notifications come twice, late or never."""

    PROMISE = (
        "A payment confirms its booking, credits a balance or is refunded, once. No money brings "
        "back the booking of an erased client."
    )
    TIMES = ("2027-01-18T10:00", "2027-01-18T12:00")
    TOP_UP = 20_000
    ENDS: tuple[PaymentStatus, ...] = ("succeeded", "failed", "pending", "pending")

    def prepare(self) -> None:
        self.salon = Salon.opened(self.api, requirePayment=True, price=1_000)
        body = {"provider": "yookassa", "shopId": "1", "secret": "secret-of-the-shop"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gateway, "provider_for", lambda _: FakeProvider(FakeShop(), _))
            patch.setattr(FakeProvider, "inspect", lambda _: Account("1", is_test=False))
            merchant = call_console(self.workspace, "set_merchant", **body)["merchant"]
            call_operator("set_platform_merchant", **body)
        self.merchant_id = merchant["hookUrl"].rpartition("/")[2]
        self.account = self.owner.workspace.owner_id

    def begin(self, simulation: Simulation) -> None:
        self.simulation, self.shop = simulation, FakeShop()
        self.shops = [self.shop]
        simulation.patch.setattr(gateway, "provider_for", self._provider)
        self.cancelled: set[str] = set()
        self.former_balance = int(ledger.wallet(self.account).available)
        super().begin(simulation)
        simulation.client(self._top_up)
        for _ in range(2):
            simulation.client(self._run_jobs)

    def _provider(self, merchant: Merchant) -> FakeProvider:
        return UnreliableProvider(self.shop, merchant, self.simulation)

    def _run_jobs(self) -> None:
        for _ in range(4):
            self.simulation.schedule.pause(self.simulation.random.uniform(0, 900))
            self.simulation.run_jobs()

    def act(self, simulation: Simulation, number: int) -> None:
        random = simulation.random
        simulation.schedule.pause(random.choice([0, 0, 2_400]))
        order = self.salon.order(random.choice(self.TIMES), f"Client {number}")
        answer = simulation.persist(self.api, CREATE, order, f"book {number}")
        if answer is None or answer.status != 200:
            return
        booking_id = answer.data["booking"]["id"]
        for _ in range(random.randint(1, 3)):
            simulation.serve(partial(self._pay, booking_id))
            if random.random() < CANCELS:
                self._cancel(booking_id)
            self._make_payments(booking_id)
            if random.random() < ERASES:
                simulation.schedule.pause(random.choice([0, 2_400]))
                simulation.serve(partial(self._erase, booking_id))
            for _ in range(random.randint(0, 3)):
                # The provider repeats a notification before the first one is answered.
                simulation.client(partial(simulation.serve, partial(self._notify, booking_id)))
            # The next click may follow the end of the hold.
            simulation.schedule.pause(random.choice([1, 60, 2_400]))
            # Money may arrive after the hold.
            self._make_payments(booking_id)

    def _cancel(self, booking_id: str) -> None:
        """Cancel a booking whose payment is open, so that its money has to be refunded."""
        self.cancelled.add(booking_id)
        body = {"id": booking_id, "status": "cancelled"}
        self.simulation.persist(self.api, STATUS, body, f"cancel {booking_id}")

    def _erase(self, booking_id: str) -> None:
        """Erase the client. An erasure that the database interrupts is not repeated."""
        with suppress(AppError):
            client_id = BOOKINGS.require(self.workspace, record_id=booking_id).client_id
            call_console(self.workspace, "erase_client", id=client_id)

    def _pay(self, booking_id: str) -> None:
        with suppress(AppError):
            booking = BOOKINGS.require(self.workspace, record_id=booking_id)
            token = booking_links.token(self.workspace, booking, Purpose.PAY)
            call_visitor("pay_booking", token=token)

    def _make_payments(self, booking_id: str) -> None:
        """Pay, decline or leave the payments of a booking at the provider."""
        with suppress(AppError):
            for payment in payments.latest(self.workspace, 100):
                provider_payment = self._payments.get(payment.provider_id or "")
                if (
                    payment.subject_id == booking_id
                    and provider_payment
                    and provider_payment.status == "pending"
                ):
                    provider_payment.status = self.simulation.random.choice(self.ENDS)

    @property
    def _payments(self) -> dict[str, FakePayment]:
        """The payments at all accounts, by id."""
        return {name: payment for shop in self.shops for name, payment in shop.payments.items()}

    def _refunded(self, provider_id: str) -> int:
        return sum(
            shop.refunded(provider_id) for shop in self.shops if provider_id in shop.payments
        )

    def _notify(self, booking_id: str) -> None:
        with suppress(AppError):
            for payment in payments.latest(self.workspace, 100):
                if payment.subject_id == booking_id and payment.provider_id:
                    body = payment.provider_id
                    call_visitor("receive_payment_hook", merchantId=self.merchant_id, body=body)

    def _top_up(self) -> None:
        self.simulation.serve(self._make_top_up)
        self.simulation.serve(self._read_top_ups)

    def _make_top_up(self) -> None:
        """Open a top-up, and pay on the provider's page if the service shows it."""
        arguments = {"account_id": self.account, "amount": self.TOP_UP}
        with suppress(AppError):
            url = call_console(self.workspace, "start_top_up", **arguments)["url"]
            self.shop.pay(url.rpartition("/")[2])

    def _read_top_ups(self) -> None:
        with suppress(AppError):
            for payment in payments.latest(self.workspace, 100):
                if payment.purpose == "top_up":
                    call_console(
                        self.workspace, "get_top_up", account_id=self.account, id=payment.id
                    )

    def check(self) -> None:
        check_calendars(self.workspace, self.salon.resources)
        rows = payments.latest(self.workspace, 1_000)
        bookings = {row.id: row for row in bookings_of(self.workspace)}
        ids = {row.provider_id: row for row in rows if row.provider_id}
        credited = 0
        for provider_id, provider_payment in self._payments.items():
            row = ids.get(provider_id)
            if provider_payment.status != "succeeded":
                assert self._refunded(provider_id) == 0
                continue
            # The client pays only on a page that the service has shown.
            assert row is not None
            assert row.status == "succeeded", f"{provider_id} is paid, and {row.status} here"
            if row.purpose == "top_up":
                credited += provider_payment.amount
                continue
            booking = bookings[row.subject_id]
            refunded = self._refunded(provider_id)
            if booking.paid_by == row.id:
                assert refunded == 0
            else:
                assert refunded == provider_payment.amount, (
                    f"{provider_id} is neither used nor refunded"
                )
        for booking in bookings.values():
            assert booking.status in {"confirmed", "cancelled"}
            if booking.token_secret is None:
                assert booking.status == "cancelled", "a booking of an erased client came back"
            elif booking.id not in self.cancelled:
                assert (booking.status == "confirmed") is (booking.paid_by is not None)
        refunds = payments.refunds_of(self.workspace, [row.id for row in rows])
        assert {refund.status for refund in refunds} <= {"done"}
        assert int(ledger.wallet(self.account).available) == self.former_balance + credited


class UnreliableProvider(FakeProvider):
    """An account at a provider whose responses take time, and may be lost."""

    def __init__(self, shop: FakeShop, merchant: Merchant, simulation: Simulation) -> None:
        super().__init__(shop, merchant)
        self._simulation = simulation

    def _call(self, name: str, effect: Any) -> Any:
        random, schedule = self._simulation.random, self._simulation.schedule
        fails = self._simulation.database.rate
        schedule.pause(random.uniform(0, 2))
        if random.random() < fails:
            raise UnknownOutcomeError
        result = super()._call(name, effect)
        schedule.pause(random.uniform(0, 2))
        if random.random() < fails:
            raise UnknownOutcomeError
        return result


class Replacing(Paying):
    """The owner enters the key of another account, and returns, while clients pay."""

    PROMISE = "A payment is applied or refunded at its own account, whichever key is entered later."
    SECRETS = ("key-of-a-1", "key-of-b-1", "key-of-a-2", "key-of-b-2")
    """Keys of two accounts, with the letter of the account."""

    def prepare(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gateway, "provider_for", lambda it: RestrictedProvider(FakeShop(), it))
            body = {"provider": "stripe", "secret": self.SECRETS[0]}
            self.salon = Salon.opened(self.api, requirePayment=True, price=1_000)
            merchant = call_console(self.workspace, "set_merchant", **body)["merchant"]
            call_operator("set_platform_merchant", **body)
        self.merchant_id = merchant["hookUrl"].rpartition("/")[2]
        self.account = self.owner.workspace.owner_id

    def begin(self, simulation: Simulation) -> None:
        super().begin(simulation)
        self.shops.append(FakeShop(series="b"))
        simulation.client(self._replace)

    def _provider(self, merchant: Merchant) -> FakeProvider:
        shop = self.shops["-b-" in merchant.secret]
        return UnreliableRestrictedProvider(shop, merchant, self.simulation)

    def _replace(self) -> None:
        for _ in range(3):
            self.simulation.schedule.pause(self.simulation.random.uniform(0, 900))
            secret = self.simulation.random.choice(self.SECRETS)
            self.simulation.serve(partial(self._enter, secret))

    def _enter(self, secret: str) -> None:
        with suppress(AppError):
            call_console(self.workspace, "set_merchant", provider="stripe", secret=secret)


class Returning(Scenario):
    """Top-ups are paid, and refunded or disputed at the provider, in parts."""

    PROMISE = "A balance loses what was returned of its top-ups, once."
    TOP_UP = 20_000

    def prepare(self) -> None:
        self.shop = FakeShop()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gateway, "provider_for", lambda it: FakeProvider(self.shop, it))
            body = {"provider": "yookassa", "shopId": "1", "secret": self.shop.secret}
            call_operator("set_platform_merchant", **body)
        merchant = merchants.find_current(PLATFORM)
        assert merchant
        self.merchant_id = merchant.merchant_id
        self.account = self.owner.workspace.owner_id

    def begin(self, simulation: Simulation) -> None:
        self.simulation, self.shop = simulation, FakeShop()
        simulation.patch.setattr(
            gateway, "provider_for", lambda it: UnreliableProvider(self.shop, it, simulation)
        )
        self.former_balance = int(ledger.wallet(self.account).available)
        super().begin(simulation)
        simulation.client(self._run_jobs)

    def _run_jobs(self) -> None:
        for _ in range(4):
            self.simulation.schedule.pause(self.simulation.random.uniform(0, 600))
            self.simulation.run_jobs()

    def act(self, simulation: Simulation, number: int) -> None:
        random = simulation.random
        opened: list[str] = []

        def open_page() -> None:
            with suppress(AppError):
                arguments = {"account_id": self.account, "amount": self.TOP_UP}
                url = call_console(self.workspace, "start_top_up", **arguments)["url"]
                opened.append(url.rpartition("/")[2])

        simulation.serve(open_page)
        if not opened:
            return
        self.shop.pay(opened[0])
        payment = self.shop.payments[opened[0]]
        for _ in range(random.randint(1, 3)):
            for _ in range(random.randint(0, 2)):
                # Notifications of one payment overlap.
                simulation.client(partial(simulation.serve, partial(self._notify, opened[0])))
            simulation.schedule.pause(random.choice([1, 60, 600]))
            payment.elsewhere = random.randrange(payment.elsewhere, self.TOP_UP + 1)
            payment.disputed = random.choice([0, self.TOP_UP - payment.elsewhere])
        simulation.serve(partial(self._notify, opened[0]))

    def _notify(self, provider_id: str) -> None:
        with suppress(AppError):
            call_visitor("receive_payment_hook", merchantId=self.merchant_id, body=provider_id)

    def check(self) -> None:
        entries = ledger.entries(self.account)[::-1]
        kept = 0
        for row in payments.latest(self.workspace, 1_000):
            payment = self.shop.payments.get(row.provider_id or "")
            if payment is None or payment.status != "succeeded":
                continue
            assert row.status == "succeeded", f"{row.provider_id} is paid, and {row.status} here"
            returned = min(self.TOP_UP, payment.elsewhere + payment.disputed)
            ours = [entry for entry in entries if entry.request_id == row.id]
            assert [entry.kind for entry in ours].count(ledger.TOPUP) == 1
            assert sum(int(entry.amount) for entry in ours) == self.TOP_UP - returned
            kept += self.TOP_UP - returned
        assert int(ledger.wallet(self.account).available) == self.former_balance + kept
        check_prefixes(entries)


class RestrictedProvider(FakeProvider):
    """An account whose keys cannot read which account they belong to."""

    def inspect(self) -> Account:
        return self._call("inspect", lambda: Account(None, is_test=False))  # type: ignore[no-any-return]


class UnreliableRestrictedProvider(UnreliableProvider, RestrictedProvider):
    """Such an account whose responses take time, and may be lost."""


def call_visitor(operation: str, **arguments: str) -> None:
    """Run an operation as a visitor."""
    visitor = VisitorPrincipal(visitor="v")
    invoke(REGISTRY[operation], visitor, lambda: arguments, request_id=new_id())


SCENARIOS: dict[str, type[Scenario]] = {
    "booking": Booking,
    "staff": Staff,
    "closing": Closing,
    "waiting": Waiting,
    "dates": Dates,
    "charging": Charging,
    "creating": Creating,
    "stock": Stock,
    "editing": Editing,
    "jobs": Jobs,
    "events": Events,
    "paying": Paying,
    "replacing": Replacing,
    "returning": Returning,
}
