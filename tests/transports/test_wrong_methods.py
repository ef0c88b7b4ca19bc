"""Responses to a method that a path does not accept, and to a word in the place of an id."""

import pytest

from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from tests.conftest import Api
from tests.support.sweep import sweep

pytestmark = pytest.mark.usefixtures("database")
WITH_RECORD = sorted({entry.path for entry in REGISTRY.entries() if entry.path.endswith("}")})
"""Routes that end with the id of a record."""
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
api = Api(None)


def refused_methods(path: str) -> list[str]:
    accepted = {entry.method for entry in REGISTRY.entries() if entry.path == path}
    return [method for method in METHODS if method not in accepted]


def with_last_part(path: str, part: str) -> str:
    parent = path.rpartition("/")[0]
    return f"{parent.replace('{id}', new_id())}/{part}"


@sweep("path", WITH_RECORD)
def test_a_word_instead_of_an_id_is_404_with_the_operations(path: str) -> None:
    for method in refused_methods(path):
        for word in ("postpone", "make%20one", "1", new_id().lower(), new_id() + "0"):
            answer = api.call_refused(method, with_last_part(path, word))
            assert (answer.status, answer.data["code"]) == (404, "not_found")
            named = {entry.path for entry in REGISTRY.entries()}
            operations = answer.data["operations"]
            assert any(operation.endswith(f" {path}") for operation in operations)
            assert all(operation.partition(" ")[2] in named for operation in operations)
            assert all(operation in answer.data["message"] for operation in operations)
            assert "Allow" not in answer.headers


@sweep("path", WITH_RECORD)
def test_another_method_of_a_record_is_405(path: str) -> None:
    for method in refused_methods(path):
        answer = api.call_refused(method, with_last_part(path, new_id()))
        assert (answer.status, answer.data["code"]) == (405, "method_not_allowed")
        assert "operations" not in answer.data


def test_the_guess_of_an_operation_names_the_one_that_exists() -> None:
    answer = api.call_refused("POST", "/api/public/bookings/postpone")
    assert "POST /api/public/bookings/cancel" in answer.data["operations"]
    answer = api.call_refused("POST", "/api/clients/add", {"name": "Ada"})
    assert "POST /api/clients/update" in answer.data["operations"]
    answer = api.call_refused("POST", "/api/forms/collection/update")
    assert "POST /api/forms/collection-update" in answer.data["operations"]


def test_a_word_is_404_for_pages_of_other_origins_too() -> None:
    answer = api.call("POST", "/api/public/bookings/move", headers={"Origin": "https://x.example"})
    assert answer.status == 404
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
