"""Responses of DynamoDB are parsed to the objects that botocore would return."""

import base64
import json
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.model import OperationModel
from botocore.parsers import JSONParser
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.engine.answer_parser import AnswerParsers, UnreadableAnswerError
from chalicelib.engine.connection import connection
from tests.conftest import Api

BLOB = st.binary(max_size=5).map(lambda data: base64.b64encode(data).decode())
VALUES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"S": st.text(max_size=8) | st.sampled_from(['"B":', "B"])}),
        st.fixed_dictionaries({"N": st.integers().map(str)}),
        st.fixed_dictionaries({"BOOL": st.booleans()}),
        st.just({"NULL": True}),
        st.fixed_dictionaries({"B": BLOB}),
        st.fixed_dictionaries({"BS": st.lists(BLOB, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"SS": st.lists(st.text(max_size=4), min_size=1, max_size=2)}),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"M": st.dictionaries(st.text(max_size=4), inner, max_size=3)}),
    ),
    max_leaves=6,
)
ITEMS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def model(operation: str) -> OperationModel:
    return connection().client.meta.service_model.operation_model(operation)


def parsed(parser: Any, operation: str, body: bytes) -> Any:
    response = {"status_code": 200, "headers": {"x-amzn-requestid": "1"}, "body": body}
    return parser.parse(response, model(operation).output_shape)


def both(operation: str, answer: dict[str, Any]) -> tuple[Any, Any]:
    body = json.dumps(answer).encode()
    ours = AnswerParsers().create_parser("json")
    return parsed(ours, operation, body), parsed(JSONParser(), operation, body)


@given(st.lists(ITEMS, max_size=3), ITEMS)
def test_a_query_is_parsed_as_botocore_does(items: list[Any], last: dict[str, Any]) -> None:
    used = {"TableName": "t", "CapacityUnits": 1.5}
    answer = {"Items": items, "Count": len(items), "ScannedCount": 9, "ConsumedCapacity": used}
    ours, stock = both("Query", answer | ({"LastEvaluatedKey": last} if last else {}))
    assert ours == stock


@given(ITEMS)
def test_reads_of_single_items_are_parsed_as_botocore_does(item: dict[str, Any]) -> None:
    answers: dict[str, dict[str, Any]] = {
        "GetItem": {"Item": item},
        "UpdateItem": {"Attributes": item},
        "BatchGetItem": {"Responses": {"t": [item]}, "UnprocessedKeys": {}},
    }
    for operation, answer in answers.items():
        ours, stock = both(operation, answer)
        assert ours == stock


def test_missing_values_are_left_out() -> None:
    ours, stock = both("GetItem", {"Item": None, "ConsumedCapacity": None})
    assert ours == stock
    assert "Item" not in ours


def test_a_time_is_parsed_by_its_shape() -> None:
    ours, stock = both("DescribeTable", {"Table": {"CreationDateTime": 1.5}})
    assert ours == stock


def test_an_answer_that_is_not_json_is_an_error() -> None:
    parser = AnswerParsers().create_parser("json")
    with pytest.raises(UnreadableAnswerError, match="not JSON"):
        parsed(parser, "Query", b'{"Items": [')


@pytest.mark.parametrize(("times", "status"), [(1, 200), (3, 503)])
@pytest.mark.usefixtures("database")
def test_a_cut_answer_is_read_again(times: int, status: int, api: Api) -> None:
    product = api.post("/api/products/create", {"name": "Rye", "price": 1})["product"]["id"]
    seen: list[str] = []

    def cut(request: Any, **_: Any) -> AWSResponse | None:
        seen.append(request.url)
        if len(seen) > times:
            return None
        answer = AWSResponse(request.url, 200, {}, None)
        answer._content = b'{"Item": {"pk"'
        return answer

    events = connection().client.meta.events
    events.register("before-send.dynamodb.GetItem", cut)
    try:
        answer = api.call("GET", f"/api/products/{product}")
    finally:
        events.unregister("before-send.dynamodb.GetItem", cut)
    assert (answer.status, len(seen) >= times) == (status, True)


def test_the_connection_uses_the_parser() -> None:
    factory = connection().client._endpoint._response_parser_factory
    assert isinstance(factory, AnswerParsers)
