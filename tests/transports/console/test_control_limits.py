"""The limits of each control are those of the argument that it fills.

The sweep opens each page with a form, types another number into each control, sends the form with
each of its buttons, and looks where the numbers arrive in the operations that the page calls. So a
new page or control is compared without a declaration. Nothing is stored, because the operations
are refused before they run.

What is compared:

- a control whose text is a string argument has its ``maxLength`` and ``minLength``;
- a control whose text is turned into something else, such as an amount or a list, has none;
- a text area has no maximum, because a browser would cut a pasted text without a word;
- a control is ``required`` if the page or the operation refuses it empty;
- a number has the minimum and the maximum of its argument.

Ticks, selects and files are not compared: a browser sends only what the page offers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.wire import parsing
from chalicelib.transports.console.console_request import CODE_FIELD, PASSWORD_FIELD, ConsoleRequest
from chalicelib.transports.console.routes import INVITATION, ROUTES
from chalicelib.transports.web import booking_page, control_limits, render
from tests.conftest import PASSWORD, Answer, call_operator
from tests.factories.console import Person, World, begun
from tests.factories.console_forms import GUESTS, VIEWS
from tests.support.sweep import sweep

PAGES = [route for route, page in ROUTES.items() if page.get]
CONSOLE_ONLY = {
    PASSWORD_FIELD: "proves who sends the form",
    CODE_FIELD: "proves who sends the form",
    "ruleValue": "a percentage or an amount, as the next control says",
    "roundTo": "an amount in major units, of which the page makes minor ones",
    "options": "a field of a form has options only if it is a select",
}
"""Controls whose text reaches no operation, with the reason. They have no length."""
REQUIRED_BY_PAGE = {
    "set_site_domain.domain": "null removes the domain, which has a button of its own",
    "create_booking.client.name": "a client who is found needs no name",
}
"""Arguments of which the page knows better whether a form may lack them, with the reason."""
UNCOMPARED = {
    *("hidden", "checkbox", "radio", "submit", "button", "file", "color", "search"),
    "select",
}
PREPARED = {"create_category": {"category": {"id": "new"}}}
"""Operations that a page calls before the one that its form is for, with what they answer."""
LENGTHS = {
    "minlength": "minLength",
    "maxlength": "maxLength",
    "min": "minimum",
    "max": "maximum",
}
"""Attributes of a control, with the keyword of JSON Schema for each."""
CURE = (
    "Take the limits from the operation: a field of a Form has them by its name, and any other "
    'control by of="operation" in the template.'
)
DATED = {"date": "2031-02-{:02}", "time": "10:{:02}"}

TEMPLATES = Path(render.__file__).parent / "templates"


@dataclass
class Control:
    """A control of a form, with its attributes. ``value`` is what a browser sends."""

    name: str
    type: str
    attributes: Mapping[str, str | None]
    value: str = ""
    is_sent: bool = True

    @property
    def is_typed(self) -> bool:
        """Whether users type into it."""
        # Only programs fill in a control that the keyboard does not reach.
        is_reached = self.attributes.get("tabindex") != "-1"
        return self.type not in UNCOMPARED and is_reached and "disabled" not in self.attributes

    def probe(self, number: int) -> str:
        """Return a value that no other control of the form has."""
        return DATED[self.type].format(number + 1) if self.type in DATED else str(7001 + number)


Button = tuple[str, str]


@dataclass
class Form:
    """A form that is sent by POST, with its controls and its buttons."""

    action: str
    controls: list[Control] = field(default_factory=list)
    buttons: dict[Button, bool] = field(default_factory=dict)
    """Names and values of its buttons, and whether a browser checks the form before."""

    @property
    def typed(self) -> list[tuple[str, Control]]:
        """The controls into which users type, by name. Those of a list of rows count once."""
        return list({each.name: each for each in self.controls if each.is_typed}.items())


class Forms(HTMLParser):
    """Reads the forms of a page into which users type."""

    def __init__(self, html: str, path: str) -> None:
        super().__init__()
        self.path, self.forms = path, list[Form]()
        self._form: Form | None = None
        self._last: Control | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert len(values) == len(attrs), f"{self.path}: an attribute stands twice in {attrs}"
        name = values.get("name") or ""
        if tag == "form":
            action = values.get("action") or self.path
            self._form = Form(action) if values.get("method") == "post" else None
        if self._form is None:
            return
        if tag == "button" and values.get("type") != "button" and "disabled" not in values:
            self._form.buttons[name, values.get("value") or ""] = "formnovalidate" not in values
        if tag in {"input", "textarea", "select"} and name:
            kind = (values.get("type") or "text") if tag == "input" else tag
            is_sent = kind not in {"checkbox", "radio"} or "checked" in values
            control = Control(name, kind, values, values.get("value") or "", is_sent)
            self._form.controls.append(control)
            self._last = control if tag != "input" else None
        if tag == "option" and self._last and ("selected" in values or not self._last.value):
            self._last.value = values.get("value") or ""

    def handle_data(self, data: str) -> None:
        if self._last and self._last.type == "textarea":
            self._last.value = data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"textarea", "select"}:
            self._last = None
        if tag == "form":
            if self._form and self._form.typed:
                self.forms.append(self._form)
            self._form = None


class Place(NamedTuple):
    """Where a text arrived: the operation, the path in its arguments, and whether as it was."""

    operation: str
    path: tuple[str | int, ...]
    is_text: bool

    def limits(self, control: Control) -> dict[str, str]:
        """Return the attributes that the argument gives to its control."""
        names = LENGTHS if control.type in {"number", "range"} else ("minlength", "maxlength")
        if control.type in DATED or not (self.is_text or control.type in {"number", "range"}):
            return {}
        if control.type == "textarea":
            names = ("minlength",)
        found = {name: self.keyword(LENGTHS[name]) for name in names}
        return {
            name: bound
            for name, bound in found.items()
            if bound is not None and (name, bound) not in {("minlength", "0"), ("minlength", "1")}
        }

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The JSON Schemas of the argument, one for each alternative."""
        root = REGISTRY[self.operation].input_schema
        schemas = [root]
        for step in self.path:
            key = "items" if isinstance(step, int) else "properties"
            found = [part[key] for part in _alternatives(root, schemas) if key in part]
            schemas = [part[step] if key == "properties" else part for part in found]
        return list(_alternatives(root, schemas))

    def keyword(self, name: str) -> str | None:
        """Return the value of a keyword of the argument's schema."""
        values = [schema[name] for schema in self.schemas if name in schema]
        return str(values[0]) if values else None

    def __str__(self) -> str:
        """Return it as ``create_client.name``."""
        return ".".join(map(str, (self.operation, *self.path)))


