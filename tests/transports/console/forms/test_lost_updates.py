"""Forms never overwrite a change that another user has made since the form was opened.

One test goes over all of these forms. It opens the page, lets another user change the record by the
"""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import product
from typing import Any, NamedTuple

import pytest

from chalicelib.core.errors import ConflictError
from chalicelib.core.operations import REGISTRY
from chalicelib.domains.identity.store import workspaces
from chalicelib.transports.console import console_request
from chalicelib.transports.console.console_request import PASSWORD_FIELD, SEEN
from chalicelib.transports.console.routes import (
    BOT,
    CLIENT,
    FORM,
    PREFIX,
    ROUTES,
    SERVICE,
    SITE,
    STAFF,
    WEBHOOK,
    WORKSPACE,
)
from infra.local.demo.examples import fill, words_in
from tests.conftest import Answer, call_console
from tests.factories import console
from tests.factories.console import World, is_text
from tests.factories.recipes import example_of, record_in
from tests.support.effort import matrix
from tests.transports.console.forms.helpers import text

SECTIONS = f"{SITE}/pages/{{page}}/sections"
PRODUCT = f"{WORKSPACE}/products/{{product}}"
Pairs = list[tuple[str, str]]


class FormFields(HTMLParser):
    """The fields that a browser sends for the marked form, without the fields of its session."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: Pairs = []
        self._pairs: Pairs = []
        self._area = self._select = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        name = values.get("name", "")
        if tag == "form":
            self._pairs = []
        elif tag == "select":
            self._select = name
            self._pairs.append((name, ""))
        elif tag == "option" and self._select and "selected" in values:
            self._pairs[-1] = (self._select, values["value"])
        elif tag == "textarea":
            self._area = name
            self._pairs.append((name, ""))
        elif tag == "input" and name not in {"", "csrf", "once"} and values.get("type") != "file":
            is_tick = values.get("type") in {"checkbox", "radio"}
            if "checked" in values or not is_tick:
                self._pairs.append((name, values.get("value", "on")))

    def handle_data(self, data: str) -> None:
        if self._area:
            self._pairs[-1] = (self._area, data.removeprefix("\n"))

    def handle_endtag(self, tag: str) -> None:
        self._area = "" if tag == "textarea" else self._area
        self._select = "" if tag == "select" else self._select
        if tag == "form" and SEEN in dict(self._pairs):
            self.fields = self._pairs


def opened(answer: Answer) -> Pairs:
    """Return the fields of the page's form, without the password that the user types."""
    fields = FormFields(answer.body.decode()).fields
    assert fields
    return [field for field in fields if field[0] != PASSWORD_FIELD]


def type_value(name: str, value: str) -> Callable[[Pairs], Pairs]:
    """Return a function that types a value into a field."""
    return lambda fields: [
        (field, value if field == name else value_before) for field, value_before in fields
    ]


def unticked(name: str, value: str) -> Callable[[Pairs], Pairs]:
    """Return a function that removes a tick."""
    return lambda fields: [pair for pair in fields if pair != (name, value)]


def heading(title: str) -> dict[str, str | None]:
    """Return a section with a heading."""
    return {
        "type": "heading",
        "title": None,
        "text": title,
        "fileId": None,
        "formId": None,
        "url": None,
    }


def type_heading(fields: Pairs) -> Pairs:
    """Type a heading into a page without sections, or into its first section."""
    others = [pair for pair in fields if pair[0] not in {"type", "text-0"}]
    return [*others, ("type", "heading"), ("text-0", "Mine")]


class Update(NamedTuple):
    """A form, and how another user changes the same record.

    ``types`` enters the user's value. ``same`` is the other user's value of the same field, and
    ``other`` the other user's value of another field. ``read_state`` returns the stored values of
    both fields, and ``mine`` is the stored form of the user's value. ``sent`` is the form's
    operation, if another one changes the record for programs.
    """

    route: str
    operation: str
    ids: dict[str, str]
    types: Callable[[Pairs], Pairs]
    same: Any
    other: Any
    read_state: Callable[[World], Any]
    mine: Any
    sent: str = ""

    def is_sent_by(self, operation: Any) -> bool:
        """Whether the form sends what the user typed by this operation."""
        return bool(operation.name == (self.sent or self.operation))

    def change(self, world: World, changes: Any) -> None:
        """Change the record as another user. Capital letters stand for a record's id."""
        call(world, self.operation, **self.ids, **changes)


