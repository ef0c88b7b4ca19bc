"""How each AI framework uses the tool server of a running service."""

import logging
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.clients.client import Framework, Outcome, Server
from tests.support.patience import PATIENCE

ADDED_BY_N8N = {
    "toolCallId": "call_1",
    "sessionId": "s-1",
    "action": "sendMessage",
    "chatInput": "x",
}


@pytest.fixture(scope="session")
def listed_tools(server: Server) -> dict[str, dict[str, Any]]:
    """The input schemas of all tools, as the server lists them."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = httpx.post(server.url, json=message, headers=server.headers, timeout=PATIENCE)
    tools = answer.raise_for_status().json()["result"]["tools"]
    return {tool["name"]: tool["inputSchema"] for tool in tools}


@pytest.fixture
def succeed(framework: Framework) -> Callable[..., dict[str, Any]]:
    """Call a tool that must succeed, and return the data inside the envelope."""

    def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
        outcome = framework.call(tool, arguments)
        assert not outcome.failed, outcome.text
        return outcome.data

    return call


def unique(name: str) -> str:
    """Return a name or SKU that no other test uses."""
    return f"{name} {uuid4().hex[:12]}"


def test_every_tool_reaches_the_model_with_all_its_arguments(
    framework: Framework,
    listed_tools: dict[str, dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
    record_offered: dict[str, str],
) -> None:
    caplog.set_level(logging.WARNING)
    offered_tools = framework.tools()
    assert len(listed_tools) == 77
    assert sorted(tool.name for tool in offered_tools) == sorted(listed_tools)
    for tool in offered_tools:
        arguments = (tool.schema or {}).get("properties") or {}
        assert set(arguments) == set(listed_tools[tool.name]["properties"]), tool.name
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.WARNING] == []
    strict = sum(tool.strict for tool in offered_tools)
    words = f"all {len(offered_tools)}" + (f", {strict} of them strict" if strict else "")
    record_offered[framework.package] = words


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas inside it."""
    yield schema
    for inner in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        yield from nodes(inner)


def test_the_list_has_one_type_for_each_value(listed_tools: dict[str, dict[str, Any]]) -> None:
    for name, schema in listed_tools.items():
        for node in nodes(schema):
            assert isinstance(node.get("type"), str), (name, node)
            assert not {"anyOf", "oneOf", "allOf", "const"} & set(node), (name, node)


def test_a_list_is_read(succeed: Callable[..., dict[str, Any]]) -> None:
    listing = succeed("svc_list_products", size=2)
    assert len(listing["products"]) == 2
    assert "warnings" not in listing
    product = listing["products"][0]
    assert succeed("svc_get_product", id=product["id"])["product"]["name"] == product["name"]


def test_a_record_is_created_and_updated(succeed: Callable[..., dict[str, Any]]) -> None:
    name = unique("Булка")
    product = succeed("svc_create_product", name=name, price=12900.0, stock=3)["product"]
    assert (product["name"], product["price"], product["stock"]) == (name, 12900, 3)
    updated = succeed("svc_update_product", id=product["id"], price=13900, stockDelta=-1)["product"]
    assert (updated["price"], updated["stock"]) == (13900, 2)
    read = succeed("svc_get_product", id=product["id"])["product"]
    assert (read["name"], read["price"]) == (name, 13900)


def test_a_change_of_one_field_keeps_the_others(succeed: Callable[..., dict[str, Any]]) -> None:
    """Some frameworks send null for every argument that the model left out."""
    values = {"price": 129, "description": "Rye", "stock": 3, "sku": unique("S")}
    created = succeed("svc_create_product", name=unique("Loaf"), **values)["product"]
    product = succeed("svc_update_product", id=created["id"], price=555)["product"]
    assert {name: product[name] for name in values} == values | {"price": 555}
    product = succeed("svc_update_product", id=created["id"], clear=["stock"])["product"]
    assert {name: product[name] for name in values} == values | {"price": 555, "stock": None}


