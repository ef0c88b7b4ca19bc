"""``/api/openapi.json?tags=`` has the operations of some areas, for clients that take few."""

import json
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from chalicelib.core import areas
from chalicelib.transports.api_docs.trimmed import (
    MAX_DESCRIPTION,
    MAX_PARAMETER_DESCRIPTION,
    short,
)
from tests.conftest import Api

NAMES = [area.name for area in areas.AREAS]


def document(query: str = "") -> Any:
    answer = Api(None).call("GET", f"/api/openapi.json{query}")
    assert answer.status == 200
    return json.loads(answer.body)


def operations(document: Any) -> dict[str, Any]:
    """Return the operations of a document by name."""
    return {
        entry["operationId"]: entry
        for path in document["paths"].values()
        for entry in path.values()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_document_of_an_area_is_valid_and_has_each_of_its_operations(name: str) -> None:
    part = document(f"?tags={name}")
    OpenAPIV31SpecValidator(part).validate()
    whole = operations(document())
    assert operations(part).keys() == {n for n, e in whole.items() if e["tags"] == [name]}
    assert [tag["name"] for tag in part["tags"]] == [name]


def test_several_areas_are_separated_by_commas_and_may_be_repeated() -> None:
    both = document("?tags=products,crm")
    assert {e["tags"][0] for e in operations(both).values()} == {"products", "crm"}
    assert document("?tags=crm&tags=products") == both


def test_every_part_of_the_document_is_much_smaller_than_the_whole() -> None:
    whole = len(json.dumps(document()))
    assert all(len(json.dumps(document(f"?tags={name}"))) < whole / 5 for name in NAMES)


def test_descriptions_are_short_enough_for_gpt_actions() -> None:
    """Its limits of 300 and 700 characters are in OpenAI's production notes on GPT Actions."""
    entries = operations(document(f"?tags={','.join(NAMES)}"))
    assert entries.keys() == operations(document()).keys()
    too_long = [
        name
        for name, entry in entries.items()
        if len(entry["description"]) > MAX_DESCRIPTION
        or len(entry["summary"]) > MAX_DESCRIPTION
        or any(len(p["description"]) > MAX_PARAMETER_DESCRIPTION for p in entry["parameters"])
    ]
    assert too_long == []


def test_a_long_description_keeps_its_first_sentences_and_the_scope() -> None:
    long = f"First. {'Second ' * 30}ends. {'Third ' * 30}ends.\n\nScope: `crm:read`."
    assert short(long) == f"First. {'Second ' * 30}ends.\n\nScope: `crm:read`."
    assert short("Short.\n\nScope: `crm:read`.") == "Short.\n\nScope: `crm:read`."


def test_an_unknown_area_is_refused_with_the_known_ones() -> None:
    answer = Api(None).call_refused("GET", "/api/openapi.json?tags=products,nothing")
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    (error,) = answer.data["errors"]
    assert (error["field"], error["key"]) == ("tags", "unknown_value")
    assert "nothing" in error["message"]
    assert all(name in error["message"] for name in NAMES)


def test_empty_tags_are_the_whole_document() -> None:
    assert document("?tags=") == document()


def test_an_unchanged_part_is_answered_with_304() -> None:
    path = "/api/openapi.json?tags=crm"
    etag = Api(None).call("GET", path).headers["ETag"]
    assert etag != Api(None).call("GET", "/api/openapi.json").headers["ETag"]
    assert Api(None).call("GET", path, headers={"If-None-Match": etag}).status == 304
