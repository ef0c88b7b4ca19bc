"""Unusual values never cause a 5xx, such as long, non-ASCII or NUL characters."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.console.routes import ROUTES
from chalicelib.transports.http import HttpRequest
from chalicelib.transports.routes import PAGES
from tests.conftest import Answer, Api, Owner
from tests.factories.console import Person, person
from tests.factories.examples import Things, example
from tests.support.effort import matrix, slow_but_for
from tests.support.restoring import Snapshots

LONG = "x" * 3_000
ODD = {
    "3,000 letters": LONG,
    "2,048 letters": "x" * 2_048,
    "1,000 letters of two bytes": "ж" * 1_000,
    "64 letters of four bytes": "😀" * 64,
    "64 letters that grow when folded": "\ufdfa" * 64,
    "a NUL": "a\x00b",
    "nothing": "",
    "a space": " ",
    "a line break": "a\r\nb",
    "the separator of keys": "W#1#SITE",
    "dots": "..",
    "no percent-encoding": "%zz%00",
    "a bidirectional control": "\u202e",
}
odd = pytest.mark.parametrize(
    "value", slow_but_for([LONG, ODD["a NUL"]], ODD.values()), ids=list(ODD)
)
public_operations = pytest.mark.parametrize(
    "operation",
    [operation for operation in REGISTRY.select(Audience.PUBLIC) if operation.path],
    ids=lambda operation: operation.name,
)


def replace_each_text(value: Any, text: str) -> Iterator[Any]:
    """Yield copies of a JSON value, each with another of its strings replaced."""
    match value:
        case str():
            yield text
        case dict():
            for name, inner in value.items():
                yield from (value | {name: new} for new in replace_each_text(inner, text))
        case list():
            for place, inner in enumerate(value):
                for new in replace_each_text(inner, text):
                    yield [*value[:place], new, *value[place + 1 :]]


def odd_inputs(operation: Operation, things: Things, text: str) -> Iterator[dict[str, Any]]:
    """Yield valid inputs with one text replaced, or one more."""
    valid = example(operation, things)
    yield from replace_each_text(valid, text)
    for name in operation.input_schema["properties"].keys() - valid.keys():
        yield {**valid, name: text}


def put_in_path(path: str, value: str, *names: str) -> str:
    for name in names:
        path = path.replace(f"{{{name}}}", quote(value, safe="") or "%20")
    return path


def send(api: Api, operation: Operation, arguments: dict[str, Any], **headers: str) -> Answer:
    path, arguments_left = operation.path, dict(arguments)
    for name in operation.path_parameters:
        path = put_in_path(path, str(arguments_left.pop(name)), name)
    if operation.reads_query:
        return api.call(operation.method, f"{path}?{urlencode(arguments_left)}", headers=headers)
    return api.call(operation.method, path, arguments_left, headers)


@odd
@public_operations
def test_an_odd_value_does_not_break_a_public_route(
    operation: Operation, value: str, things: Things
) -> None:
    for arguments in odd_inputs(operation, things, value):
        for accepted in ("application/json", "text/html"):
            answer = send(Api(None), operation, arguments, Accept=accepted)
            assert answer.status < 500, (arguments, answer.body)


@pytest.mark.store
@pytest.mark.parametrize("name", [None, "projectId", "pageId"])
def test_a_visit_of_a_site_with_a_long_id_is_refused_as_invalid_input(
    name: str | None, things: Things
) -> None:
    visit = {"projectId": things.site, "pageId": things.page}
    visit |= dict.fromkeys(visit if name is None else [name], LONG)
    browser = {"User-Agent": "Mozilla/5.0 Firefox/150.0"}
    answer = Api(None).call_refused("POST", "/api/public/hit", visit, **browser)
    assert (answer.status, answer.data["code"]) == (400, "validation_error")


@pytest.mark.store
def test_a_form_with_a_long_id_is_not_found(things: Things) -> None:
    path = f"/api/public/forms/{LONG}/submit"
    for fields in ({"name": "Ada"}, {"name": "Ada", "_hp": "filled"}):
        answer = Api(None).call_refused("POST", path, fields)
        assert answer.status in {400, 404}


@odd
@pytest.mark.parametrize("path", PAGES)
def test_an_odd_path_or_query_does_not_break_a_page(path: str, value: str, things: Things) -> None:
    assert things
    place = put_in_path(path, value, "site", "page", "slug", "section", "name")
    query = urlencode(dict.fromkeys(("tag", "page", "q", "lang"), value))
    for method in ("GET", "HEAD"):
        answer = Api(None).call(method, f"{place}?{query}", headers={"Accept-Language": value})
        assert answer.status < 500, answer.body


@pytest.mark.store
def test_a_page_of_a_site_with_a_long_slug_is_not_found(things: Things, api: Api) -> None:
    slug = api.get("/api/projects/list")["projects"][0]["slug"]
    assert things
    for path in (f"/s/{LONG}", f"/s/{LONG}/about", f"/s/{slug}/{LONG}", f"/blog/{LONG}"):
        assert Api(None).call("GET", path).status == 404


@pytest.fixture
def visitor(owner: Owner, things: Things, snapshots: Snapshots) -> Person:
    """The owner in the console. All tests use the same session."""
    session: Person = snapshots.once(f"session of {owner.workspace.id}", lambda: person(owner))
    return replace(session)


@matrix("path, value", list(ROUTES), list(ODD.values()))
def test_an_odd_path_or_query_does_not_break_a_page_of_the_console(
    path: str, value: str, owner: Owner, things: Things, visitor: Person
) -> None:
    own_path = path.replace("{workspace}", owner.workspace.slug)
    for known in {path, own_path, own_path.replace("{id}", things.agent)}:
        place = put_in_path(known, value, "workspace", "id", "key")
        query = urlencode(dict.fromkeys(("q", "next", "done", "after"), value))
        for url in (place, f"{place}?{query}"):
            assert visitor.get(url).status < 500
        names = ("id", "name", "scopes", "email", "password", "daily", "once")
        assert visitor.post(place, dict.fromkeys(names, value)).status < 500


@odd
@pytest.mark.parametrize(
    "operation",
    [operation for operation in REGISTRY.select(Audience.KEY) if operation.path_parameters],
    ids=lambda operation: operation.name,
)
def test_an_odd_id_in_a_path_is_refused(
    operation: Operation, value: str, api: Api, things: Things
) -> None:
    odd_ids = dict.fromkeys(operation.path_parameters, value)
    answer = send(api, operation, example(operation, things) | odd_ids)
    assert answer.status in {400, 404}


@odd
def test_an_odd_idempotency_key_is_accepted_or_refused(
    value: str, api: Api, things: Things
) -> None:
    assert things
    for headers in ({"Idempotency-Key": value}, {"Idempotency-Key": value[:255]}):
        answer = api.call("POST", "/api/categories/create", {"name": "Cakes"}, headers)
        assert answer.status in {200, 400}
    submitted = {"name": "Ada", "email": "ada@example.com"}
    path = f"/api/public/forms/{things.form}/submit"
    assert Api(None).call("POST", path, submitted, {"Idempotency-Key": value}).status in {200, 400}


@odd
@pytest.mark.parametrize(
    "name", ["agentId", "message", "sessionId", "apiKey", "channel", "pageUrl", "visitId", "key"]
)
def test_an_odd_value_in_a_message_to_a_bot_does_not_break_the_chat(
    name: str, value: str, things: Things
) -> None:
    body = {"agentId": things.agent, "message": "Hello", name: value}
    headers = {"content-type": "application/json"}
    if name == "key":
        headers["idempotency-key"] = value
    request = HttpRequest(
        "POST", chat_route.PATH, headers, body=json.dumps(body).encode(), client_ip="203.0.113.7"
    )
    response = chat_route.serve(request, chat_stream.handle)
    response.whole_body()
    assert response.status < 500
