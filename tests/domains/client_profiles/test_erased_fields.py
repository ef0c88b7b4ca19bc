"""Test that an erasure removes everything that a visitor entered, from every field.

The sweep fills the texts, dates, numbers and nested values of every call that writes a client, a
lead, a booking or a dialog. New fields and calls are included. A call with such fields needs valid
arguments here. A second sweep fills every attribute of the rows that an erasure must empty.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.core.settings import settings
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.domains.booking_page.rules import advertising_texts
from chalicelib.domains.chat.flows.chat_request import ChatRequest
from chalicelib.domains.chat.flows.proposal_tools import OrderProposal, PersonRequest
from chalicelib.domains.client_profiles.operations import erasure
from chalicelib.domains.clients.store import erased_records
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.index_entries import SEPARATOR
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.tables import ContentRow, DateAttribute, JsonAttribute, Record
from chalicelib.gateways import post
from chalicelib.gateways.llm import ProviderUsage
from chalicelib.transports import auth
from chalicelib.transports.scheduled_functions import run_jobs
from infra.local.demo.examples import words_in
from tests.conftest import Api, Owner, Time, all_rows, call_console, call_operator
from tests.factories.chat import ChatReply, ask
from tests.factories.event_runs import run_until_idle
from tests.factories.event_triggers import World
from tests.factories.examples import Things
from tests.factories.proposals import call, card
from tests.fakes.receiver import Receiver, status
from tests.support.registers import check_register

ENGINE_ROWS = {ContentRow, Record, HistoryRow}
LOOKED_UP = {
    *("email", "phone", "client_email", "client_phone", "named_contacts", "session_hash"),
    "external_id",
}
"""Attributes that other rows follow. The calls fill them."""
PLANTED = {
    "planted_date": DateAttribute,
    "planted_number": NumberAttribute,
    "planted_flag": BooleanAttribute,
    "planted_json": JsonAttribute,
}
"""Attributes that a sweep adds to each row, under names that no recipe uses."""
EMAIL, PHONE = "zoe.person@home.example", "+79161110001"
RECORDS = {"LEAD_ID", "CLIENT_ID", "BOOKING_ID", "DIALOG_ID"}
NOUNS = {"lead", "client", "booking", "dialog"}
DOMAINS = re.compile(r"\.domains\.(leads|bookings|booking_page|clients|client_profiles|chat)\.")
TYPED = re.compile(
    r"(id|ids|at|token|key|timezone|workspace|features|prepared|advertisingVersion|andThen)$",
    re.IGNORECASE,
)
"""Names of fields that hold no text that a visitor writes."""
TERMS = {
    *("price", "durationMin", "amountDue", "refundUntilMin", "refund"),
    *("quantity", "ifVersion"),
}
"""Numbers about what is booked or bought, not about a person."""
A_DATE = "2000-02-29"
FIXED = {
    "email": EMAIL,
    "phone": PHONE,
    "source": EMAIL,  # The statistics keep the source of a campaign, unless it is a contact.
    "referrer": "https://search.example/",  # The statistics keep the host.
}
END = ProviderUsage(10, 5)


@dataclass
class Words:
    """Unique words, and the field that each was entered in."""

    fields: dict[str, str] = field(default_factory=dict)

    def fill(self, schema: Any, value: Any, at: str, definitions: Any = None) -> Any:  # noqa: PLR0911  one for each type
        """Return a value of a JSON Schema that has a unique value in each field."""
        definitions = definitions or schema.get("$defs", {})
        reference = schema.get("$ref", "").rpartition("/")[2]
        schema = definitions.get(reference) or schema
        known = [variant for variant in schema.get("anyOf", ()) if variant.get("type") != "null"]
        if known:
            return self.fill(known[0], value, at, definitions)
        match schema.get("type"):
            case "object" if "properties" in schema:
                return {**(value or {}), **dict(self._properties(schema, value, at, definitions))}
            case "object" if value:
                return self._like(value, at)
            case "array" if schema["items"].get("type") == "string":
                text = self.fill(schema["items"], None, at, definitions)
                return value if text is None else [text]
            case "string" if not {"enum", "const", "pattern", "format"} & set(schema):
                return self._text(value, at)
            case "string" if schema.get("format") in {"date", "date-time"}:
                return value if TYPED.search(at) else self._like(A_DATE, at)
            case "integer" | "number" if at.rpartition(".")[2] not in TERMS and value is None:
                return self._like(1, at)
            case _:
                return value

    def _properties(
        self, schema: Any, value: Any, at: str, definitions: Any
    ) -> Iterator[tuple[str, Any]]:
        for name, subschema in schema["properties"].items():
            field_value = self.fill(subschema, (value or {}).get(name), f"{at}.{name}", definitions)
            if field_value is not None:
                yield name, field_value

    def _like(self, value: Any, at: str) -> Any:
        """Return a unique value of the same type. A flag stays as it is."""
        number = len(self.fields)
        match value:
            case dict():
                return {name: self._like(one, f"{at}.{name}") for name, one in value.items()}
            case list():
                return [self._like(one, at) for one in value]
            case bool():
                return value
            case int():
                self.fields[str(73_100_000_000 + number)] = at
                return 73_100_000_000 + number
            case str() if value == A_DATE:
                self.fields[(date(1900, 1, 1) + timedelta(days=number)).isoformat()] = at
                return list(self.fields)[-1]
            case _:
                return self._text(value, at)

    def _text(self, value: Any, at: str) -> Any:
        name = at.rpartition(".")[2]
        if name in FIXED:
            return FIXED[name]
        if TYPED.search(name):
            return value
        word = f"zq{len(self.fields):04}qz"
        self.fields[word] = at
        return f"https://client.example/{word}" if name in {"page", "pageUrl"} else word.title()


def writes_person(operation: Operation) -> bool:
    """Whether a call writes a visitor's record."""
    is_public = Audience.PUBLIC in operation.audience
    names_record = bool(words_in(operation.example) & RECORDS)
    returns_record = bool(NOUNS & set(operation.output.model_fields))
    is_theirs = bool(DOMAINS.search(operation.module)) and operation.name != "erase_client"
    return is_theirs and not operation.read_only and (is_public or names_record or returns_record)


