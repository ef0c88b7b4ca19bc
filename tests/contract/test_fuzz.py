"""Random input to any operation returns an envelope and never a 5xx."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.operations import Operation
from tests.conftest import Api
from tests.contract.conftest import WHOLE, World
from tests.factories.examples import Things, every_operation, example, send
from tests.support.effort import examples

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
    | st.sampled_from(["", " ", "\x00", "😀" * 300, "a" * 1001, "../..", "<script>", "%00", "-1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def near_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a property's schema accepts, or almost accepts."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | anything
    if "const" in schema:
        return st.just(schema["const"]) | anything
    kinds = schema.get("type", "string")
    near_by: list[st.SearchStrategy[Any]] = [anything]
    if "string" in kinds:
        near_by.append(st.text(st.characters(exclude_categories=["Cs"]), max_size=70))
    if "integer" in kinds:
        low, high = schema.get("minimum", 0), schema.get("maximum", 10**6)
        near_by.append(st.sampled_from([low - 1, low, low + 1, high - 1, high, high + 1]))
    if "boolean" in kinds:
        near_by.append(st.booleans())
    if "object" in kinds:
        near_by.append(st.dictionaries(st.text(max_size=5), anything, max_size=3))
    return st.one_of(near_by)


def inputs(operation: Operation, things: Things) -> st.SearchStrategy[dict[str, Any]]:
    """A valid call with some arguments replaced, omitted, or joined by unexpected ones."""
    valid = example(operation, things)
    properties = operation.input_schema["properties"]
    replaced = st.fixed_dictionaries(
        {}, optional={name: near_schema(schema) for name, schema in properties.items()}
    )
    strange = st.dictionaries(st.text(max_size=10), anything, max_size=2)
    dropped = st.sets(st.sampled_from(sorted(valid)), max_size=1) if valid else st.just(set())
    return st.builds(
        lambda new, odd, gone: {k: v for k, v in {**valid, **odd, **new}.items() if k not in gone},
        replaced,
        strange,
        dropped,
    )


@cache
def documented(operation: Operation) -> set[str]:
    """Return the statuses that the reference documents for an operation."""
    entry = WHOLE["paths"][operation.path][operation.method.lower()]
    return set(entry["responses"])


@every_operation
@examples(60, 2)
@given(data=st.data())
def test_no_arguments_break_an_operation(
    operation: Operation,
    data: st.DataObject,
    world: World,
    restore: Callable[..., World],
    empty_database: Callable[[], None],
) -> None:
    arguments = data.draw(inputs(operation, world.things))
    if operation.reads_query or operation.path_parameters:
        arguments = {k: v if isinstance(v, str) else json.dumps(v) for k, v in arguments.items()}
        for name in operation.path_parameters:
            arguments[name] = arguments.get(name, "").replace("/", "") or "x"
            if not arguments[name].isalnum() or not arguments[name].isascii():
                arguments[name] = "x"
    answer = send(world.api, operation, arguments)
    if operation.destructive and answer.status == 200:
        empty_database()
        restore()
    assert answer.status < 500, answer.body
    assert str(answer.status) in documented(operation)
    assert answer.data["status"] is (answer.status == 200)
    if answer.status != 200:
        assert answer.data["message"]
        assert answer.data["code"]
        assert answer.data["requestId"]


def test_a_number_out_of_range_is_never_stored_as_infinity(world: World) -> None:
    api, page = world.api, world.things.page
    for number in (b"1e400", b"-1E+0999", b"9" * 400 + b".5"):
        body = b'{"id": "%b", "designSystem": {"a": [%b]}}' % (page.encode(), number)
        assert api.call_refused("POST", "/api/pages/update", body).status == 400
    assert b"Infinity" not in api.call("GET", f"/api/pages/{page}").body


@pytest.mark.parametrize("coding", ["gzip", "rot13", "br, gzip"])
def test_encoded_bodies_are_refused_with_advice(coding: str, api: Api) -> None:
    headers = {"Content-Encoding": coding}
    answer = api.call_refused("POST", "/api/projects/create", {"title": "x"}, **headers)
    assert answer.status == 415
    assert "Content-Encoding" in answer.data["message"]


BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    "title",
    ["\x00", "a\x07b", "\x85b\x9f", "\u202e", "\u200b\ufeff", "a\nb", "\u3164", "\ufe0f\u200d"]
    + [f"invoice{mark}fdp.exe" for mark in BIDI_CONTROLS],
)
def test_invisible_titles_are_refused(title: str, api: Api) -> None:
    answer = api.call_refused("POST", "/api/projects/create", {"title": title})
    assert answer.data["errors"][0]["field"] == "title"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/products/create", {"name": "a\u202eb", "price": 1}, "name"),
        ("/api/products/create", {"name": "a", "price": 1, "sku": "1\u20662"}, "sku"),
        ("/api/categories/create", {"name": "a\u200fb"}, "name"),
        ("/api/file-folders", {"name": "a\u202eb"}, "name"),
        ("/api/files/upload", {"name": "gpj\u202e.exe", "content": "aGk="}, "name"),
        ("/api/files/uploads/create", {"name": "gpj\u202e.exe", "size": 1}, "name"),
    ],
)
def test_names_that_render_like_another_name_are_refused(
    path: str, body: dict[str, Any], field: str, api: Api
) -> None:
    answer = api.call_refused("POST", path, body)
    assert (answer.status, answer.data["errors"][0]["field"]) == (400, field)


@pytest.mark.parametrize("title", ["👩‍🚀❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣", "پی‌دی‌اف", "שלום עולם", "مخبز", "न्‍"])
def test_titles_keep_characters_that_emoji_and_scripts_need(title: str, api: Api) -> None:
    assert api.post("/api/projects/create", {"title": title})["project"]["title"] == title


def test_a_body_over_five_megabytes_is_413_before_the_key_is_checked() -> None:
    answer = Api("wrong").call_refused("POST", "/api/projects/create", b" " * 5_000_001)
    assert (answer.status, answer.data["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 401),
        ("application/json; charset=utf-8", 401),
        ("APPLICATION/JSON", 401),
        ("application/vnd.api+json", 401),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("nonsense", 415),
    ],
)
def test_a_body_that_is_not_json_is_refused_before_the_key_is_checked(
    content_type: str, status: int
) -> None:
    headers = {"Content-Type": content_type}
    answer = Api("wrong").call("POST", "/api/projects/create", b"{}", headers)
    assert answer.status == status
