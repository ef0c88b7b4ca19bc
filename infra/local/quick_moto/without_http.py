# mypy: disable-error-code="method-assign, assignment, attr-defined"
# ruff: noqa: ANN401, SLF001
"""Pass botocore's requests to moto in the same process without HTTP, for the tests only."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from threading import RLock
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.endpoint import Endpoint
from botocore.regions import EndpointRulesetResolver
from botocore.serialize import JSONSerializer
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.exceptions import HTTPException, ServiceException
from moto.core.models import botocore_stubber
from moto.core.utils import camelcase_to_underscores
from moto.dynamodb import responses
from pynamodb.connection import Connection

from infra.local.quick_moto.lock import LOCK

OTHERS = RLock()
"""Held while a request to another service is processed.

moto checks the condition of a write to S3 before writing, so that two concurrent writes would both
succeed.
"""
REGION = "eu-central-1"
"""The region of all requests that skip HTTP."""
ACTIONS = {
    name: camelcase_to_underscores(name)
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
"""Requests that skip HTTP: the names of their methods in moto by their names in botocore."""
METADATA = {"RequestId": "", "HTTPStatusCode": 200, "HTTPHeaders": {}, "RetryAttempts": 0}
PARTITION_KEY_BYTES, SORT_KEY_BYTES = 2_048, 1_024
"""DynamoDB's maximum lengths of keys."""
_COMPARED = re.compile(r"(#\w+) \S+ (:\w+)")
"""A comparison in a key condition, as PynamoDB writes it."""


def skip_http() -> None:
    """Pass botocore's requests to moto in this process, without HTTP."""
    _call_handlers_directly()
    _write_requests_at_once()
    _find_the_address_once()
    _one_request_of_other_services_at_a_time()


def _call_handlers_directly() -> None:
    """Skip the HTTP messages, signatures and parsers between botocore's client and moto's handler.

    The body of a request remains JSON, as botocore writes it. A request that moto refuses is sent
    once more with all these layers, which turn moto's error into a response. Requests with another
    address, or with a handler of a test before they are sent, keep the layers, too.
    """
    make_request = Endpoint.make_request

    def quick(endpoint: Any, model: Any, request: dict[str, Any]) -> Any:
        action = ACTIONS.get(model.name)
        if (
            action is None
            or not request["url"].startswith("https://dynamodb.")
            or not botocore_stubber.enabled
            or _has_other_handlers(endpoint, model.name)
        ):
            return make_request(endpoint, model, request)
        handler = responses.DynamoHandler()
        handler.current_account, handler.region = DEFAULT_ACCOUNT_ID, REGION
        body = request["body"]
        binary = b'"B"' in body or b'"BS"' in body
        handler.body = json.loads(body, object_hook=_decoded if binary else None)
        if _wrong_key(handler.body):
            return make_request(endpoint, model, request)
        try:
            with LOCK:
                result = getattr(handler, action)().result
        except (ServiceException, HTTPException):
            return make_request(endpoint, model, request)
        response = {name: value for name, value in result.items() if value is not None}
        http = SimpleNamespace(status_code=200, headers={})
        return http, {**response, "ResponseMetadata": dict(METADATA)}

    Endpoint.make_request = quick


def _write_requests_at_once() -> None:
    """Skip botocore's look at the type of each value, which changes only binary ones."""
    serialize = JSONSerializer.serialize_to_request
    empty_requests: dict[str, dict[str, Any]] = {}

    def quick(serializer: Any, parameters: dict[str, Any], model: Any) -> Any:
        if not _is_quick(model) or not parameters.keys() <= model.input_shape.members.keys():
            return serialize(serializer, parameters, model)
        given = {name: value for name, value in parameters.items() if value is not None}
        try:
            body = json.dumps(given).encode()
        except TypeError:  # A value is binary.
            return serialize(serializer, parameters, model)
        if model.name not in empty_requests:
            empty_requests[model.name] = serialize(serializer, {}, model)
        empty = empty_requests[model.name]
        return {**empty, "headers": dict(empty["headers"]), "body": body}

    JSONSerializer.serialize_to_request = quick


def _find_the_address_once() -> None:
    """Skip the rules of DynamoDB's addresses, which look for ARNs in each request.

    Requests name tables, so that all requests of a client have one address.
    """
    construct = EndpointRulesetResolver.construct_endpoint

    def quick(resolver: Any, operation_model: Any, call_args: Any, request_context: Any) -> Any:
        if not _is_quick(operation_model):
            return construct(resolver, operation_model, call_args, request_context)
        if not hasattr(resolver, "address"):
            resolver.address = construct(resolver, operation_model, call_args, request_context)
        return resolver.address

    EndpointRulesetResolver.construct_endpoint = quick


def _is_quick(model: Any) -> bool:
    return model.name in ACTIONS and model.service_model.service_name == "dynamodb"


def _has_other_handlers(endpoint: Any, operation: str) -> bool:
    """Whether anything but moto handles a request before the request is sent.

    PynamoDB's own handler adds headers, and this service has none.
    """
    handlers = endpoint._event_emitter._emitter._handlers
    return any(
        handler is not botocore_stubber
        and getattr(handler, "__func__", None) is not Connection._before_send
        for handler in handlers.prefix_search(f"before-send.dynamodb.{operation}")
    )


def _one_request_of_other_services_at_a_time() -> None:
    """Moto's other services are not thread-safe either. Refuse DynamoDB's keys of a wrong length.

    moto reports these only for a Put.
    """
    process = BotocoreStubber.process_request

    def quick(stubber: Any, request: AWSPreparedRequest) -> Any:
        service, _, action = request.headers.get("X-Amz-Target", b"").partition(b".")
        if service != b"DynamoDB_20120810":
            with OTHERS:
                return process(stubber, request)
        if action.decode() in ACTIONS and (wrong := _wrong_key(json.loads(request.body))):
            message = f"One or more parameter values were invalid: {wrong}"
            error = "com.amazon.coral.validate#ValidationException"
            return 400, {}, json.dumps({"__type": error, "message": message})
        return process(stubber, request)

    BotocoreStubber.process_request = quick


def _wrong_key(request: dict[str, Any]) -> str:
    """Return a sentence about a key of a wrong length, or "" if the length is right."""
    for name, value in _keys(request):
        size = len(value.get("S", "-").encode(errors="surrogatepass"))
        if not 0 < size <= (PARTITION_KEY_BYTES if name == "pk" else SORT_KEY_BYTES):
            return f"the key {name} has {size} bytes"
    return ""


def _keys(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names and values of all keys in a request, except the keys of new items."""
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
    if isinstance(value.get("B"), str):
        return {"B": b64decode(value["B"])}
    if isinstance(value.get("BS"), list):
        return {"BS": [b64decode(encoded) for encoded in value["BS"]]}
    return value
