"""The catalogue tools follow UCP's published schemas."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from chalicelib.core.errors import RateLimitedError
from chalicelib.domains.sites.store import sites
from tests.factories import pages
from tests.factories.products import png
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import BookingPage

NEWEST, OLDER = "2026-08-25", "2026-04-08"
BASE = "https://ucp.dev/schemas/"
META = {"ucp-agent": {"profile": "https://platform.example/profiles/agent.json"}}
ERRORS = {NEWEST: "common/types", OLDER: "shopping/types"}
"""Folders of the schema of errors."""


def published(version: str) -> Registry[Any]:
    """Return the published schemas of a version."""
    file = Path(__file__).with_name(f"ucp_schemas_{version.replace('-', '_')}.json")
    schemas = json.loads(file.read_text())
    return Registry().with_resources(
        (BASE + path, Resource.from_contents(schema, default_specification=DRAFT202012))
        for path, schema in schemas.items()
        if path != "//"
    )


KNOWN = {version: published(version) for version in (NEWEST, OLDER)}


def check(value: Any, schema: str, version: str = NEWEST) -> Any:
    """Check a value by one of UCP's schemas, and return it."""
    Draft202012Validator({"$ref": BASE + schema}, registry=KNOWN[version]).validate(value)
    return value


def check_error(value: Any, version: str = NEWEST) -> str:
    """Check an error of UCP, and return its code."""
    check(value, f"{ERRORS[version]}/error_response.json", version)
    assert (value["ucp"]["version"], value["ucp"]["status"]) == (version, "error")
    code: str = value["messages"][0]["code"]
    return code


@pytest.fixture
def assistant(page: BookingPage) -> Assistant:
    return Assistant.admitted(page)


def add_product(assistant: Assistant, **fields: Any) -> str:
    body = {"name": "Shampoo", "price": 90_000, **fields}
    created = assistant.page.salon.api.post("/api/products/create", body)["product"]
    return str(created["id"])


def search(assistant: Assistant, **catalog: Any) -> Any:
    """Search by a valid request in each version, and return the last of the valid responses."""
    for version in (OLDER, NEWEST):
        older = "" if version == NEWEST else f"?ucp={version}"
        client = Assistant(assistant.page, f"{assistant.path}{older}")
        check(catalog, "shopping/catalog_search.json#/$defs/search_request", version)
        response = client.call("search_catalog", meta=META, catalog=catalog)
        check(response, "shopping/catalog_search.json#/$defs/search_response", version)
        assert response["ucp"]["version"] == version
    return response


def titles(response: Any) -> list[str]:
    return [product["title"] for product in response["products"]]


def test_products_link_to_their_pages_on_a_site(assistant: Assistant) -> None:
    api = assistant.page.salon.api
    shampoo = add_product(assistant)
    assert "url" not in search(assistant, query="shampoo")["products"][0]
    site = pages.new_site(api, "Salon")
    pages.save(api, pages.create(api, site), "<h1>Salon</h1>")
    shown = api.post("/api/projects/update", {"id": site, "showsProducts": True})["project"]
    sites.forget_products_urls()
    (product,) = search(assistant, query="shampoo")["products"]
    assert product["url"] == product["variants"][0]["url"] == f"{shown['productsUrl']}/{shampoo}"
    lookup = assistant.call("get_product", catalog={"id": shampoo})
    check(lookup, "shopping/catalog_lookup.json#/$defs/get_product_response")
    assert lookup["product"]["url"] == product["url"]


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
        sku="SH-1",
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
    assert variant["sku"] == "SH-1"
    assert search(assistant, query="shampoo")["products"] == [product]
    (comb,) = search(assistant, query="comb")["products"]
    assert "sku" not in comb["variants"][0]
    for categories in (["Hair"], ["Hair > Care"], ["Hair", "Nails"]):
        assert titles(search(assistant, filters={"categories": categories})) == ["Shampoo"]
    assert titles(search(assistant, filters={"categories": ["Nails"]})) == []
    assert titles(search(assistant, filters={"price": {"max": 50_000}})) == ["Comb"]
    dollars = search(assistant, filters={"price": {"max": 1}}, context={"currency": "USD"})
    assert len(titles(dollars)) == 2
    assert dollars["messages"][-1]["code"] == "price_filter_ignored"
    assert titles(search(assistant, query="what helps with dry hair?")) == ["Shampoo"]


def test_a_response_of_ucp_has_no_fields_for_warnings(assistant: Assistant) -> None:
    response = assistant.call("search_catalog", meta=META, catalog={"query": "x"}, cake=1)
    assert not response.keys() & {"warnings", "warningDetails"}


def test_a_search_for_signs_finds_the_names_that_contain_them(assistant: Assistant) -> None:
    add_product(assistant, name="Shampoo (dry)")
    add_product(assistant, name="Comb")
    assert titles(search(assistant, query="(")) == ["Shampoo (dry)"]
    assert titles(search(assistant, query="%")) == []


def test_a_search_returns_ten_products_and_a_cursor(assistant: Assistant) -> None:
    for number in range(12):
        add_product(assistant, name=f"Shampoo {number}")
    cheap = {"filters": {"price": {"max": 90_000}}}
    first = search(assistant, **cheap)
    assert first["pagination"] == {"has_next_page": True, "total_count": 12, "cursor": "2-10"}
    last = search(assistant, **cheap, pagination={"cursor": "2-10"})
    assert last["pagination"] == {"has_next_page": False, "total_count": 12}
    assert len({*titles(first), *titles(last)}) == 12


