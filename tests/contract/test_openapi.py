"""The OpenAPI document says what the registry says, in valid OpenAPI 3.1."""

import json

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from chalicelib.core.operations import Operation
from tests.conftest import Answer, Api, Owner
from tests.contract.test_access import send
from tests.factories.examples import Things, every_operation, example


@pytest.fixture
def answer() -> Answer:
    return Api(None).call("GET", "/api/openapi.json")


def test_the_document_is_valid_and_needs_no_key(answer: Answer) -> None:
    assert answer.status == 200
    OpenAPIV31SpecValidator(json.loads(answer.body)).validate()


@every_operation
def test_every_operation_is_in_it(operation: Operation, answer: Answer) -> None:
    entry = json.loads(answer.body)["paths"][operation.path][operation.method.lower()]
    assert entry["operationId"] == operation.name
    names = {p["name"] for p in entry["parameters"] if p["in"] != "header"}
    if "requestBody" in entry:
        names |= set(entry["requestBody"]["content"]["application/json"]["schema"]["properties"])
    assert names == set(operation.input_schema["properties"])


@every_operation
def test_real_answers_fit_the_schema(operation: Operation, owner: Owner) -> None:
    from jsonschema import Draft202012Validator

    api = owner.api()
    answer = send(api, operation, example(operation, Things.made_with(api)))
    document = json.loads(Api(None).call("GET", "/api/openapi.json").body)
    entry = document["paths"][operation.path][operation.method.lower()]
    schema = entry["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator(schema).validate(json.loads(answer.body))


def test_an_unchanged_document_is_not_sent_again(answer: Answer) -> None:
    etag = answer.headers["ETag"]
    again = Api(None).call("GET", "/api/openapi.json", headers={"If-None-Match": etag})
    assert (again.status, again.body) == (304, b"")
