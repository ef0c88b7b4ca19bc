"""The engine's client sends what a client with all of botocore's handlers sends."""

import json
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.session import Session

from chalicelib.engine.connection import connection

KEY = {"pk": {"S": "one"}, "sk": {"S": "two"}}
CALLS: dict[str, dict[str, Any]] = {
    "get_item": {"TableName": "rows", "Key": KEY},
    "put_item": {"TableName": "rows", "Item": KEY},
    "query": {"TableName": "rows", "KeyConditionExpression": "pk = :pk"},
    "transact_write_items": {"TransactItems": [{"Put": {"TableName": "rows", "Item": KEY}}]},
}


class Empty:
    """The body of an empty response."""

    def stream(self) -> list[bytes]:
        return [b"{}"]


def send(session: Session, call: str) -> tuple[str, set[str], dict[str, Any]]:
    """Send a request, and return its URL, the names of its headers and its body."""
    requests: list[AWSPreparedRequest] = []

    def capture(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        requests.append(request)
        return AWSResponse(request.url, 200, {}, Empty())

    client = session.create_client("dynamodb", "eu-central-1")
    client.meta.events.register_first("before-send.dynamodb", capture)
    getattr(client, call)(**CALLS[call])
    (request,) = requests
    body = json.loads(request.body)
    # botocore draws a token for each transaction.
    body = {name: name if name == "ClientRequestToken" else body[name] for name in body}
    return request.url, {name.lower() for name in request.headers}, body


@pytest.mark.parametrize("call", CALLS)
def test_requests_equal_the_requests_of_a_client_with_all_handlers(call: str) -> None:
    url, headers, body = send(connection().session, call)
    assert (url, headers, body) == send(Session(), call)
    assert {"authorization", "amz-sdk-invocation-id", "x-amz-target"} <= headers
    assert ("ClientRequestToken" in body) == (call == "transact_write_items")