@pytest.mark.parametrize(
    "catalog",
    [
        {},
        {"query": ""},
        {"query": " "},
        {"filters": {}},
        {"filters": {"categories": []}, "pagination": {"limit": 5}},
        {"filters": {"price": {}}},
        {"filters": {"colour": "red"}},
        {"query": "shampoo", "pagination": {"cursor": "everything"}},
        {"query": ["shampoo"]},
        None,
    ],
    ids=str,
)
def test_a_search_that_asks_for_nothing_or_is_wrong_is_refused_in_the_envelope_of_ucp(
    assistant: Assistant, catalog: Any
) -> None:
    add_product(assistant)
    arguments = {} if catalog is None else {"catalog": catalog}
    for version in (NEWEST, OLDER):
        client = Assistant(assistant.page, f"{assistant.path}?ucp={version}")
        result = client.result("search_catalog", meta=META, **arguments)
        assert result["isError"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert check_error(result["structuredContent"], version) == "validation_error"
        assert "catalog" in result["structuredContent"]["messages"][0]["content"]


def test_an_empty_filter_beside_words_excludes_nothing(assistant: Assistant) -> None:
    add_product(assistant)
    for empty in ({}, {"categories": []}, {"price": {}}):
        assert titles(search(assistant, query="shampoo", filters=empty)) == ["Shampoo"]


def test_a_search_that_finds_nothing_has_no_messages(assistant: Assistant) -> None:
    found = search(assistant, query="zebra")
    assert (found["products"], "messages" in found) == ([], False)


def test_another_version_of_ucp_is_not_supported(assistant: Assistant) -> None:
    client = Assistant(assistant.page, f"{assistant.path}?ucp=2026-01-11")
    arguments = {"catalog": {"query": "shampoo"}}
    answer = client.send("tools/call", name="search_catalog", arguments=arguments)
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["data"]["code"]) == (-32001, "version_unsupported")
    assert OLDER in error["data"]["content"]
    assert client.call("get_business")["name"] == client.page.owner.workspace.name


def test_a_visitor_who_calls_too_often_is_refused_by_a_json_rpc_error(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RateLimitedError("Too many calls.", headers={"Retry-After": "7"})

    monkeypatch.setattr("chalicelib.transports.assistants.invoke", refuse)
    arguments = {"catalog": {"query": "shampoo"}}
    answer = assistant.send("tools/call", name="search_catalog", arguments=arguments)
    error = json.loads(answer.body)["error"]
    reason = {"code": "rate_limited", "content": "Too many calls.", "retry_after": 7}
    assert (error["code"], error["data"]) == (-32000, reason)


@pytest.mark.parametrize(
    ("filters", "context", "fits"),
    [
        ({"price": {"min": 90_000, "max": 90_000}}, {}, True),
        ({"price": {"max": 89_999}}, {}, False),
        ({"price": {"min": 90_001}}, {}, False),
        ({"price": {"max": 1}}, {"currency": "USD"}, True),
        ({"categories": ["Hair"]}, {}, True),
        ({"categories": ["Hair > Care", "Nails"]}, {}, True),
        ({"categories": ["Nails"]}, {}, False),
        ({"categories": ["Hair"], "price": {"max": 1}}, {}, False),
        ({"categories": []}, {}, True),
        ({}, {}, True),
    ],
    ids=str,
)
def test_filters_narrow_a_look_up(
    assistant: Assistant, filters: Any, context: Any, *, fits: bool
) -> None:
    api = assistant.page.salon.api
    hair = {"name": "Hair", "kind": "product"}
    top = api.post("/api/categories/create", hair)["category"]["id"]
    below = {**hair, "name": "Care", "parentId": top}
    care = api.post("/api/categories/create", below)["category"]["id"]
    shampoo = add_product(assistant, categoryId=care)
    selection = {"filters": filters, "context": context}
    for version in (NEWEST, OLDER):
        client = Assistant(assistant.page, f"{assistant.path}?ucp={version}")
        request = {"ids": [shampoo], **selection}
        check(request, "shopping/catalog_lookup.json#/$defs/lookup_request", version)
        found = client.call("lookup_catalog", meta=META, catalog=request)
        check(found, "shopping/catalog_lookup.json#/$defs/lookup_response", version)
        assert titles(found) == (["Shampoo"] if fits else [])
        assert "not_found" not in [note["code"] for note in found.get("messages", ())]
        request = {"id": shampoo, **selection}
        check(request, "shopping/catalog_lookup.json#/$defs/get_product_request", version)
        one = client.call("get_product", meta=META, catalog=request)
        if fits:
            check(one, "shopping/catalog_lookup.json#/$defs/get_product_response", version)
            assert one["product"] == {
                **found["products"][0],
                "variants": one["product"]["variants"],
            }
        else:
            assert check_error(one, version) == "not_found"
            assert one["messages"][0]["severity"] == "recoverable"


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
        assert check_error(missing) == "not_found"
        assert missing["messages"][0]["severity"] == "unrecoverable"
