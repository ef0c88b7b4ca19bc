"""Tools are generated from declarations, are small, and change only on purpose."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

import pytest
from jsonschema import Draft202012Validator

from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.transports.tools import tool
from tests.conftest import Api, Owner
from tests.contract.conftest import World
from tests.contract.test_access import send
from tests.factories.examples import Things, every_tool, example, sweep_of_tools
from tests.support.restoring import Snapshots

ALIKE = ("status", "message", "code", "errors")
"""Fields of a failure that are the same over REST and as a tool, except for the names of calls."""
SNAPSHOTS = Path(__file__).parents[1] / "snapshots" / "tools"


def size(operation: Operation) -> int:
    return len(json.dumps(tool(operation), separators=(",", ":"), ensure_ascii=False).encode())


@sweep_of_tools
def test_a_tools_annotations_describe_what_it_may_do(operation: Operation) -> None:
    definition = tool(operation)
    hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
    assert list(definition["annotations"]) == hints
    assert all(isinstance(definition["annotations"][hint], bool) for hint in hints)
    assert definition["title"]
    assert set(definition) <= {
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
    }


@sweep_of_tools
def test_a_tools_schema_is_an_object_that_validators_and_every_known_client_accept(
    operation: Operation,
) -> None:
    schema = tool(operation)["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert '"additionalProperties"' not in json.dumps(schema)  # Google's SDK refuses it.
    assert '"const"' not in json.dumps(schema)  # Google's SDK refuses it as well.
    assert [part for part in parts(schema) if not fits_gemini(part)] == []
    assert "idempotencyKey" in schema["properties"] or not operation.accepts_idempotency_key


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas inside it."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from parts(inner)
    if "items" in schema:
        yield from parts(schema["items"])


def fits_gemini(schema: dict[str, Any]) -> bool:
    """Whether Gemini's API accepts a schema.

    It refuses lists of types, alternatives, enumerations of numbers and most formats.
    """
    texts = all(isinstance(value, str) for value in schema.get("enum", ()))
    one_type = isinstance(schema.get("type"), str) and not {"anyOf", "oneOf", "allOf"} & set(schema)
    return one_type and texts and schema.get("format", "date-time") == "date-time"


def test_the_description_states_what_the_schema_cannot_express_for_every_client() -> None:
    page = tool(REGISTRY["update_page"])["inputSchema"]["properties"]["isHome"]
    assert page == {"type": "boolean", "description": "Make it the home page. Only true."}
    product = tool(REGISTRY["update_product"])["inputSchema"]["properties"]
    assert product["sku"] == {"type": "string", "description": "Unique SKU. null clears it."}
    assert product["stock"]["description"] == "Pieces; null: not tracked."
    first = tool(REGISTRY["crm_stats"])["inputSchema"]["properties"]["from"]
    assert (first["type"], first["description"].endswith("YYYY-MM-DD.")) == ("string", True)


@sweep_of_tools
def test_valid_arguments_fit_the_schema(operation: Operation) -> None:
    schema = tool(operation)["inputSchema"]
    arguments = shape_as_listed(example(operation, Things.unknown()), schema)
    Draft202012Validator(schema).validate(arguments)
    if operation.accepts_idempotency_key:
        Draft202012Validator(schema).validate({**arguments, "idempotencyKey": "k"})


def shape_as_listed(value: Any, schema: dict[str, Any]) -> Any:
    """Return arguments from a client that supports one type for each argument.

    Null is left out, and a number is a string where the type is a string.
    """
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return {k: shape_as_listed(v, known.get(k, {})) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [shape_as_listed(item, schema.get("items", {})) for item in value]
    return str(value) if schema.get("type") == "string" and isinstance(value, int) else value


@sweep_of_tools
def test_a_tool_matches_its_snapshot(operation: Operation, request: pytest.FixtureRequest) -> None:
    """A change of a tool affects every client. Review it, then update the snapshots."""
    path = SNAPSHOTS / f"{operation.tool}.json"
    text = json.dumps(tool(operation), indent=2, ensure_ascii=False) + "\n"
    if request.config.getoption("--update-snapshots"):
        path.write_text(text)
    assert path.read_text() == text


def test_every_snapshot_belongs_to_a_tool() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == {
        o.tool for o in REGISTRY.select(Audience.KEY) if o.tool
    }


def test_the_tool_list_stays_within_its_size_limit() -> None:
    """Models read the whole list in every conversation, so its size has a limit."""
    sizes = [size(operation) for operation in REGISTRY.select(Audience.KEY) if operation.tool]
    assert median(sizes) <= 700
    assert sum(sizes) <= 68_000


def test_a_field_that_a_tool_describes_with_one_type_still_accepts_null_and_numbers(
    api: Api, things: Things
) -> None:
    cleared = {"id": things.product, "description": None, "stock": None, "images": None}
    product = json.loads(called(api, "update_product", cleared))["data"]["product"]
    assert [product["description"], product["stock"], product["images"]] == [None, None, []]
    rules = [
        {"weekdays": [1, "2"], "start": "09:00", "end": "18:00"},
        {"weekday": "7", "intervals": []},
    ]
    hours = {"resourceId": things.resource, "rules": rules}
    days = json.loads(called(api, "set_availability", hours))["data"]["rules"]
    assert [day["weekday"] for day in days] == ["mon", "tue"]
    for argument in ("categoryId", "value"):
        change = {"ids": [things.product], "action": "setCategory", argument: things.category}
        assert '"after":"' + things.category in called(api, "bulk_products", change)
        assert '"after":null' in called(api, "bulk_products", {**change, argument: None})
    elsewhere = {"ids": [things.product], "action": "setPrice", "value": 5, "categoryId": "x"}
    assert "categoryId was ignored, because the action setPrice" in called(
        api, "bulk_products", elsewhere
    )


def called(api: Api, name: str, arguments: dict[str, object]) -> str:
    """Return the content of a tool's result."""
    text: str = call(api, REGISTRY[name], arguments)["content"][0]["text"]  # type: ignore[index]
    return text


