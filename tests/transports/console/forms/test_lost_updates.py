"""Forms that change a record: what somebody else changed meanwhile is never lost.

One test goes over all of these forms. Each opens the page, lets another person change the record by
the API, and sends the form of the page as a browser does.
"""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, NamedTuple

import pytest

from chalicelib.transports.console import console_request
from chalicelib.transports.console.console_request import SEEN
from chalicelib.transports.console.routes import SERVICE, STAFF
from tests.conftest import Answer, in_console
from tests.factories.console import World
from tests.transports.console.forms.helpers import text

Pairs = list[tuple[str, str]]


class FormFields(HTMLParser):
    """The fields that a browser sends for the form with marks, without those of its session."""

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
        elif tag == "input" and name not in {"", "csrf", "once"}:
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
    """Return the fields of the page's form."""
    found = FormFields(answer.body.decode()).fields
    assert found
    return found


def with_typed(fields: Pairs, typed: dict[str, str]) -> Pairs:
    """Return fields after a person has typed into some of them."""
    return [(name, typed.get(name, value)) for name, value in fields]


class Update(NamedTuple):
    """A form, and how another person changes the same record.

    ``typed`` is what the person types, and ``same`` what the other person sends for the same field.
    ``other`` is what the other person sends for another field. ``stored`` returns what is stored of
    the field that is typed and of the other one.
    """

    route: str
    operation: str
    ids: Callable[[World], dict[str, str]]
    typed: dict[str, str]
    same: dict[str, Any]
    other: dict[str, Any]
    stored: Callable[[World], tuple[Any, Any]]
    mine: Any

    def change(self, world: World, changes: dict[str, Any]) -> None:
        """Change the record as another person."""
        in_console(world.here.workspace_id, self.operation, **self.ids(world), **changes)


def read(operation: str, noun: str, place: str, *names: str) -> Callable[[World], Any]:
    """Return a function that reads fields of one of the world's records."""

    def stored(world: World) -> Any:
        ids = {"id": getattr(world.here, place)}
        record = in_console(world.here.workspace_id, operation, **ids)[noun]
        return tuple(record[name] for name in names)

    return stored


UPDATES = [
    Update(
        SERVICE,
        "update_service",
        lambda world: {"id": world.here.service},
        typed={"price": "5000"},
        same={"price": 402_300},
        other={"description": "Theirs"},
        stored=read("get_service", "service", "service", "price", "description"),
        mine=500_000,
    ),
    Update(
        STAFF,
        "update_resource",
        lambda world: {"id": world.here.staff},
        typed={"capacity": "5"},
        same={"capacity": 7},
        other={"serviceIds": []},
        stored=read("get_resource", "resource", "staff", "capacity", "serviceIds"),
        mine=5,
    ),
]
every_update = pytest.mark.parametrize("update", UPDATES, ids=lambda update: update.route)


@every_update
def test_what_another_person_changed_stays_and_what_was_typed_is_saved(
    update: Update, world: World
) -> None:
    boss, path = world.person("boss"), world.here.path_of(update.route)
    fields = with_typed(opened(boss.get(path)), update.typed)
    update.change(world, update.other)
    _, theirs = update.stored(world)
    assert boss.post(path, fields).status == 303
    assert update.stored(world) == (update.mine, theirs)


@every_update
def test_an_unchanged_form_changes_nothing(update: Update, world: World) -> None:
    boss, path = world.person("boss"), world.here.path_of(update.route)
    fields = opened(boss.get(path))
    update.change(world, update.other)
    update.change(world, update.same)
    before = update.stored(world)
    assert boss.post(path, fields).status == 303
    assert update.stored(world) == before


@every_update
def test_a_field_that_both_changed_is_shown_and_the_next_save_decides(
    update: Update, world: World
) -> None:
    boss, path = world.person("boss"), world.here.path_of(update.route)
    fields = with_typed(opened(boss.get(path)), update.typed)
    update.change(world, update.same)
    before = update.stored(world)
    answer = boss.post(path, fields)
    assert answer.status == 409
    assert "Somebody changed this while you were typing." in text(answer)
    assert re.search("<dt>[^<]+</dt><dd>Now: [^<]+<br>You typed: [^<]+<", text(answer))
    assert update.stored(world) == before
    again = opened(answer)
    assert dict(again).items() >= update.typed.items(), "what was typed stays"
    assert boss.post(path, again).status == 303
    assert update.stored(world) == (update.mine, before[1])


@every_update
@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("is_last", [True, False], ids=["before the commit", "before the call"])
def test_a_change_between_the_comparison_and_the_write_is_compared_again(
    update: Update, is_same: bool, is_last: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss, path = world.person("boss"), world.here.path_of(update.route)
    fields = with_typed(opened(boss.get(path)), update.typed)
    changes = [update.same if is_same else update.other]
    invoke = console_request.invoke

    def change() -> None:
        if changes:
            update.change(world, changes.pop())

    def after_a_change(operation: Any, *args: Any, **options: Any) -> Any:
        check = options["check"]
        if operation.name == update.operation and check and is_last:
            options["check"] = lambda: (check(), change())
        elif operation.name == update.operation:
            change()
        return invoke(operation, *args, **options)

    monkeypatch.setattr(console_request, "invoke", after_a_change)
    mine, theirs = update.stored(world)
    answer = boss.post(path, fields)
    assert not changes
    assert answer.status == (409 if is_same else 303)
    after = update.stored(world)
    assert after[0] not in {mine, update.mine} if is_same else after[0] == update.mine
    assert (after[1] == theirs) is is_same


@every_update
def test_a_form_without_marks_replaces_nothing_unseen(update: Update, world: World) -> None:
    boss, path = world.person("boss"), world.here.path_of(update.route)
    fields = [*with_typed(opened(boss.get(path)), update.typed), (SEEN, "")]
    before = update.stored(world)
    assert boss.post(path, fields).status == 409
    for wrong in ("price", "price=0", "price=0123456789abcdefg", f"{fields[0][1]};"):
        assert boss.post(path, [*fields, (SEEN, wrong)]).status == 400
    assert update.stored(world) == before
