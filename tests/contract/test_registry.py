"""Rules that every operation in the registry follows."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import app as application
from chalicelib.core.operations import REGISTRY, Entry, Operation
from chalicelib.core.principals import Audience
from chalicelib.core.wire.fields import fields_of
from chalicelib.engine.listing.registry import NOUNS
from infra.local.demo.examples import words_of
from tests.contract.conftest import VISITORS_WORDS
from tests.factories.examples import WORDS, sweep_of_documented_operations, sweep_of_operations
from tests.factories.recipes import example_of
from tests.factories.session_examples import COMPUTED, OTHER_WORDS
from tests.support.sweep import sweep

NAMES = Path(__file__).parents[1] / "snapshots" / "operations.txt"
KINDS = {int: "integer", bool: "boolean", list: "array"}


@sweep_of_documented_operations
def test_every_operation_of_the_reference_has_an_example(operation: Operation) -> None:
    assert operation.example is not None, (
        f"{operation.name} has no example. Add example= to its declaration in {operation.module}."
    )


@sweep("operation", REGISTRY)
def test_every_operation_has_an_example_or_a_computed_call(operation: Operation) -> None:
    if operation.name not in COMPUTED:
        assert example_of(operation) is not None
    elif Audience.PUBLIC not in operation.audience:  # An example of visitors may need a new token.
        assert operation.example is None, f"remove {operation.name} from COMPUTED"


def test_every_word_of_an_example_for_visitors_stands_for_something() -> None:
    """The recipes make what the other examples name, and say so if they cannot."""
    known = {*WORDS, *OTHER_WORDS, *VISITORS_WORDS}
    missing = set(words_of(Audience.PUBLIC)) - known
    assert missing == set(), "add what they stand for to _more of tests/contract/conftest.py"


def test_tools_and_routes_are_unique() -> None:
    tools = [entry.tool for entry in REGISTRY.entries() if entry.tool]
    routes = [(entry.method, entry.path) for entry in REGISTRY.entries() if entry.path]
    assert len(set(tools)) == len(tools)
    assert len(set(routes)) == len(routes)


def test_public_names_change_only_by_hand(update_snapshots: bool) -> None:
    """Names, titles and audiences follow from handlers. Callers and stored records know them.

    ``make update`` adds the line of a new operation. The line of one that is renamed or gone is
    removed by hand.
    """
    declared = {
        " | ".join((e.name, f"{e.method} {e.path}".strip(), e.tool or "", callers(e), e.title))
        for e in REGISTRY.entries()
        if e.module.startswith("chalicelib.")
    }
    known = set(NAMES.read_text().splitlines())
    if update_snapshots:
        NAMES.write_text("".join(f"{line}\n" for line in sorted(known | declared)))
    assert known - declared == set(), (
        "Callers know these names. If they are meant to go, remove their lines from "
        "tests/snapshots/operations.txt by hand."
    )
    assert declared - {*NAMES.read_text().splitlines()} == set(), "New: run make update."


def callers(entry: Entry) -> str:
    """Return the audience of an operation and the lowest role of members, as a string."""
    staff = ", staff" if entry.for_staff else ""
    role = f" ({entry.role}{staff})" if entry.role else ""
    return f"{' '.join(sorted(entry.audience))}{role}"


def test_every_noun_names_the_operation_that_lists_it_or_has_a_message_of_its_own() -> None:
    words = {operation.word for operation in REGISTRY if operation.read_only}
    for listing in (NOUNS[noun] for noun in NOUNS):
        assert listing.listed_by in words or listing.not_found_message, listing.noun


def test_declaring_an_operation_twice_is_refused() -> None:
    first = next(iter(REGISTRY))
    with pytest.raises(ValueError, match="declared twice"):
        REGISTRY.add(first)


def test_path_variables_on_one_level_have_the_same_name() -> None:
    """API Gateway refuses two names for a variable at the same position."""
    variables: dict[str, set[str]] = defaultdict(set)
    for path in application.app.routes | application.app.page_routes:
        parts = path.split("/")
        for i, part in enumerate(parts):
            if part.startswith("{"):
                variables["/".join(parts[:i])].add(part)
    assert "/blog" in variables
    assert all(len(names) == 1 for names in variables.values()), variables


@sweep_of_operations
def test_operation_names_follow_the_conventions(operation: Operation) -> None:
    assert operation.tool is None or re.fullmatch(r"svc_[a-z_]+", operation.tool)
    assert operation.path.startswith("/api/")
    assert operation.method in {"GET", "POST", "PUT", "DELETE"}
    assert set(operation.path_parameters) <= set(operation.input_schema["properties"])


@sweep_of_operations
def test_query_parameters_are_parsed_by_the_types_that_schemas_publish(
    operation: Operation,
) -> None:
    fields = fields_of(operation.input)
    for name, declared in operation.input_schema["properties"].items():
        types = str([declared.get("type"), declared.get("items", {}).get("type")])
        published = {kind for kind, called in KINDS.items() if called in types}
        assert fields[name].kinds & KINDS.keys() == published, name


@sweep_of_operations
def test_titles_and_descriptions_are_complete_sentences(operation: Operation) -> None:
    assert operation.title
    assert operation.description.endswith(".")
    assert len(operation.description) >= 40


@sweep_of_operations
def test_read_operations_change_nothing_and_are_idempotent(operation: Operation) -> None:
    assert operation.read_only == (operation.method == "GET")
    if operation.read_only:
        assert operation.idempotent
        assert not operation.destructive


@sweep_of_operations
def test_inputs_are_open_described_and_self_contained(operation: Operation) -> None:
    schema = operation.input_schema
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf"} & set(schema)
    for path, node in nodes(schema):
        assert "$ref" not in node, path
        check_node(path, node)


def check_node(path: str, node: dict[str, Any]) -> None:
    """Check that an object is open, and that its fields are described and in camel case."""
    assert not isinstance(node.get("title"), str), path
    if "properties" in node:
        assert node.get("additionalProperties", True) is True, path
        for name, declared in node["properties"].items():
            assert declared.get("description"), f"{path}.{name} is not described"
            assert re.fullmatch(r"[a-z][A-Za-z0-9]*", name), f"{path}.{name} is not camelCase"


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object in a JSON value, with the properties on its path."""
    if isinstance(schema, list):
        for item in schema:
            yield from nodes(item, path)
    elif isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            if key == "properties":
                for name, declared in value.items():
                    yield from nodes(declared, f"{path}.{name}")
            else:
                yield from nodes(value, path)
