"""Test of random histories in which visitors submit forms, chat and book, and one is erased.

The model assigns contacts in one record to one visitor. The operator does the same. Each contact
that a dry run shows is erased as well.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.factories.chat import Bot, ask, new_bot
from tests.factories.examples import FORM, submit
from tests.factories.salon import Salon
from tests.support.effort import examples
from tests.support.restoring import Snapshots

START = "2027-03-02T12:00:00Z"
PEOPLE = (
    ("zoe@home.example", "zoe@work.example", "89161110001", "89161110002"),
    ("bob@home.example", "bob@work.example", "89162220001", "89162220002"),
)
"""No two visitors share a contact."""


@dataclass(frozen=True)
class World:
    """A workspace with a form, a salon with many seats and a bot."""

    owner: Owner
    api: Api
    form: str
    salon: Salon
    bot: Bot

    @classmethod
    def create(cls, owner: Owner) -> "World":
        api = owner.api()
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        return cls(owner, api, form, Salon.opened(api, [{"capacity": 50}]), new_bot(owner))


@pytest.fixture
def world(
    empty_database: Callable[[], None],
    new_owner: Callable[..., Owner],
    snapshots: Snapshots,
    time: Time,
) -> Callable[[], World]:
    """Return a function that creates a new world in an empty database, for each example."""

    def make() -> World:
        empty_database()
        time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)
        new_world: World = snapshots.once("erasure", lambda: World.create(new_owner()))
        return new_world

    return make


def digits(contact: str) -> str:
    """Return the part of a contact that is the same in every spelling."""
    return contact if "@" in contact else contact[1:]


def form_body(contacts: Iterable[str]) -> dict[str, str]:
    """Return a contact as the form field of its kind."""
    return {"email" if "@" in contact else "phone": contact for contact in contacts}


@dataclass
class History:
    """The events so far, and the contacts that became known together."""

    world: World
    groups: list[set[str]] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    """For each event, a word that only this event contains, and one of its contacts."""
    sessions: dict[int, str] = field(default_factory=dict)
    last_contact: dict[int, str] = field(default_factory=dict)

    def run_step(self, number: int, step: "Step") -> None:
        getattr(self, step.kind)(f"word{number}x", step)

    def form(self, word: str, step: "Step") -> None:
        contacts, other = form_body(step.contacts), step.contacts[0]
        text = f"{word}, or {other}" if step.flag else word
        submit(self.world.form, name=f"N {word}", message=text, **contacts)
        self._note(word, {*contacts.values(), *([other] if step.flag else [])})

    def chat(self, word: str, step: "Step") -> None:
        session = self.sessions.get(step.person) if step.flag else None
        more = {"sessionId": session} if session else {}
        reply = ask(self.world.bot, f"{word}: {' and '.join(step.contacts)}", key=word, **more)
        earlier_contacts = [self.last_contact[step.person]] if session else []
        self.sessions[step.person] = reply.session
        self.last_contact[step.person] = step.contacts[0]
        self._note(word, {*step.contacts, *earlier_contacts})

    def visitor_books(self, word: str, step: "Step") -> None:
        contacts = form_body(step.contacts)
        body = {
            **self.world.salon.order(START, notes=word),
            "client": {"name": word, **contacts},
        }
        operation, who = REGISTRY["create_public_booking"], VisitorPrincipal(visitor=new_id())
        invoke(operation, who, lambda: body, request_id=new_id(), idempotency_key=word)
        self._note(word, set(contacts.values()))

    def key_books(self, word: str, step: "Step") -> None:
        contacts = form_body(step.contacts)
        body = {
            **self.world.salon.order(START, notes=word),
            "client": {"name": word, **contacts},
        }
        self.world.api.post("/api/bookings/create", body, key=word)
        self._note(word, set(contacts.values()))

    def client_changes(self, word: str, step: "Step") -> None:
        self._change("/api/clients/update", self.clients(), step)

    def lead_changes(self, word: str, step: "Step") -> None:
        self._change("/api/forms/collection-update", self.leads(), step)

    def _change(self, path: str, records: list[Any], step: "Step") -> None:
        own_contacts = {digits(contact) for contact in PEOPLE[step.person]}
        theirs = [record for record in records if own_contacts & _digits_of(record)]
        if theirs:
            target, new = theirs[0], step.contacts[0]
            answer = self.world.api.call("POST", path, {"id": target["id"], **form_body([new])})
            if answer.status == 200:
                self._join(_digits_of(target) | {digits(new)})

    def clients(self) -> list[Any]:
        clients: list[Any] = self.world.api.get("/api/clients/list?size=100")["clients"]
        return clients

    def leads(self) -> list[Any]:
        rows = self.world.api.get("/api/forms/collection-list?size=500")["collections"]
        return [self.world.api.get(f"/api/forms/collection/{row['id']}")["lead"] for row in rows]

    def bookings(self) -> list[Any]:
        bookings: list[Any] = self.world.api.get("/api/bookings/list?size=100")["bookings"]
        return bookings

    def transcripts(self) -> dict[str, Any]:
        api, bot = self.world.api, self.world.bot.id
        dialogs = api.get(f"/api/agents/dialogs?agentId={bot}&size=100")["dialogs"]
        return {
            dialog["id"]: (
                dialog["preview"],
                api.get(f"/api/agents/dialog?id={dialog['id']}")["messages"],
            )
            for dialog in dialogs
        }

    def group_of(self, contact: str) -> set[str]:
        return next(group for group in self.groups if contact in group)

    def erase(self, contact: str) -> None:
        """Erase the visitor with a contact as the operator does, after reading a dry run."""
        pending, erased_contacts = [contact], set[str]()
        while pending:
            current = pending.pop()
            if current in erased_contacts:
                continue
            erased_contacts.add(current)
            whom = {"email": current} if "@" in current else {"phone": f"8{current}"}
            whom["workspaceId"] = self.world.owner.workspace.id
            try:
                dry_run = call_operator("erase_client", **whom, dryRun=True)
            except NotFoundError:
                continue
            for record in (*dry_run["found"], *dry_run["linkedClients"]):
                pending += _digits_of(record)
            erased = call_operator("erase_client", **whom)
            assert erased["leads"] == dry_run["leads"]
            assert erased["clientIds"] == dry_run["clientIds"]
            rows = {key: row for key, row in all_rows().items() if current in str(row)}
            assert rows == {}

    def _note(self, word: str, contacts: set[str]) -> None:
        self._join(set(map(digits, contacts)))
        self.events.append((word, digits(next(iter(contacts)))))

    def _join(self, contacts: set[str]) -> None:
        joined = contacts.union(*(group for group in self.groups if group & contacts))
        self.groups = [group for group in self.groups if not group & contacts] + [joined]


def _digits_of(record: Any) -> set[str]:
    """Return the contacts of a lead, of a client, or of a record that an erasure shows."""
    values = [record["email"], record["phone"], *record.get("namedContacts", ())]
    return {text if "@" in text else text.removeprefix("+7") for text in values if text}


@dataclass(frozen=True)
class Step:
    """An action of a visitor, and the contacts that the action uses."""

    kind: str
    person: int
    contacts: list[str]
    flag: bool


KINDS = ("form", "chat", "visitor_books", "key_books", "client_changes", "lead_changes")
steps = st.integers(0, 1).flatmap(
    lambda person: st.builds(
        Step,
        kind=st.sampled_from(KINDS),
        person=st.just(person),
        contacts=st.lists(st.sampled_from(PEOPLE[person]), min_size=1, max_size=2, unique=True),
        flag=st.booleans(),
    )
)


@pytest.mark.timeout(600)
@examples(60, 6)
@given(history=st.lists(steps, min_size=1, max_size=7), choice=st.integers(0, 100))
def test_an_erasure_removes_one_visitors_data_and_keeps_the_rest(
    world: Callable[[], World], history: list[Step], choice: int
) -> None:
    past = History(world())
    for number, step in enumerate(history):
        past.run_step(number, step)
    known = sorted(set().union(*past.groups))
    if not known:
        return
    contact = known[choice % len(known)]
    gone = past.group_of(contact)

    def keep_others(records: list[Any]) -> list[Any]:
        return [record for record in records if not _digits_of(record) & gone]

    def theirs() -> tuple[list[Any], ...]:
        booked = [{**row, **row["client"], "id": row["id"]} for row in past.bookings()]
        lists = keep_others(past.clients()), keep_others(past.leads()), keep_others(booked)
        return tuple([record for record in records if _digits_of(record)] for records in lists)

    others_before = theirs()
    past.erase(contact)

    assert theirs() == others_before
    rows = str(all_rows())
    lost = [word for word, contact in past.events if contact in gone]
    assert [word for word in (*gone, *lost) if word in rows] == []
    assert [word for word, contact in past.events if contact not in gone and word not in rows] == []
    api, transcripts = past.world.api, str(past.transcripts())
    for erased_word in (*gone, *lost):
        text = quote(erased_word)
        assert api.get(f"/api/forms/collection-list?search={text}")["total"] == 0
        assert api.get(f"/api/clients/list?search={text}")["total"] == 0
        assert api.get(f"/api/bookings/list?q={text}")["pagination"]["total"] == 0
        assert erased_word not in transcripts
    for erased_word in gone:
        field_name = "email" if "@" in erased_word else "phone"
        spelling = erased_word if "@" in erased_word else f"8{erased_word}"
        response = api.get(f"/api/forms/collection-find?{field_name}={quote(spelling)}")
        assert (response["total"], response["client"]) == (0, None)