def _alternatives(root: dict[str, Any], schemas: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for schema in schemas:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            yield from _alternatives(root, [root["$defs"][name]])
        else:
            yield schema
        for key in ("anyOf", "oneOf", "allOf"):
            yield from _alternatives(root, schema.get(key, []))


class Called(BaseException):
    """A page has called an operation that changes something."""


class Calls(list[tuple[str, dict[str, Any]]]):
    """The changes that pages have asked for, none of which was made."""

    def find(self, probe: str) -> Place | None:
        """Return where a text arrived."""
        for operation, arguments in self:
            for path, value in _leaves(arguments):
                if value == probe:
                    # An item of a list is a part of what was typed.
                    return Place(operation, path, is_text=not isinstance(path[-1], int))
                number = int(probe) if probe.isdecimal() else None
                if value in {number, (number or -1) * 100} or str(value).startswith(probe):
                    return Place(operation, path, is_text=False)
        return None


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, (*path, 0))
    else:
        yield path, value


@pytest.fixture
def admin(world: World) -> Person:
    """A signed-in administrator of the platform, whose blog has a post."""
    email = "admin@example.com"
    call_operator("create_account", email=email, password=PASSWORD, name="admin", role="admin")
    admin = Person(email, begun(email))
    admin.post("/console/blog", {"title": "Rye", "content": "Rye", "slug": "rye", "once": "1"})
    return admin