def call(world: World, operation: str, **arguments: Any) -> Any:
    home = workspaces.get(world.here.workspace_id)
    ids = {name.upper(): record_id for name, record_id in world.here.values_of("").items()}
    return call_console(home.id, operation, account_id=home.owner_id, **fill(arguments, ids))


def reading(operation: str, path: str, *names: str, **ids: str) -> Callable[[World], Any]:
    """Return a function that reads fields of a record of the world."""

    def read_state(world: World) -> Any:
        record = call(world, operation, **ids)
        for step in filter(None, path.split(".")):
            record = record[step]
        return tuple(record[name] for name in names)

    return read_state


def webhook(world: World) -> Any:
    (webhook,) = call(world, "list_webhooks")["webhooks"]
    return webhook["url"], webhook["events"]


def key(world: World) -> Any:
    (key,) = [key for key in call(world, "list_keys")["keys"] if key["id"] == world.here.key]
    return key["callsPerMinute"], key["name"]


def limits(world: World) -> Any:
    budget = call(world, "get_bot_limits", agentId="BOT")
    return budget["daily"]["limit"], budget["weekly"]["limit"]


def booking_page(world: World) -> Any:
    page = call(world, "get_booking_page")
    return page["bookingPage"]["phone"], page["services"][0]["isOffered"]


def choices(world: World) -> Any:
    preferences = call(world, "get_notifications")
    (lead,) = (lead for lead in preferences["choices"] if lead["kind"] == "lead")
    return (lead["mail"], lead["telegram"]), preferences["language"]


def week(world: World) -> Any:
    rules = call(world, "list_availability", resourceId="STAFF")["rules"]
    days = {rule["weekday"]: rule["intervals"] for rule in rules}
    return days["mon"][0]["start"], days["tue"][0]["start"]


def hours(**starts: str) -> Any:
    """Return the rules of the world's staff with other starts of some days."""
    days = dict.fromkeys(("mon", "tue", "wed", "thu", "fri"), "09:00") | starts
    return {"rules": [{"weekday": day, "start": at, "end": "18:00"} for day, at in days.items()]}


