# mypy: disable-error-code="method-assign, assignment, attr-defined"
# ruff: noqa: ANN401, SLF001
"""Makes moto's DynamoDB several times as fast.

``make_quick`` is for the stand-in of DynamoDB Local and for the tests. ``skip_http`` is only for
the tests, which run in one process with moto. Responses do not change: both leave out only work
that has no effect on them. One request at a time is served, because moto's tables are not
thread-safe.
"""

import copy
import json
import pickle
import re
from base64 import b64decode
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from functools import cache, lru_cache
from threading import Lock, RLock
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.endpoint import Endpoint
from moto.core import DEFAULT_ACCOUNT_ID, serialize
from moto.core import responses as core_responses
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.exceptions import HTTPException, ServiceException
from moto.core.models import botocore_stubber
from moto.core.utils import camelcase_to_underscores
from moto.dynamodb import comparisons, models, responses
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import DynamoDBBackend, Table, dynamo_type, utilities
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import Validator
from pynamodb.connection import Connection

ITEM_BYTES = 405_000
"""The largest item that moto accepts."""
TEXTS = frozenset({"S", "N"})
"""Types of DynamoDB whose values are texts."""
MAX_PARSED = 200
"""Maximum number of parsed conditions in memory."""
CHECKS_OF_EXPRESSIONS = 3
"""Number of moto's checks, at the beginning, that depend only on an expression."""
IMMUTABLE = (str, bytes, int, float, bool, Decimal, type(None))
LOCK = Lock()
"""Held while a request uses the tables."""
OTHERS = RLock()
"""Held while a request to another service is processed.

moto checks the condition of a write to S3 before it writes, so that two writes at once would both
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


def make_quick() -> None:
    """Change moto in this process, for good."""
    _one_request_at_a_time()
    _back_up_only_what_a_transaction_names()
    _parse_each_expression_once()
    _parse_each_condition_of_a_request_once()
    _check_each_update_expression_once()
    _walk_only_nodes_that_are_looked_for()
    _copy_without_looking()
    _update_copies_of_rows()
    _measure_a_new_item_once()
    _serialize_only_the_type_that_a_value_has()
    _look_up_actions_once()
    _query_only_the_partition()
    _project_without_converting()
    _compare_texts_as_they_are()
    _measure_texts_at_once()
    _answer_with_texts_as_they_are()


def _one_request_at_a_time() -> None:
    """Moto's tables are not thread-safe."""
    call_action = responses.DynamoHandler.call_action

    def locked(handler: Any) -> Any:
        with LOCK:
            return call_action(handler)

    responses.DynamoHandler.call_action = locked