@pytest.mark.parametrize(
    ("noun", "listed", "path"),
    [
        ("client", "clients", "/api/clients/update"),
        ("lead", "collections", "/api/forms/collection-update"),
    ],
)
def test_a_change_of_tags_keeps_the_contacts(
    succeed: Callable[..., dict[str, Any]], server: Server, noun: str, listed: str, path: str
) -> None:
    (record,) = succeed(f"svc_list_{noun}s", size=1)[listed]
    values = {"name": "Ada", "email": f"{uuid4().hex}@example.com", "notes": "By the window"}
    url = server.url.replace("/api/mcp", path)
    change = {"id": record["id"], **values}
    httpx.post(url, json=change, headers=server.headers, timeout=PATIENCE).raise_for_status()
    updated = succeed(f"svc_update_{noun}", id=record["id"], tags=[unique("tag")])[noun]
    kept = values | {"phone": record["phone"]}
    assert {name: updated[name] for name in kept} == kept
    updated = succeed(f"svc_update_{noun}", id=record["id"], clear=["notes"])[noun]
    assert {name: updated[name] for name in kept} == kept | {"notes": None}


@pytest.mark.parametrize(
    ("tool", "arguments", "explanation"),
    [
        ("svc_get_product", {"id": "nobody"}, '"httpStatus":404'),
        ("svc_create_product", {"name": "Loaf", "price": "1 290 ₽"}, "129000"),
    ],
    ids=["not found", "not valid"],
)
def test_a_failed_call_is_marked_as_failed_and_explains_why(
    framework: Framework, tool: str, arguments: dict[str, Any], explanation: str
) -> None:
    if framework.checks_arguments and "httpStatus" not in explanation:
        pytest.skip("the framework refuses these arguments itself")
    outcome = framework.call(tool, arguments)
    assert outcome.failed
    assert explanation in outcome.text
    assert '"status":false' in outcome.text


def test_a_warning_about_an_unknown_argument_comes_first(framework: Framework) -> None:
    if framework.checks_arguments:
        pytest.skip("the framework does not send unknown arguments")
    outcome = framework.call("svc_list_products", {"lowStock": True, "size": 1})
    assert not outcome.failed
    assert outcome.text.index('"warnings"') < outcome.text.index('"products"')
    (warning,) = outcome.data["warnings"]
    assert "NOT filtered" in warning
    assert '"inStock"' in warning


def test_extra_arguments_from_automation_tools_are_harmless(
    framework: Framework, succeed: Callable[..., dict[str, Any]]
) -> None:
    if framework.checks_arguments:
        pytest.skip("the framework does not send unknown arguments")
    name = unique("Loaf")
    created = succeed("svc_create_product", name=name, price=100, **ADDED_BY_N8N)
    assert len(created["warnings"]) == len(ADDED_BY_N8N)
    assert created["product"]["name"] == name
    listing = succeed("svc_list_products", q=name, **ADDED_BY_N8N)
    assert [product["id"] for product in listing["products"]] == [created["product"]["id"]]


def fill_optional(framework: Framework, schema: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Return the arguments with an empty value, such as `''`, for each omitted optional one.

    A framework that checks arguments sends only null, because some strings have a minimum length.
    """

    def empty(declared: dict[str, Any]) -> str | None:
        text = declared["type"] == "string" and "enum" not in declared
        return "" if text and not framework.checks_arguments else None

    return {name: values.get(name, empty(one)) for name, one in schema["properties"].items()}


def test_empty_optional_arguments_count_as_omitted(
    framework: Framework,
    succeed: Callable[..., dict[str, Any]],
    listed_tools: dict[str, dict[str, Any]],
) -> None:
    name = unique("Loaf")
    arguments = fill_optional(framework, listed_tools["svc_create_product"], name=name, price=100)
    created = succeed("svc_create_product", **arguments)["product"]
    assert [created["sku"], created["barcode"], created["categoryId"], created["stock"]] == [
        None
    ] * 4
    filters = fill_optional(framework, listed_tools["svc_list_products"], q=name)
    listing = succeed("svc_list_products", **filters)
    assert [product["id"] for product in listing["products"]] == [created["id"]]


def test_clearing_a_field_with_an_empty_text_is_refused_with_the_right_way(
    framework: Framework, succeed: Callable[..., dict[str, Any]]
) -> None:
    created = succeed("svc_create_product", name=unique("Loaf"), price=100, sku=unique("S"))
    product = {"id": created["product"]["id"]}
    outcome: Outcome = framework.call("svc_update_product", product | {"sku": ""})
    assert outcome.failed
    assert "clear" in outcome.text
    outcome = framework.call("svc_update_product", product | {"clear": ["sku"]})
    assert not outcome.failed, outcome.text