@pytest.fixture
def calls(admin: Person, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The changes that pages ask for once ``admin`` has a post. They are recorded and refused."""
    recorded, call = Calls(), ConsoleRequest._call

    def record(request: ConsoleRequest, operation: str, arguments: Any, *rest: Any) -> Any:
        if request.http.method == "GET" or REGISTRY.entry(operation).read_only:
            return call(request, operation, arguments, *rest)
        recorded.append((operation, dict(arguments)))
        if operation in PREPARED:
            return PREPARED[operation]
        raise Called

    monkeypatch.setattr(ConsoleRequest, "_call", record)
    return recorded


class Sender:
    """Sends the form of a page, and says where each text arrives."""

    def __init__(self, user: Person, form: Form, calls: Calls) -> None:
        self.user, self.form, self.calls = user, form, calls
        self.places: dict[str, tuple[Place, Button]] = {}
        """Where the text of each control arrives, and with which button."""
        self.idle: list[Button] = []
        """Buttons that ask for no change, such as one that searches."""
        typed = self._probes()
        for button in form.buttons or [("", "")]:
            sent = self._send(typed, button)
            if not sent:
                self.idle.append(button)
            for name, probe in typed.items():
                if name not in self.places and (place := sent.find(probe)):
                    self.places[name] = place, button

    def _probes(self) -> dict[str, str]:
        return {name: each.probe(number) for number, (name, each) in enumerate(self.form.typed)}

    def _send(self, typed: Mapping[str, str], button: Button) -> Calls:
        pairs = [
            (control.name, typed.get(control.name, control.value))
            for control in self.form.controls
            if control.is_sent and control.type != "file" and control.name != "csrf"
        ]
        self.calls.clear()
        with suppress(Called):
            self.user.post(self.form.action, [*pairs, button] if button[0] else pairs)
        return Calls(self.calls)

    def refuses_empty(self, name: str) -> bool:
        """Whether the page or the operation refuses the form without the text of a control."""
        place, button = self.places[name]
        sent = self._send(self._probes() | {name: ""}, button)
        arguments = next((each for called, each in sent if called == place.operation), None)
        if arguments is None:  # Without the text, the page refuses the form or calls less.
            return not sent
        operation = REGISTRY[place.operation]
        try:
            parsing.parse(operation.input, arguments, drop_empty=operation.drops_empty_texts)
        except ValidationError as error:
            path = ".".join(map(str, place.path))
            return any(each.field == path for each in error.errors)
        return False


def differences(sender: Sender) -> Iterator[str]:
    """Yield a line for each control whose limits are not those of its argument."""
    form = sender.form
    for name, control in form.typed:
        shown = {each: control.attributes[each] for each in LENGTHS if each in control.attributes}
        if control.type in DATED:  # A page may offer later days only.
            shown = {}
        is_required = "required" in control.attributes
        if name in sender.places:
            place = sender.places[name][0]
            yield from _told(control, shown, place.limits(control), str(place))
            if is_required != sender.refuses_empty(name):
                # The page knows whether a date or a time is needed, by other choices in the form.
                is_own = str(place) in REQUIRED_BY_PAGE or control.type in DATED
                if not is_own or (is_required and control.type in DATED):
                    yield f"{name}: required is {is_required}, {not is_required} in {place}"
        elif control.type not in DATED:
            yield from _told(control, shown, {}, "no operation")
            if name not in CONSOLE_ONLY:
                yield f"{name}: reaches no operation. Say in CONSOLE_ONLY why it has no limits"
    if any("required" in control.attributes for _, control in form.typed):
        for button in set(sender.idle) & {
            each for each, is_checked in form.buttons.items() if is_checked
        }:
            yield f"{button}: asks for no change. Give it formnovalidate, as others are required"


def _told(
    control: Control, shown: Mapping[str, Any], expected: Mapping[str, Any], where: str
) -> Iterator[str]:
    for each in LENGTHS:
        if shown.get(each) != expected.get(each):
            yield (f"{control.name}: {each} is {shown.get(each)}, {expected.get(each)} in {where}")


def opened(route: str, query: str, world: World, user: Person) -> tuple[str, Answer]:
    """Return the path of a page, and the page."""
    place = world.there if route == INVITATION else world.here
    path = place.path_of(route) if "{post}" not in route else route.format(post="rye")
    return path, user.get(path + query.format(**vars(world.here)))


@sweep("route", PAGES)
def test_each_control_has_the_limits_of_the_argument_that_it_fills(
    route: str, world: World, calls: Calls, admin: Person
) -> None:
    boss = world.person("boss")
    user = Person("") if route in GUESTS else admin if ROUTES[route].admin else boss
    found = []
    for query in VIEWS.get(route, ("",)):
        path, page = opened(route, query, world, user)
        if page.status == 303:
            continue
        assert page.status == 200, query
        for form in Forms(page.body.decode(), path).forms:
            to = form.action.replace(world.here.path, "")
            found += [
                f"{route}{query}, form to {to}: {line}"
                for line in differences(Sender(user, form, calls))
            ]
    assert not found, "\n".join([*found, CURE])


def test_each_control_of_the_booking_page_has_the_limits_of_its_argument(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, call, visitor = Calls(), booking_page.call, Person("")

    def record(request: Any, operation: str, arguments: Any, *rest: Any) -> Any:
        if REGISTRY.entry(operation).read_only:
            return call(request, operation, arguments, *rest)
        calls.append((operation, dict(arguments)))
        raise Called

    monkeypatch.setattr(booking_page, "call", record)
    path = f"/book/{world.here.slug}/{world.here.service}"
    page = visitor.get(f"{path}?at=2027-01-19T02:00:00Z")
    (form,) = Forms(page.body.decode(), path).forms
    assert [name for name, _ in form.typed] == ["name", "phone", "email", "notes"]
    found = list(differences(Sender(visitor, form, calls)))
    assert not found, "\n".join([path, *found, CURE])


def test_no_template_types_a_length() -> None:
    typed = [
        f"{path.parent.name}/{path.name}: {match[0]}"
        for folder in ("console", "book")
        for path in (TEMPLATES / folder).glob("*.html")
        for match in re.finditer(r'(?:min|max)length="[^"]*"', path.read_text())
    ]
    assert not typed, "\n".join([*typed, CURE])


def test_every_template_names_arguments_that_exist() -> None:
    templates = "\n".join(path.read_text() for path in TEMPLATES.rglob("*.html"))
    named = set(re.findall(r'(?:of=|limits\()"(\w+)(?:\.([\w.]+))?"', templates))
    assert ("sign_in_by_code", "code") in named
    for operation, argument in named:
        assert operation in {entry.name for entry in REGISTRY.entries()}, operation
        if argument:
            assert control_limits.of(f"{operation}.{argument}") is not None