@dataclass
class Person:
    """A visitor with records in a workspace, who enters words in every field."""

    world: World
    words: Words = field(default_factory=Words)
    cards: list[ChatReply] = field(default_factory=list)
    bot_id: str = ""

    def arguments(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return valid arguments of each call with text fields that writes a visitor's record."""
        api, things = self.world.api, self.world.things
        day = iter(range(1, 28))

        def slot() -> dict[str, Any]:
            return {"serviceId": things.service, "startAt": f"2027-03-{next(day):02}T12:00"}

        def booking() -> str:
            body = {**slot(), "client": {"name": "Zoe", "email": EMAIL}, "ignoreSchedule": True}
            return str(api.post("/api/bookings/create", body)["booking"]["id"])

        def lead() -> dict[str, Any]:
            response = api.get(f"/api/forms/collection-find?email={EMAIL}")
            return {"id": response["leads"][0]["id"], "clientId": response["client"]["id"]}

        def order() -> dict[str, Any]:
            (reply,) = self.cards
            values = {field["name"]: field.get("value", "") for field in card(reply)["fields"]}
            return {
                "id": card(reply)["id"],
                "sessionId": reply.session,
                "decision": "confirm",
                "values": values,
            }

        def dialog() -> str:
            *_, dialog = api.get(f"/api/agents/dialogs?agentId={self.bot_id}")["dialogs"]
            return str(dialog["id"])

        workspace = self.world.owner.workspace.slug
        api.post("/api/services/update", {"id": things.service, "bookAgainDays": 28})
        shown = advertising_texts.text("en", self.world.owner.workspace.name)
        visitor = {
            "timezone": "Europe/Moscow",
            "client": {},
            "advertisingVersion": shown.version,
        }

        def own() -> dict[str, Any]:
            return {"externalId": self.words._text("", "own"), "metadata": {"note": ""}}

        return {
            "create_booking": lambda: {**slot(), "ignoreSchedule": True, "client": {}} | own(),
            "update_booking": lambda: {"id": booking()} | own(),
            "set_booking_status": lambda: {"id": booking(), "status": "cancelled"},
            "create_public_booking": lambda: slot() | visitor,
            "book_on_page": lambda: slot() | visitor | {"workspace": workspace},
            "submit_form": lambda: {
                "id": things.form,
                "values": dict.fromkeys(("name", "email", "phone", "message")),
            },
            "update_lead": lambda: {
                **own(),
                "id": lead()["id"],
                "data": {
                    "message": "",
                    "born": A_DATE,
                    "size": 1,
                    "vip": True,
                    "children": [{"name": "", "born": A_DATE, "sizes": [1]}],
                },
            },
            "create_client": own,
            "update_client": lambda: {"id": lead()["clientId"]} | own(),
            "decide_on_action": order,
            "reply_to_visitor": lambda: {"id": dialog()},
            "leave_contact": lambda: {"agentId": self.bot_id, "contact": {"email": ""}},
        }

    def call_all(self) -> set[str]:
        """Make every call that writes a visitor's record. Return the calls with text fields."""
        arguments, called_names = self.arguments(), set()
        # The others find the client that the first call creates.
        first = "create_client"
        for operation in sorted(
            filter(writes_person, REGISTRY), key=lambda o: (o.name != first, o.title)
        ):
            if operation.name != first and not self.cards:
                self.chat()
            schema, words = json_schema(operation.input), len(self.words.fields)
            self.words.fill(schema, {}, operation.name)
            if len(self.words.fields) == words and "additionalProperties" not in str(schema):
                continue
            self.words.fields = dict(list(self.words.fields.items())[:words])
            assert operation.name in arguments, (
                f"{operation.name} stores what a person enters. Add valid arguments of it to "
                f"arguments of {__name__}, so that the sweep sees whether an erasure removes it."
            )
            values = self.words.fill(schema, arguments[operation.name](), operation.name)
            try:
                self.call(operation, values)
            except ValidationError as error:
                msg = (
                    f"{operation.name} refuses a value of the sweep: {error} If the field takes "
                    "no other values, add a valid one to "
                    f"arguments of {__name__}, and its name to TYPED. A date of a person, which "
                    "may be of any year, is AnyDate of chalicelib/core/wire/times.py, not Day."
                )
                raise AssertionError(msg) from None
            called_names.add(operation.name)
            self.check_stored(words)
        return called_names

    def check_stored(self, number: int) -> None:
        """Check that the words after the first ones are stored, as the sweep assumes."""
        new = dict(list(self.words.fields.items())[number:])
        stored_words = left_of(list(new))
        lost = {name for word, name in new.items() if word not in stored_words}
        assert lost == set(), "The call stores other values: give it valid ones in this module."

    def call(self, operation: Operation, values: dict[str, Any]) -> None:
        if operation.audience == {Audience.SESSION}:
            call_console(self.world.workspace_id, operation.name, **values)
            return
        principal = VisitorPrincipal(visitor=new_id())
        if Audience.KEY in operation.audience:
            headers = {"authorization": f"Bearer {self.world.api.token}"}
            principal = auth.authenticate(headers, "203.0.113.9")  # type: ignore[assignment]
        reply = invoke(
            operation, principal, lambda: values, request_id=new_id(), idempotency_key=new_id()
        )
        assert json.loads(reply.body)["data"]["status"] is True

    def chat(self) -> None:
        """Write to a bot that proposes an order, and request a member of staff."""
        world, things = self.world, self.world.things
        product = world.api.get(f"/api/products/{things.product}")["product"]["name"]
        lines = {"items": [{"product": product, "quantity": 1}]}
        order = self.words.fill(json_schema(OrderProposal), None, "propose_order") | lines
        need = self.words.fill(json_schema(PersonRequest), None, "request_person")
        calls = (call("propose_order", **order), call("request_person", **need))
        script = [step for tool_call in calls for step in (tool_call, END)]
        bot = world.priced_bot(*script, f"Noted, {self.words._text('', 'answer')}.", END)
        bot.change(order_form_id=things.form)
        self.bot_id = bot.id
        request = self.words.fill(json_schema(ChatRequest), {"contact": {}}, "chat")
        message = f"{request.pop('message')}, {EMAIL}"
        request |= {"channel": "widget", "features": ["actions"]}
        self.cards.append(ask(bot, message, key="chat", **request))
        self.check_stored(0)


def left_of(texts: list[str]) -> dict[str, list[str]]:
    """Return the keys of rows and objects by the stored text that they contain."""
    folder = Path(settings().object_store.removeprefix("file://"))
    contents = {key: f"{key} {row}" for key, row in all_rows().items()}
    contents |= {
        str(path.relative_to(folder)): path.read_bytes().decode(errors="replace")
        for path in folder.rglob("*")
        if path.is_file()
    }
    contents = {key: content.lower() for key, content in contents.items()}
    places = {text: [key for key, content in contents.items() if text in content] for text in texts}
    return {text: keys for text, keys in places.items() if keys}


def erased_classes() -> list[type[Any]]:
    """Return the classes of rows that say what an erasure keeps."""
    load_all()
    found, waiting = [], [ContentRow]
    while waiting:
        row_class: Any = waiting.pop()
        waiting += row_class.__subclasses__()
        if "kept_when_erased" in vars(row_class) and row_class not in ENGINE_ROWS:
            found.append(row_class)
    return found


def erased_rows(workspace_id: str) -> Iterator[Any]:
    """Yield the rows of erased records and of their histories."""
    ids = erased_records.erased_ids(workspace_id)
    for row_class in erased_classes():
        for row in rows_of(row_class, workspace_id):
            if row.sk.partition(SEPARATOR)[0] in ids:
                yield row


def rows_of(row_class: Any, workspace_id: str) -> list[Any]:
    """Return the rows of a class in a workspace."""
    if issubclass(row_class, HistoryRow):
        return row_class.partition(f"W#{workspace_id}#{row_class.noun}#HISTORY")
    return list(row_class.partition(f"W#{workspace_id}#{LISTINGS[row_class].noun}"))


def not_kept(workspace_id: str) -> set[tuple[str, str]]:
    """Return what erased rows hold besides what is kept, as classes and attributes."""
    return {
        (type(row).__name__, name)
        for row in erased_rows(workspace_id)
        for name, value in row.attribute_values.items()
        if value not in (None, [], {}, erasure.CANCELLED) and name in row.erasable()
    }


def fill(row: Any) -> None:
    """Fill the empty attributes of a row that an erasure removes. Look-ups stay as they are."""
    examples = {
        UTCDateTimeAttribute: datetime(1987, 6, 5, tzinfo=UTC),
        DateAttribute: date(1987, 6, 5),
        NumberAttribute: 73_199_999_999,
        BooleanAttribute: True,
        UnicodeAttribute: "zqmarkqz",
        ListAttribute: ["zqmarkqz"],
        JsonAttribute: {"zqmarkqz": [73_199_999_999, True, {"born": "1987-06-05"}]},
    }
    for name, attribute in row.erasable().items():
        if not getattr(row, name) and name not in LOOKED_UP:
            assert type(attribute) in examples, (
                f"{type(row).__name__}.{name}: add an example of a {type(attribute).__name__} to "
                f"examples of {__name__}."
            )
            setattr(row, name, examples[type(attribute)])
    row.save()


@pytest.fixture
def person(
    owner: Owner, api: Api, things: Things, time: Time, monkeypatch: pytest.MonkeyPatch
) -> Person:
    """A visitor of a workspace whose webhooks fail with a reply that repeats the event."""
    receiver = Receiver(answer=lambda request: status(500, request.body))
    monkeypatch.setattr(post, "post", receiver.post)
    call_operator("create_webhook", workspaceId=owner.workspace.id, url="https://echo.example/")
    call_console(owner.workspace.id, "set_booking_page", isOn=True, offer=[things.service])
    return Person(World(owner, api, things, time, receiver, monkeypatch))


def test_no_word_of_an_erased_person_is_left_in_any_table_or_object(
    person: Person, time: Time
) -> None:
    names = person.call_all()
    check_register(person.arguments(), declared=names, place=f"arguments of {__name__}")
    run_until_idle()
    run_jobs()
    words = person.words.fields
    whom = {"workspaceId": person.world.workspace_id, "email": EMAIL}
    call_operator("erase_client", **whom)
    assert left_of([*words, EMAIL, PHONE, PHONE[2:]]) == {}
    assert not_kept(person.world.workspace_id) == set()
    time.pass_by(hours=1)
    run_until_idle()
    run_jobs()
    assert left_of([*words, EMAIL, PHONE, PHONE[2:]]) == {}


@pytest.mark.parametrize("is_kept", [False, True], ids=["removed", "found by the sweep"])
def test_an_attribute_that_is_not_on_the_list_of_its_row_does_not_survive(
    person: Person, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """A recipe adds attributes to each record. On the list, one would survive, and be found."""
    workspace_id = person.world.workspace_id
    person.call_all()
    for row_class in erased_classes():
        for name, attribute_class in PLANTED.items():
            attribute = attribute_class(null=True)
            attribute.__set_name__(row_class, name)
            monkeypatch.setattr(row_class, name, attribute, raising=False)
            monkeypatch.setitem(row_class._attributes, name, attribute)
        for row in rows_of(row_class, workspace_id):
            fill(row)
        if is_kept:
            kept = row_class.kept_when_erased | {"planted_date"}
            monkeypatch.setattr(row_class, "kept_when_erased", kept)
    call_operator("erase_client", workspaceId=workspace_id, email=EMAIL)
    assert {type(row) for row in erased_rows(workspace_id)} == set(erased_classes())
    own = {f"{row.pk}/{row.sk}" for row in erased_rows(workspace_id)}
    marks = left_of(["zqmarkqz", "73199999999", "1987-06-05"])
    left = {
        mark
        for mark, keys in marks.items()
        if any(key.endswith(one) for key in keys for one in own)
    }
    assert left == ({"1987-06-05"} if is_kept else set())
    assert not_kept(workspace_id) == set()


def test_what_an_erasure_keeps_are_attributes_of_the_row() -> None:
    for row_class in erased_classes():
        assert row_class.kept_when_erased <= row_class.get_attributes().keys()
