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

from chalicelib.core import areas, clock
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.core.wire.fields import fields_of, normalize
from chalicelib.core.wire.schema import NOT_IN_TOOLS
from chalicelib.core.wire.tool_arguments import clearable, read_arguments
from chalicelib.transports.tools import Selection, tool
from tests.conftest import Api, Owner
from tests.contract.conftest import World
from tests.factories.examples import Things, every_tool, example, send, sweep_of_tools
from tests.support.restoring import Snapshots
from tests.support.warned import warned

ALIKE = ("status", "message", "code", "errors")
"""Fields of a failure that are the same over REST and as a tool, except for the names of calls."""
SNAPSHOTS = Path(__file__).parents[1] / "snapshots" / "tools"


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
    assert product["sku"] == {"type": "string", "description": "Unique SKU."}
    assert product["stock"]["description"] == "Pieces; empty: not tracked."
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


def test_tools_match_their_snapshots(update_snapshots: bool) -> None:
    """A change of a tool affects every client. Review it, then update the snapshots."""
    texts = {
        f"{operation.tool}.json": json.dumps(tool(operation), indent=2, ensure_ascii=False) + "\n"
        for operation in REGISTRY.select(Audience.KEY)
        if operation.tool
    }
    if update_snapshots:
        for path in SNAPSHOTS.glob("*.json"):
            path.unlink()
        for name, text in texts.items():
            (SNAPSHOTS / name).write_text(text)
    known = {path.name: path.read_text() for path in SNAPSHOTS.glob("*.json")}
    differing = [name for name in known.keys() | texts if known.get(name) != texts.get(name)]
    assert sorted(differing) == [], (
        "These snapshots in tests/snapshots/tools are stale: run make update, and review them."
    )


MAX_LIST, MAX_TOOL, MAX_MEDIAN = 68_000, 2_000, 700
"""Bytes of the whole list, of one tool and of the median tool."""
LONG_TOOLS = {"svc_create_service": 3_000, "svc_update_service": 3_000}
"""Tools with a larger budget, because a service has 20 fields."""


CURE = (
    "Shorten the descriptions in the model, drop what the name of an argument says, or move a rare "
    "argument to an operation without a tool."
)


def over_budget(definitions: list[dict[str, Any]]) -> list[str]:
    """Return a message for each budget that a list of tools exceeds, with what to shorten."""
    sizes = {definition["name"]: size(definition) for definition in definitions}
    longest = sorted(definitions, key=size, reverse=True)
    messages = [
        f"{described(definition)} Its budget is {limit:,}. {CURE}"
        for definition in longest
        for name in [definition["name"]]
        if sizes[name] > (limit := LONG_TOOLS.get(name, MAX_TOOL))
    ]
    total, middle = sum(sizes.values()), median(sizes.values())
    if total > MAX_LIST:
        tools = "".join(f"\n- {described(definition)}" for definition in longest[:5])
        messages.append(
            f"The list has {total:,} bytes, and its budget is {MAX_LIST:,}. Shorten a tool that "
            f"you have changed, or one of the longest:{tools}\n{CURE}"
        )
    if middle > MAX_MEDIAN:
        messages.append(
            f"Half of the tools have {middle:,} bytes or more. Shorten what they share."
        )
    return messages


def described(definition: dict[str, Any]) -> str:
    """Return the size of a tool, and what takes the most bytes of it."""
    parts = {"its description": definition["description"]}
    parts |= {f"argument {k}": {k: v} for k, v in definition["inputSchema"]["properties"].items()}
    longest = sorted(parts, key=lambda part: size(parts[part]), reverse=True)[:4]
    shares = ", ".join(f"{part} ({size(parts[part])})" for part in longest)
    return f"{definition['name']} has {size(definition):,} bytes, most of them in {shares}."


def size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def test_every_tool_and_the_whole_list_stay_within_their_budgets() -> None:
    """Models read the whole list in every conversation, so its size has a limit."""
    definitions = [tool(operation) for operation in REGISTRY.select(Audience.KEY) if operation.tool]
    assert over_budget(definitions) == []
    sizes = {definition["name"]: size(definition) for definition in definitions}
    assert [name for name in LONG_TOOLS if sizes[name] <= MAX_TOOL] == [], "no longer long"


def test_a_tool_over_its_budget_is_named_with_its_longest_parts() -> None:
    dear = tool(REGISTRY["update_product"])
    dear["inputSchema"]["properties"]["images"]["description"] = "Replaces all. " * 100
    small = [{**tool(REGISTRY["list_workspaces"]), "name": f"svc_{n}"} for n in range(400)]
    (message,) = over_budget([dear, *small[:2]])
    assert re.match(
        r"svc_update_product has [\d,]+ bytes, most of them in argument images", message
    )
    assert message.endswith(f"Its budget is 2,000. {CURE}")
    (message,) = over_budget([tool(REGISTRY["update_product"]), *small])
    assert message.startswith("The list has ")
    assert "\n- svc_update_product has " in message


def test_a_toolset_halves_what_a_client_loads() -> None:
    definitions = {o: tool(o) for o in REGISTRY.select(Audience.KEY) if o.tool}
    whole = sum(map(size, definitions.values()))
    for area in areas.SCOPED:
        chosen = Selection(toolsets=frozenset({area}))
        part = [size(listed) for o, listed in definitions.items() if chosen.admits(o)]
        assert sum(part) <= whole / 2, area


