"""Leaves out the HTTP between botocore and moto, since the suite spends most of its time in moto.

Answers stay the same.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from decimal import Decimal
from threading import RLock
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from botocore.parsers import JSONParser
from botocore.signers import RequestSigner
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.exceptions import HTTPException, ServiceException
from moto.core.utils import camelcase_to_underscores
from moto.dynamodb import responses

from infra.local.quick_moto import LOCK, make_quick

KEY_BYTES = {"pk": 2_048}
SORT_KEY_BYTES = 1_024
"""DynamoDB's longest sort key. ``KEY_BYTES`` has its longest partition key."""
_COMPARED = re.compile(r"(#\w+) \S+ (:\w+)")
"""A comparison in a key condition, as PynamoDB writes it."""
REGION = "eu-central-1"
ACTIONS = {
    f"DynamoDB_20120810.{name}".encode(): camelcase_to_underscores(name)
    for name in (
        "GetItem",
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "Query",
        "Scan",
        "BatchGetItem",
        "BatchWriteItem",
        "TransactGetItems",
        "TransactWriteItems",
    )
}
"""Frequent actions, by their names in botocore and in moto."""
ANSWERS = {f"{name.decode().partition('.')[2]}Output" for name in ACTIONS}
"""The shapes of their answers, by botocore's names."""
_OTHERS = RLock()
"""Held while another request is answered. moto checks the condition of a write to S3 before it
writes, so that two writes at once would both succeed."""
UNSIGNED = f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/dynamodb/aws4_request"
"""The parts of a signature that moto reads: the key and the region."""


@pytest.fixture(scope="session", autouse=True)
def _quick_moto() -> None:
    make_quick()
    _answer_without_http()
    _sign_nothing()
    _read_answers_as_they_are()


def _answer_without_http() -> None:
    """Skip the HTTP layer between botocore and moto.

    moto parses a request as if it were for any service, and validates its answer. Requests and
    answers stay JSON, as botocore writes and reads them. A request that moto refuses is repeated
    through moto's own code, which gives the reason.
    """
    process = BotocoreStubber.process_request

    def quick(stubber: BotocoreStubber, request: AWSPreparedRequest) -> Any:
        action = ACTIONS.get(request.headers.get("X-Amz-Target"))
        if action is None:
            with _OTHERS:
                return process(stubber, request)
        handler = responses.DynamoHandler()
        handler.current_account, handler.region = DEFAULT_ACCOUNT_ID, REGION
        binary = b'"B"' in request.body
        handler.body = json.loads(request.body, object_hook=_decoded if binary else None)
        if refusal := _refusal_of_keys(handler.body):
            return 400, {}, json.dumps(refusal)
        try:
            with LOCK:
                result = getattr(handler, action)().result
                return 200, {}, json.dumps(result, default=_encoded)
        except (ServiceException, HTTPException):
            return process(stubber, request)

    BotocoreStubber.process_request = quick


def _sign_nothing() -> None:
    """moto checks no signature."""
    sign = RequestSigner.sign

    def quick(signer: Any, operation: str, request: AWSRequest, *more: Any, **options: Any) -> None:
        if request.url.startswith("https://dynamodb."):
            request.headers["Authorization"] = UNSIGNED
        else:
            sign(signer, operation, request, *more, **options)

    RequestSigner.sign = quick


def _read_answers_as_they_are() -> None:
    """botocore looks up the type of each value. Only binary values differ from their JSON."""
    handle_json_body = JSONParser._handle_json_body

    def quick(parser: Any, body: bytes, shape: Any) -> Any:
        if shape.name not in ANSWERS:
            return handle_json_body(parser, body, shape)
        answer = json.loads(body, object_hook=_decoded if b'"B"' in body else None)
        return {name: value for name, value in answer.items() if value is not None}

    JSONParser._handle_json_body = quick


def _refusal_of_keys(request: Any) -> dict[str, str] | None:
    """Return DynamoDB's error for a key of a wrong length. moto reports it only for a Put."""
    for name, value in _keys(request):
        size = len(value.get("S", "-").encode(errors="surrogatepass"))
        if not 0 < size <= KEY_BYTES.get(name, SORT_KEY_BYTES):
            message = f"One or more parameter values were invalid: the key {name} has {size} bytes"
            return {"__type": "com.amazon.coral.validate#ValidationException", "message": message}
    return None


def _keys(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and values of all keys in a request, except those of new items."""
    parts = [
        request,
        *(part for item in request.get("TransactItems", ()) for part in item.values()),
        *(part for part in request.get("RequestItems", {}).values() if isinstance(part, dict)),
    ]
    for part in parts:
        for key in [part.get("Key", {}), *part.get("Keys", ())]:
            yield from key.items()
    for name, value in _COMPARED.findall(request.get("KeyConditionExpression", "")):
        yield (
            request["ExpressionAttributeNames"][name],
            request["ExpressionAttributeValues"][value],
        )


def _decoded(value: dict[str, Any]) -> dict[str, Any]:
    return {"B": b64decode(value["B"])} if isinstance(value.get("B"), str) else value


def _encoded(value: object) -> str | float:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(value)
