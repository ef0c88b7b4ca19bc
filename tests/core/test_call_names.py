"""Messages name an operation as its caller knows it."""

import pytest

from chalicelib.core.call_names import insert_routes, insert_tool_names
from chalicelib.core.errors import call
from chalicelib.core.operations import load_all


@pytest.mark.parametrize(
    ("word", "route", "tool"),
    [
        ("svc_list_products", "GET /api/products/list", "svc_list_products"),
        ("get_category", "GET /api/categories/{id}", "GET /api/categories/{id}"),
    ],
    ids=["with a tool", "without a tool"],
)
def test_an_operation_is_named_by_its_route_or_its_tool(word: str, route: str, tool: str) -> None:
    load_all()
    message = f"List them ({call(word)})."
    assert insert_routes(message) == f"List them ({route})."
    assert insert_tool_names(message) == f"List them ({tool})."
