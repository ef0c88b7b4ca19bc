"""Examples in the API reference have ids of demo records, or placeholders."""

import json
from collections.abc import Iterator

import pytest

from chalicelib.transports.api_docs import reference
from tests.conftest import Api


@pytest.fixture
def ids() -> Iterator[dict[str, str]]:
    """Set the ids that replace placeholders. The local stack sets them to the demo's ids."""
    reference.EXAMPLE_IDS.update({"PRODUCT_ID": "01PRODUCT", "CATEGORY_ID": "01CATEGORY"})
    reference._document.cache_clear()
    yield reference.EXAMPLE_IDS
    reference.EXAMPLE_IDS.clear()
    reference._document.cache_clear()


def test_examples_contain_the_ids_of_the_demo_if_they_are_set(ids: dict[str, str]) -> None:
    text = Api(None).call("GET", "/api/openapi.json").body.decode()
    assert not [word for word in ids if f'"{word}"' in text]
    body = json.loads(text)["paths"]["/api/products/reorder"]["post"]["requestBody"]
    assert body["content"]["application/json"]["example"] == {
        "ids": ["01PRODUCT"],
        "categoryId": "01CATEGORY",
    }


def test_examples_contain_placeholders_if_no_ids_are_set() -> None:
    assert '"PRODUCT_ID"' in Api(None).call("GET", "/api/openapi.json").body.decode()