MINE, THEIRS = "https://mine.example/", "https://theirs.example/"
PHONE = {"name": "phone", "label": "Theirs", "type": "phone", "required": True}
TERMS = ("depositPercent", "refundUntilMin")
SHOP = {"provider": "test", "shopId": "shop"}
OTHERS = [
    Update(
        *(f"{WORKSPACE}/payment-settings", "set_merchant", {}, type_value("vatCode", "5")),
        *({**SHOP, "vatCode": "7"}, {**SHOP, "taxSystemCode": "2"}),
        *(reading("get_merchant", "merchant", "vatCode", "taxSystemCode"), "5"),
    ),
    Update(
        *(f"{SERVICE}/payment", "set_payment_terms", {"id": "SERVICE"}),
        type_value("depositPercent", "50"),
        {"depositPercent": 70, "refundUntilMin": 1440},
        {"depositPercent": 100, "refundUntilMin": 60},
        *(reading("get_payment_terms", "paymentTerms", *TERMS, id="SERVICE"), 50),
    ),
    Update(
        *(SERVICE, "update_service", {"id": "SERVICE"}, type_value("price", "5000")),
        *({"price": 402_300}, {"description": "Theirs"}),
        *(reading("get_service", "service", "price", "description", id="SERVICE"), 500_000),
    ),
    Update(
        *(PRODUCT, "update_product", {"id": "PRODUCT"}, type_value("price", "5000")),
        *({"price": 402_300}, {"description": "Theirs"}),
        *(reading("get_product", "product", "price", "description", id="PRODUCT"), 500_000),
    ),
    Update(
        *(STAFF, "update_resource", {"id": "STAFF"}, type_value("capacity", "5")),
        *({"capacity": 7}, {"serviceIds": []}),
        *(reading("get_resource", "resource", "capacity", "serviceIds", id="STAFF"), 5),
    ),
    Update(
        *(f"{STAFF}/hours", "set_availability", {"resourceId": "STAFF"}),
        *(type_value("start-mon", "10:00"), hours(mon="07:00"), hours(tue="08:00"), week, "10:00"),
    ),
    Update(
        *(f"{BOT}/capabilities", "update_agent", {"id": "BOT"}, type_value("privacyUrl", MINE)),
        *({"privacyUrl": THEIRS}, {"capabilities": ["handover"]}),
        *(reading("get_agent", "agent", "privacyUrl", "capabilities", id="BOT"), MINE),
    ),
    Update(
        *(f"{BOT}/limits", "set_bot_limits", {"agentId": "BOT"}, type_value("daily", "5")),
        *({"daily": 700}, {"weekly": 900}, limits, 500),
    ),
    Update(
        *(SECTIONS, "update_page", {"id": "PAGE"}, type_heading),
        *({"sections": [heading("Theirs")]}, {"title": "Theirs"}),
        *(reading("get_page", "page", "sections", "title", id="PAGE"), [heading("Mine")]),
        "save_page_draft",
    ),
    Update(
        *(SITE, "update_site", {"id": "SITE"}, type_value("title", "Mine")),
        *({"title": "Theirs"}, {"status": "inactive"}),
        *(reading("list_deleted_pages", "project", "title", "status", projectId="SITE"), "Mine"),
    ),
    Update(
        *(f"{WORKSPACE}/settings", "set_workspace", {}, type_value("name", "Mine")),
        *({"name": "Theirs"}, {"timezone": "Asia/Tomsk"}),
        *(reading("get_workspace", "workspace", "name", "timezone"), "Mine"),
    ),
    Update(
        *(f"{WORKSPACE}/booking-page", "set_booking_page", {}, type_value("phone", "Mine")),
        *({"phone": "Theirs"}, {"withdraw": ["SERVICE"]}, booking_page, "Mine"),
    ),
    Update(
        *(f"{WORKSPACE}/notifications", "set_notifications", {}, unticked("mail", "lead")),
        {"choices": [{"kind": "lead", "mail": True, "telegram": True}]},
        *({"language": "en"}, choices, (False, False)),
    ),
    Update(
        *(f"{PREFIX}/account", "update_account", {}, type_value("name", "Mine")),
        *({"name": "Theirs"}, {"language": "ru"}),
        *(reading("get_account", "account", "name", "language"), "Mine"),
    ),
    Update(
        *(WEBHOOK, "update_webhook", {"id": "WEBHOOK"}, type_value("url", MINE)),
        *({"url": THEIRS}, {"events": ["lead.created"]}, webhook, MINE),
    ),
    Update(
        *(f"{WORKSPACE}/keys/{{id}}", "update_key", {"id": "ID"}),
        *(type_value("callsPerMinute", "5"), {"callsPerMinute": 7}, {"name": "Theirs"}),
        *(key, 5),
    ),
    Update(
        *(f"{WORKSPACE}/files/{{file}}", "update_file", {"id": "FILE"}),
        *(type_value("name", "Mine"), {"name": "Theirs"}, {"folderId": None}),
        *(reading("get_file", "file", "name", "folderId", id="FILE"), "Mine"),
    ),
    Update(
        *(CLIENT, "update_client", {"id": "CLIENT"}, type_value("notes", "Mine")),
        *({"notes": "Theirs"}, {"tags": ["theirs"]}),
        *(reading("get_client", "client", "notes", "tags", id="CLIENT"), "Mine"),
    ),
    Update(
        *(
            f"{WORKSPACE}/leads/{{lead}}",
            "update_lead",
            {"id": "LEAD"},
            type_value("notes", "Mine"),
        ),
        *({"notes": "Theirs"}, {"tags": ["theirs"]}),
        *(reading("get_lead_details", "lead", "notes", "tags", id="LEAD"), "Mine"),
    ),
    Update(
        *(FORM, "update_form", {"id": "FORM"}, type_value("title", "Mine")),
        *({"title": "Theirs"}, {"fields": [PHONE]}),
        *(reading("get_form", "form", "title", "fields", id="FORM"), "Mine"),
    ),
]
"""Forms that show other fields than the first two texts of their record."""


def update_of(route: str) -> Update:
    """Return an update of the first two texts that the example of a form's operation changes."""
    operation = REGISTRY[ROUTES[route].posts]
    fields, example = operation.input_schema["properties"], example_of(operation)
    (field,) = [name for name, value in example.items() if words_in(value)]
    texts = [name for name in fields if is_text(fields[name]) and name != field]
    assert texts[1:], f"{operation.name} changes fewer than two texts. Add {route} to OTHERS."
    first, second = texts[:2]
    (*_, variable) = re.findall(r"{(\w+)}", route)
    ids = {field: "BOT" if route.startswith(BOT) else variable.upper()}
    read = f"get_{operation.name.removeprefix('update_')}"

    def read_state(world: World) -> Any:
        record = record_in(call(world, read, **ids))
        return record[first], record[second]

    return Update(
        *(route, operation.name, ids, type_value(first, "Mine")),
        *({first: "Theirs"}, {second: "Theirs"}, read_state, "Mine"),
    )