def _back_up_only_what_a_transaction_names() -> None:
    """Moto copies every table for each item of a transaction, to be able to roll it back."""
    transact = DynamoDBBackend.transact_write_items

    def quick(backend: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        before = [
            place_of(backend, *named) for action in transact_items for named in action.items()
        ]
        kept = [(place, place.rows.get(place.sk)) for place in before if place]
        try:
            transact(backend, transact_items)
        except BaseException:
            for place, item in kept:
                put_back(place, item)
            raise

    DynamoDBBackend.transact_write_items = quick
    models.copy = SimpleNamespace(deepcopy=_all_but_tables, copy=copy.copy)


def place_of(
    backend: DynamoDBBackend, action: str, request: dict[str, Any]
) -> SimpleNamespace | None:
    """Return the location of the row that a write names. None means that it names none."""
    table = backend.tables.get(request["TableName"])
    key = request["Item" if action == "Put" else "Key"]
    if table is None or any(name not in key for name in table.table_key_attrs):
        return None
    pk, *sk = (dynamo_type.DynamoType(key[name]) for name in table.table_key_attrs)
    if sk:
        return SimpleNamespace(rows=table.items[pk], sk=sk[0])
    return SimpleNamespace(rows=table.items, sk=pk)


def _all_but_tables(value: Any) -> Any:
    return value if isinstance(value, Table) else copy.deepcopy(value)


def _parse_each_expression_once() -> None:
    """There are few expressions, since their values are separate.

    Code that changes one copies it.
    """
    UpdateExpressionParser.make = lru_cache(maxsize=None)(UpdateExpressionParser.make)
    parser = comparisons.ConditionExpressionParser
    lex = parser._lex_condition_expression

    @cache
    def nodes(expression: str) -> tuple[Any, ...]:
        return tuple(lex(parser(expression, None, None)))

    def quick(condition: Any) -> deque[Any]:
        return deque(nodes(condition.condition_expression))

    parser._lex_condition_expression = quick


def _parse_each_condition_of_a_request_once() -> None:
    """Moto parses a condition two or three times: to validate it, in a transaction, in its write.

    The parsed conditions refer to the names and values of their requests. The memory keeps both,
    so that no other object can have the same id.
    """
    parse = comparisons.ConditionExpressionParser.parse
    parsed: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def quick(parser: Any) -> Any:
        if not parser.condition_expression:
            return parse(parser)
        names, values = parser.expression_attribute_names, parser.expression_attribute_values
        key = (
            parser.condition_expression,
            id(names) if names else None,
            id(values) if values else None,
        )
        if key not in parsed:
            if len(parsed) > MAX_PARSED:
                parsed.clear()
            operation = parse(parser)
            found = tuple(parser.expr_attr_names_found), tuple(parser.expr_attr_values_found)
            parsed[key] = (operation, *found, names, values)
            return operation
        operation, names_found, values_found, *_ = parsed[key]
        parser.expr_attr_names_found.extend(names_found)
        parser.expr_attr_values_found.extend(values_found)
        return operation

    comparisons.ConditionExpressionParser.parse = quick


def _check_each_update_expression_once() -> None:
    """Three of ten checks of an update depend only on its expression, its names and the table.

    Moto also checks the update of a new row twice: against an empty item, then against its key.
    """
    init, validate = Validator.__init__, Validator.validate
    checked: set[tuple[Any, ...]] = set()

    def quick_init(validator: Any, expression: Any, **options: Any) -> None:
        init(validator, expression, **options)
        names = validator.expression_attribute_names or {}
        validator.key = expression, frozenset(names.items()), validator.table.name

    def quick(validator: Any) -> Any:
        if not validator.item.attrs:
            return None
        if validator.key in checked:
            validator.processors = validator.processors[CHECKS_OF_EXPRESSIONS:]
        result = validate(validator)
        checked.add(validator.key)
        return result

    Validator.__init__, Validator.validate = quick_init, quick


def _walk_only_nodes_that_are_looked_for() -> None:
    """Ten visitors check each update. The node types that each of them handles never change."""
    walk = DepthFirstTraverser.traverse_node_recursively
    wanted: dict[tuple[type, type], bool] = {}

    def quick(walker: Any, node: Any, child_id: int = -1) -> Any:
        pair = type(walker), type(node)
        if pair not in wanted:
            wanted[pair] = not isinstance(node, Node) or isinstance(
                node, walker.nodes_to_be_processed()
            )
        if wanted[pair]:
            return walk(walker, node, child_id)
        for place, child in enumerate(node.children or ()):
            if isinstance(child, str):
                continue
            walker.pre_processing_of_child(node, place)
            walker.traverse_node_recursively(child, place)
        return node

    DepthFirstTraverser.traverse_node_recursively = quick


def _copy_without_looking() -> None:
    """Copy what moto copies by its known types.

    They are trees of nodes, which are parsed once, and rows, which never change once stored.
    """
    pickled = lru_cache(maxsize=None)(pickle.dumps)

    def node(original: Any, _memo: dict[int, Any]) -> Any:
        return pickle.loads(pickled(original))  # noqa: S301  its own data

    def value(original: Any, memo: dict[int, Any]) -> Any:
        kept = original.value
        if isinstance(kept, IMMUTABLE):
            return original
        made = object.__new__(dynamo_type.DynamoType)
        made.type, made.value = original.type, copy.deepcopy(kept, memo)
        return made

    Node.__deepcopy__ = node
    dynamo_type.DynamoType.__deepcopy__ = value
    dynamo_type.Item.__deepcopy__ = lambda item, _memo: item


def _update_copies_of_rows() -> None:
    """Moto changes a row in place, so that it copies each row before it uses it.

    A stored row never changes here: an update replaces it. A failed update leaves it.
    """
    update = DynamoDBBackend.update_item

    def quick(backend: Any, table_name: str, key: Any, *args: Any, **options: Any) -> Any:
        place = place_of(backend, "Update", {"TableName": table_name, "Key": key})
        if place is None:
            return update(backend, table_name, key, *args, **options)
        before = place.rows.get(place.sk)
        if before is not None:
            place.rows[place.sk] = _copied(before)
        try:
            return update(backend, table_name, key, *args, **options)
        except BaseException:
            put_back(place, before)
            raise

    DynamoDBBackend.update_item = quick


def _copied(row: Any) -> Any:
    """Return a copy of a row. It shares the values that cannot change."""
    made = object.__new__(dynamo_type.Item)
    made.hash_key, made.range_key = row.hash_key, row.range_key
    made.attrs = dynamo_type.LimitedSizeDict()
    for name, value in row.attrs.items():
        dict.__setitem__(made.attrs, name, copy.deepcopy(value))
    return made


def put_back(place: Any, row: Any) -> None:
    """Store a row again as it was. None means that there was none."""
    if row is None:
        place.rows.pop(place.sk, None)
    else:
        place.rows[place.sk] = row


def _measure_a_new_item_once() -> None:
    """Moto computes the size of all attributes so far whenever an item gets another one."""

    def init(item: Any, hash_key: Any, range_key: Any, attrs: dict[str, Any]) -> None:
        item.hash_key, item.range_key = hash_key, range_key
        item.attrs = dynamo_type.LimitedSizeDict()
        for name, value in attrs.items():
            dict.__setitem__(item.attrs, name, dynamo_type.DynamoType(value))
        if item.size() > ITEM_BYTES:
            raise ItemSizeTooLarge

    dynamo_type.Item.__init__ = init


def _serialize_only_the_type_that_a_value_has() -> None:
    """Skip the other nine types of a value. moto checks for them in several spellings."""
    serializer = serialize.ResponseSerializer
    serialize_member = serializer._serialize_structure_member

    def quick(self: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.parent.name != "AttributeValue" or key in value:
            serialize_member(self, serialized, value, shape, key)

    serializer._serialize_structure_member = quick


def _look_up_actions_once() -> None:
    """Keep the actions of a service, which never change."""
    core_responses.method_names_from_class = lru_cache(core_responses.method_names_from_class)


def _query_only_the_partition() -> None:
    """Moto sorts all items of a table, and then looks for those of the partition.

    A local index has the partitions of its table.
    """
    query = Table.query

    def quick(table: Any, *args: Any, **options: Any) -> Any:
        partition = dict(options["hash_key_conditions"]).get(table.hash_key_attr)
        if partition is not None:
            rows = table.items.get(partition, {})
            table = copy.copy(table)
            table.items = {partition: rows}
        return query(table, *args, **options)

    Table.query = quick


def _project_without_converting() -> None:
    """Moto converts all attributes to Python values, and those that it keeps back."""
    project = dynamo_type.Item.project

    def quick(item: Any, paths: list[list[str]]) -> Any:
        if any(len(path) > 1 or "[" in path[0] for path in paths):
            return project(item, paths)
        made = copy.copy(item)
        made.attrs = {name: item.attrs[name] for (name,) in paths if name in item.attrs}
        return made

    dynamo_type.Item.project = quick


def _compare_texts_as_they_are() -> None:
    """Keys are texts. moto checks for all other types first."""
    cast = dynamo_type.DynamoType.cast_value.fget

    def quick(value: Any) -> Any:
        return value.value if value.type == "S" else cast(value)

    dynamo_type.DynamoType.cast_value = property(quick)


def _measure_texts_at_once() -> None:
    """Moto encodes each name and value of each item that it reads. Most are ASCII."""

    def size(item: Any) -> int:
        return sum(
            (len(name) if name.isascii() else len(name.encode()))
            + (len(value.value) if value.type in TEXTS and value.value.isascii() else value.size())
            for name, value in item.attrs.items()
        )

    dynamo_type.Item.size = size


def _answer_with_texts_as_they_are() -> None:
    """Moto tries each text for a date and for a converter of its own."""
    to_dict = utilities.dynamo_to_dict

    def quick(value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return value
        if kind is dynamo_type.DynamoType and value.type in TEXTS:
            return {value.type: value.value}
        if kind is dict:
            return {name: quick(each) for name, each in value.items()}
        return to_dict(value)

    utilities.dynamo_to_dict = responses.dynamo_to_dict = quick


def skip_http() -> None:
    """Pass botocore's requests to moto in this process, without HTTP."""
    _call_handlers_directly()
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
        handler.body = json.loads(body, object_hook=_decoded if b'"B"' in body else None)
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


def _has_other_handlers(endpoint: Any, operation: str) -> bool:
    """Whether anything but moto handles a request before it is sent.

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
    """Return a sentence about a key of a wrong length. It is empty if there is none."""
    for name, value in _keys(request):
        size = len(value.get("S", "-").encode(errors="surrogatepass"))
        if not 0 < size <= (PARTITION_KEY_BYTES if name == "pk" else SORT_KEY_BYTES):
            return f"the key {name} has {size} bytes"
    return ""


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
