"""The catalogue tools follow UCP's published schemas."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.factories.products import png
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import BookingPage

SCHEMAS = json.loads(Path(__file__).with_name("ucp_schemas.json").read_text())
BASE = "https://ucp.dev/schemas/"
KNOWN: Registry[Any] = Registry().with_resources(
    (BASE + path, Resource.from_contents(schema, default_specification=DRAFT202012))
    for path, schema in SCHEMAS.items()
    if path != "//"
)
META = {"ucp-agent": {"profile": "https://platform.example/profiles/agent.json"}}


def check(value: Any, schema: str) -> Any:
    """Check a value by one of UCP's schemas, and return it."""
    Draft202012Validator({"$ref": BASE + schema}, registry=KNOWN).validate(value)
    return value


@pytest.fixture
def assistant(page: BookingPage) -> Assistant:
    return Assistant.admitted(page)


def add_product(assistant: Assistant, **fields: Any) -> str:
    body = {"name": "Shampoo", "price": 90_000, **fields}
    created = assistant.page.salon.api.post("/api/products/create", body)["product"]
    return str(created["id"])


def search(assistant: Assistant, **catalog: Any) -> Any:
    """Search by a request that is valid, and return the valid response."""
    check(catalog, "shopping/catalog_search.json#/$defs/search_request")
    response = assistant.call("search_catalog", meta=META, catalog=catalog)
    return check(response, "shopping/catalog_search.json#/$defs/search_response")


def titles(response: Any) -> list[str]:
    return [product["title"] for product in response["products"]]


def test_a_search_finds_active_products_by_words_category_and_price(
    assistant: Assistant,
) -> None:
    api = assistant.page.salon.api
    hair = {"name": "Hair", "kind": "product"}
    category = api.post("/api/categories/create", hair)["category"]["id"]
    care = api.post("/api/categories/create", {**hair, "name": "Care", "parentId": category})
    picture = {"name": "a.png", "content": base64.b64encode(png()).decode()}
    file = api.post("/api/files/upload", picture)["file"]
    add_product(
        assistant,
        categoryId=care["category"]["id"],
        stock=0,
        description="<p>For <b>dry</b> hair</p>",
        images=[{"fileId": file["id"]}],
    )
    add_product(assistant, name="Comb", price=10_000)
    add_product(assistant, name="Secret shampoo", status="inactive")
    (product,) = search(assistant, query="shampoo", filters={"categories": ["Care"]})["products"]
    (variant,) = product["variants"]
    assert product["description"] == {"plain": "For dry hair"}
    assert product["categories"] == [{"value": "Hair > Care", "taxonomy": "merchant"}]
    assert product["price_range"]["max"] == {"amount": 90_000, "currency": "RUB"}
    assert product["media"] == [{"type": "image", "url": file["url"]}]
    assert variant["availability"] == {"available": False, "status": "out_of_stock"}
    # A search by words finds no categories, in two requests to the database.
    (by_words,) = search(assistant, query="shampoo")["products"]
    assert {**by_words, "categories": product["categories"]} == product
    for categories in (["Hair"], ["Hair > Care"], ["Hair", "Nails"]):
        assert titles(search(assistant, filters={"categories": categories})) == ["Shampoo"]
    assert titles(search(assistant, filters={"categories": ["Nails"]})) == []
    assert titles(search(assistant, filters={"price": {"max": 50_000}})) == ["Comb"]
    dollars = search(assistant, filters={"price": {"max": 1}}, context={"currency": "USD"})
    assert len(titles(dollars)) == 2
    assert dollars["messages"][-1]["code"] == "price_filter_ignored"
    assert titles(search(assistant, query="what helps with dry hair?")) == ["Shampoo"]


def test_a_search_returns_ten_products_and_a_cursor(assistant: Assistant) -> None:
    for number in range(12):
        add_product(assistant, name=f"Shampoo {number}")
    first = search(assistant)
    assert first["pagination"] == {"has_next_page": True, "total_count": 12, "cursor": "2-10"}
    last = search(assistant, pagination={"cursor": "2-10"})
    assert last["pagination"] == {"has_next_page": False, "total_count": 12}
    assert len({*titles(first), *titles(last)}) == 12
    wrong = {"pagination": {"cursor": "everything"}}
    assert "cursor" in assistant.refuse("search_catalog", catalog=wrong)


def test_a_look_up_names_unknown_ids(assistant: Assistant) -> None:
    shampoo = add_product(assistant)
    hidden = add_product(assistant, name="Secret", status="inactive")
    ids = [shampoo, "prod_unknown", shampoo, hidden, "x" * 500]
    check({"ids": ids}, "shopping/catalog_lookup.json#/$defs/lookup_request")
    response = assistant.call("lookup_catalog", meta=META, catalog={"ids": ids})
    check(response, "shopping/catalog_lookup.json#/$defs/lookup_response")
    (product,) = response["products"]
    assert product["variants"][0]["inputs"] == [{"id": shampoo, "match": "exact"}]
    missing = [note["content"] for note in response["messages"] if note["code"] == "not_found"]
    assert missing == ["prod_unknown", hidden, "x" * 500]


@pytest.mark.parametrize("ids", [["x"] * 51, [], [{}], "x"])
def test_a_look_up_of_too_many_or_wrong_ids_has_invalid_params(
    assistant: Assistant, ids: Any
) -> None:
    arguments = {"meta": META, "catalog": {"ids": ids}}
    answer = assistant.send("tools/call", name="lookup_catalog", arguments=arguments)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (200, -32602)
    assert "catalog.ids" in error["message"]


def test_a_product_is_returned_by_id_and_a_missing_one_is_an_outcome(
    assistant: Assistant,
) -> None:
    shampoo = add_product(assistant)
    response = assistant.call("get_product", meta=META, catalog={"id": shampoo})
    check(response, "shopping/catalog_lookup.json#/$defs/get_product_response")
    assert response["product"]["title"] == "Shampoo"
    hidden = add_product(assistant, name="Secret", status="inactive")
    for product_id in (hidden, "prod_unknown"):
        # A part of the request that is not supported must not show up in an error of UCP.
        missing = assistant.call("get_product", catalog={"id": product_id, "selected": []})
        check(missing, "shopping/types/error_response.json")
        assert missing["ucp"]["status"] == "error"