def call(api: Api, operation: Operation, arguments: dict[str, object]) -> dict[str, object]:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": operation.tool, "arguments": arguments},
    }
    result: dict[str, object] = json.loads(api.call("POST", "/api/mcp", message).body)["result"]
    return result


@pytest.mark.parametrize(
    "operation",
    [o for o in REGISTRY.select(Audience.KEY) if o.tool and o.read_only],
    ids=lambda o: o.name,
)
def test_a_read_tool_returns_the_same_data_as_rest(operation: Operation, world: World) -> None:
    arguments = example(operation, world.things)
    now = clock.now()
    with clock.using(lambda: now):  # Some responses contain the current time.
        result = call(world.api, operation, arguments)
        rest_response = send(world.api, operation, arguments)
    assert result["content"] == [{"type": "text", "text": rest_response.body.decode()}]


@every_tool
@pytest.mark.parametrize("trouble", ["unknown ids", "no arguments", "no scope"])
def test_a_failed_tool_returns_the_same_failure_as_rest(
    operation: Operation, trouble: str, api: Api, snapshots: Snapshots, owner: Owner
) -> None:
    if trouble == "no scope":
        api = Api(
            snapshots.once(
                f"agents:read of {owner.workspace.id}", lambda: owner.token(["agents:read"])
            )
        )
    arguments = example(operation, Things.unknown()) if trouble == "unknown ids" else {}
    if trouble != "unknown ids" and operation.path_parameters:
        arguments = dict.fromkeys(operation.path_parameters, "x")
    rest_response = send(api, operation, arguments)
    assert b"svc_" not in rest_response.body.replace(b"svc_live_", b"")
    if rest_response.status == 200:
        return
    result = call(api, operation, arguments)
    tool_failure = json.loads(result["content"][0]["text"])  # type: ignore[index]
    assert result["isError"] is True
    assert tool_failure["httpStatus"] == rest_response.status
    renamed = {
        key: json.loads(replace_tools_by_routes(json.dumps(tool_failure["data"].get(key))))
        for key in ALIKE
    }
    assert renamed == {key: rest_response.data.get(key) for key in ALIKE}


def replace_tools_by_routes(message: str) -> str:
    """Return a message with routes in place of the names of tools."""
    routes = {o.tool: f"{o.method} {o.path}" for o in REGISTRY.entries() if o.tool}
    return re.sub(r"\bsvc_[a-z_]+", lambda match: routes[match[0]], message)


NAMES = ["svc_list_sites", '"svc_list_sites"', "(svc_list_products)", "svc_nothing"]


@pytest.mark.parametrize("name", NAMES)
def test_data_that_is_named_like_a_tool_is_quoted_unchanged(
    name: str, api: Api, things: Things
) -> None:
    """A message names calls for its caller, but what it quotes is the caller's own."""
    api.post("/api/products/create", {"name": "Loaf", "price": 1, "sku": name})
    rest_response = api.call_refused(
        "POST", "/api/products/create", {"name": "B", "price": 1, "sku": name}
    )
    assert f'"{name}"' in rest_response.data["message"]
    assert "POST /api/products/update" in rest_response.data["message"]
    failed, tool_failure = api.tool("svc_create_product", name="B", price=1, sku=name)
    assert failed
    assert f'"{name}"' in tool_failure["data"]["message"]
    assert "svc_update_product" in tool_failure["data"]["message"]
    item = {"ids": [name], "action": "setStock", "value": name}
    assert name in api.call_refused("POST", "/api/products/bulk", item).data["message"]
    listing = api.get(f"/api/products/list?{urlencode({name: 1})}")
    assert f'"{name}" is not an argument of GET /api/products/list' in listing["warnings"][0]
