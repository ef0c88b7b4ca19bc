"""Test that an erasure removes every word that a visitor entered, from every field.

The sweep fills every text field of every call that writes a client, a lead, a booking or a dialog.
New fields and calls are included. A call with text fields needs valid arguments here.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.core.settings import settings
from chalicelib.core.wire.json_schema import json_schema
from chalicelib.domains.chat.flows.chat_request import ChatRequest
from chalicelib.domains.chat.flows.proposal_tools import OrderProposal, PersonRequest
from chalicelib.gateways import post
from chalicelib.gateways.llm import ProviderUsage
from chalicelib.transports import auth
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows, call_console, call_operator
from tests.factories.chat import ChatReply, ask
from tests.factories.event_runs import run_until_idle
from tests.factories.event_triggers import World
from tests.factories.examples import Things
from tests.factories.proposals import call, card
from tests.fakes.receiver import Receiver, status

EMAIL, PHONE = "zoe.person@home.example", "+79161110001"
RECORDS = ("LEAD_ID", "CLIENT_ID", "BOOKING_ID", "DIALOG_ID")
NOUNS = {"lead", "client", "booking", "dialog"}
DOMAINS = re.compile(r"\.domains\.(leads|bookings|booking_page|clients|client_profiles|chat)\.")
TYPED = re.compile(r"(id|ids|at|token|key|timezone|workspace|features|prepared)$", re.IGNORECASE)
"""Names of fields that hold no text that a visitor writes."""
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

    def fill(self, schema: Any, value: Any, at: str, definitions: Any = None) -> Any:
        """Return a value of a JSON Schema that has a word in each text field."""
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
                return {name: self._text(text, f"{at}.{name}") for name, text in value.items()}
            case "array" if schema["items"].get("type") == "string":
                text = self.fill(schema["items"], None, at, definitions)
                return value if text is None else [text]
            case "string" if not {"enum", "const", "pattern", "format"} & set(schema):
                return self._text(value, at)
            case _:
                return value

    def _properties(
        self, schema: Any, value: Any, at: str, definitions: Any
    ) -> Iterator[tuple[str, Any]]:
        for name, subschema in schema["properties"].items():
            field_value = self.fill(subschema, (value or {}).get(name), f"{at}.{name}", definitions)
            if field_value is not None:
                yield name, field_value

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
    names_record = any(record_id in str(operation.example) for record_id in RECORDS)
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

        workspace = self.world.owner.workspace.slug
        visitor = {"timezone": "Europe/Moscow", "client": {}}
        return {
            "create_booking": lambda: {**slot(), "ignoreSchedule": True, "client": {}},
            "set_booking_status": lambda: {"id": booking(), "status": "cancelled"},
            "create_public_booking": lambda: slot() | visitor,
            "book_on_page": lambda: slot() | visitor | {"workspace": workspace},
            "submit_form": lambda: {
                "id": things.form,
                "values": dict.fromkeys(("name", "email", "phone", "message")),
            },
            "update_lead": lambda: {"id": lead()["id"], "data": {"message": ""}},
            "update_client": lambda: {"id": lead()["clientId"]},
            "decide_on_action": order,
            "leave_contact": lambda: {"agentId": self.bot_id, "contact": {"email": ""}},
        }

    def call_all(self) -> set[str]:
        """Make every call that writes a visitor's record. Return the calls with text fields."""
        arguments, called_names = self.arguments(), set()
        self.chat()
        for operation in sorted(filter(writes_person, REGISTRY), key=lambda o: o.title):
            schema, words = json_schema(operation.input), len(self.words.fields)
            self.words.fill(schema, {}, operation.name)
            if len(self.words.fields) == words and "additionalProperties" not in str(schema):
                continue
            self.words.fields = dict(list(self.words.fields.items())[:words])
            values = self.words.fill(schema, arguments[operation.name](), operation.name)
            self.call(operation, values)
            called_names.add(operation.name)
            self.check_stored(words)
        return called_names

    def check_stored(self, number: int) -> None:
        """Check that the words after the first ones are stored, as the sweep assumes."""
        new = dict(list(self.words.fields.items())[number:])
        stored_words = left_of(list(new))
        assert {name for word, name in new.items() if word not in stored_words} == set()

    def call(self, operation: Operation, values: dict[str, Any]) -> None:
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
    assert names == set(person.arguments())
    run_until_idle()
    run_jobs()
    words = person.words.fields
    whom = {"workspaceId": person.world.workspace_id, "email": EMAIL}
    call_operator("erase_client", **whom)
    assert left_of([*words, EMAIL, PHONE, PHONE[2:]]) == {}
    time.pass_by(hours=1)
    run_until_idle()
    run_jobs()
    assert left_of([*words, EMAIL, PHONE, PHONE[2:]]) == {}