UPDATES = OTHERS + [
    update_of(route)
    for route in console.UPDATES
    if route not in {update.route for update in OTHERS}
]
every_update = pytest.mark.parametrize("update", UPDATES, ids=lambda update: update.route)


def test_every_form_that_changes_a_record_is_tried() -> None:
    assert sorted(update.route for update in UPDATES) == sorted(console.UPDATES)


@every_update
def test_what_another_person_changed_stays_and_what_was_typed_is_saved(
    update: Update, world: World
) -> None:
    console_owner, path = world.person("boss"), world.here.path_of(update.route)
    fields = update.types(opened(console_owner.get(path)))
    update.change(world, update.other)
    _, theirs = update.read_state(world)
    assert console_owner.post(path, fields).status == 303
    assert update.read_state(world) == (update.mine, theirs)


@every_update
def test_an_unchanged_form_changes_nothing(update: Update, world: World) -> None:
    console_owner, path = world.person("boss"), world.here.path_of(update.route)
    fields = opened(console_owner.get(path))
    update.change(world, update.other)
    update.change(world, update.same)
    state_before = update.read_state(world)
    assert console_owner.post(path, fields).status == 303
    assert update.read_state(world) == state_before


@every_update
def test_a_field_that_both_changed_is_shown_and_the_next_save_decides(
    update: Update, world: World
) -> None:
    console_owner, path = world.person("boss"), world.here.path_of(update.route)
    fields = update.types(opened(console_owner.get(path)))
    update.change(world, update.same)
    state_before = update.read_state(world)
    answer = console_owner.post(path, fields)
    assert answer.status == 409
    assert "Someone changed this while you were typing." in text(answer)
    assert re.search("<dt>[^<]+</dt><dd>Now: [^<]+<br>You typed: [^<]+<", text(answer))
    assert update.read_state(world) == state_before
    reopened = opened(answer)
    assert update.types(reopened) == reopened, "what was typed stays"
    assert console_owner.post(path, reopened).status == 303
    assert update.read_state(world) == (update.mine, state_before[1])


@matrix("update, moment", UPDATES, [*product([True, False], repeat=2)])
def test_a_change_between_the_comparison_and_the_write_is_compared_again(
    update: Update, moment: tuple[bool, bool], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_same, is_last = moment  # The last moment is before the commit, the other before the call.
    console_owner, path = world.person("boss"), world.here.path_of(update.route)
    fields = update.types(opened(console_owner.get(path)))
    changes = [update.same if is_same else update.other]
    invoke = console_request.invoke

    def change() -> None:
        if changes:
            update.change(world, changes.pop())

    def after_a_change(operation: Any, *args: Any, **options: Any) -> Any:
        check = options["check"]
        if update.is_sent_by(operation) and check and is_last:
            options["check"] = lambda: (check(), change())
        elif update.is_sent_by(operation):
            change()
        return invoke(operation, *args, **options)

    monkeypatch.setattr(console_request, "invoke", after_a_change)
    mine, theirs = update.read_state(world)
    answer = console_owner.post(path, fields)
    assert not changes
    assert answer.status == (409 if is_same else 303)
    state_after = update.read_state(world)
    assert state_after[0] not in [mine, update.mine] if is_same else state_after[0] == update.mine
    assert (state_after[1] == theirs) is is_same


@every_update
def test_a_refused_form_still_knows_what_it_was_opened_with(
    update: Update, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    console_owner, path = world.person("boss"), world.here.path_of(update.route)
    fields = update.types(opened(console_owner.get(path)))

    def refuse(operation: Any, *args: Any, **options: Any) -> Any:
        if update.is_sent_by(operation):
            raise ConflictError("Not now.")
        return invoke(operation, *args, **options)

    invoke = console_request.invoke
    with monkeypatch.context() as patched:
        patched.setattr(console_request, "invoke", refuse)
        refused_form = opened(console_owner.post(path, fields))
    update.change(world, update.same)
    assert console_owner.post(path, refused_form).status == 409
    assert update.read_state(world)[0] != update.mine


@every_update
def test_a_form_without_marks_replaces_nothing_unseen(update: Update, world: World) -> None:
    console_owner, path = world.person("boss"), world.here.path_of(update.route)
    fields = [*update.types(opened(console_owner.get(path))), (SEEN, "")]
    state_before = update.read_state(world)
    assert console_owner.post(path, fields).status == 409
    for wrong in ("price", "price=0", "price=0123456789abcdefg", f"{fields[0][1]};"):
        assert console_owner.post(path, [*fields, (SEEN, wrong)]).status == 400
    assert update.read_state(world) == state_before