def test_a_field_that_a_tool_describes_with_one_type_accepts_other_types_and_is_cleared(
    api: Api, things: Things
) -> None:
    cleared = {"id": things.product, "clear": ["description", "stock", "images"]}
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
        cleared = {**change, argument: None, "clear": [argument]}
        assert '"after":null' in called(api, "bulk_products", cleared)
        assert "value: is required" in called(api, "bulk_products", {**change, argument: None})
    elsewhere = {"ids": [things.product], "action": "setPrice", "value": 5, "categoryId": "x"}
    answer = json.loads(called(api, "bulk_products", elsewhere))["data"]
    assert warned(answer) == [{"code": "field_ignored", "field": "categoryId"}]


@sweep_of_tools
def test_null_is_an_omission_in_every_optional_argument_of_a_tool(operation: Operation) -> None:
    fields = fields_of(operation.input)
    optional = [name for name in fields if name not in operation.input_schema.get("required", ())]
    sent = read_arguments(operation.input, dict.fromkeys(optional), json.loads)
    null_counts = {name for name in normalize(operation.input, sent) if name in optional}
    # Omitting the flag flips it, so null must not be taken for an omission.
    assert null_counts == ({"enabled"} if operation.name == "toggle_site_stats" else set())
    nested = [field.nested for field in fields.values() if field.nested]
    assert [model for model in nested if clearable(model)] == []


@sweep_of_tools
def test_a_tool_lists_the_fields_that_it_can_clear(operation: Operation) -> None:
    listed = tool(operation)["inputSchema"]["properties"].get("clear")
    fields = fields_of(operation.input)
    emptied = [name for name in fields if "null" in type_of(operation, name)]
    emptied = [name for name in emptied if name not in operation.input_schema["required"]]
    properties = operation.input_schema["properties"]
    emptied = [name for name in emptied if properties[name].get(NOT_IN_TOOLS) is not True]
    if operation.name == "bulk_products":  # Its value has one published type.
        emptied = ["value", "categoryId"]
    assert (listed["items"]["enum"] if listed else []) == emptied


def type_of(operation: Operation, name: str) -> str | list[str]:
    types: str | list[str] = operation.input_schema["properties"][name].get("type", "")
    return types


RECORDS = {
    "update_product": ("product", {"price": 555}),
    "update_client": ("client", {"tags": ["regular"]}),
    "update_lead": ("lead", {"tags": ["regular"]}),
    "update_service": ("service", {"price": 555}),
    "update_agent": ("agent", {"name": "Max"}),
}
"""Updates, with the noun of the response and one change."""


@pytest.mark.parametrize("name", RECORDS)
def test_an_update_with_null_for_all_other_arguments_keeps_the_other_fields(
    name: str, api: Api, things: Things
) -> None:
    """Some frameworks send null for each argument that the model left out."""
    operation = REGISTRY[name]
    noun, change = RECORDS[name]
    texts = clearable(operation.input)
    sample = {"name": "Ada", "notes": "Calls back", "description": "Dark", "stock": 7}
    sample |= {"welcomeMessage": "Hello", "sku": "RYE-9"}
    filled = {"id": getattr(things, noun), **{k: v for k, v in sample.items() if k in texts}}
    before = json.loads(called(api, name, filled))["data"][noun]
    nulls = dict.fromkeys(tool(operation)["inputSchema"]["properties"])
    after = json.loads(called(api, name, {**nulls, "id": filled["id"], **change}))["data"][noun]
    moving = {"updatedAt", "version", *change}
    assert {k: v for k, v in after.items() if k not in moving} == {
        k: v for k, v in before.items() if k not in moving
    }
    assert {k: after[k] for k in change} == change


def test_an_update_tool_clears_only_the_fields_that_the_caller_names(
    api: Api, things: Things
) -> None:
    filled = {"id": things.product, "description": "Dark", "stock": 7, "sku": "RYE-9"}
    called(api, "update_product", filled)
    cleared = {"id": things.product, "sku": None, "clear": '["stock"]'}
    product = json.loads(called(api, "update_product", cleared))["data"]["product"]
    assert [product["description"], product["stock"], product["sku"]] == ["Dark", None, "RYE-9"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"clear": ["stock"], "stock": 5}, "clear"),
        ({"clear": ["stock"], "stockDelta": 5}, ""),
        ({"clear": ["price"]}, "clear"),
        ({"clear": ["id"]}, "clear"),
        ({"clear": ["stok"]}, "clear"),
        ({"clear": [None]}, "clear"),
        ({"clear": "stock"}, "clear"),
        ({"clear": {"stock": True}}, "clear"),
        ({"clear": []}, ""),
        ({"clear": None, "stock": None}, ""),
    ],
)
def test_an_update_tool_refuses_to_clear_what_is_also_set_or_cannot_be_empty(
    arguments: dict[str, object], field: str, api: Api, things: Things
) -> None:
    failure = json.loads(called(api, "update_product", {"id": things.product, **arguments}))
    assert (failure["httpStatus"], failure["data"]["code"]) == (400, "validation_error")
    assert [error["field"] for error in failure["data"].get("errors", [])] == [field] * bool(field)


def test_an_error_says_how_its_caller_clears_a_field(api: Api, things: Things) -> None:
    empty = {"id": things.product, "sku": ""}
    assert "name it in clear" in called(api, "update_product", empty)
    assert ", sortOrder, or clear" in called(api, "update_product", {"id": things.product})
    over_rest = api.call_refused("POST", "/api/products/update", empty)
    assert "null" in over_rest.data["errors"][0]["message"]
    over_rest = api.call_refused("POST", "/api/products/update", {"id": things.product})
    assert over_rest.data["message"].endswith(", sortOrder")


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
    """Return a message with routes in place of the names of tools, as REST clients read it."""
    message = message.replace(", or clear", "")
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
