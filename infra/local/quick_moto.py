# mypy: disable-error-code="method-assign, assignment, attr-defined"
# ruff: noqa: ANN401, SLF001
"""Makes moto's DynamoDB several times as fast.

The stand-in of DynamoDB Local and the tests use it. Its answers stay the same.
Only work that does not change an answer is left out. One request at a time is served, because
moto's tables are not thread-safe.
"""

import copy
import pickle
from collections import deque
from decimal import Decimal
from functools import lru_cache
from threading import Lock
from types import SimpleNamespace
from typing import Any

from moto.core import responses as core_responses
from moto.core import serialize
from moto.dynamodb import comparisons, models, responses
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import DynamoDBBackend, Table, dynamo_type, utilities
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.expressions import UpdateExpressionParser

ITEM_BYTES = 405_000
"""The largest item that moto accepts."""
TEXTS = frozenset({"S", "N"})
"""Types of DynamoDB whose values are texts."""
IMMUTABLE = (str, bytes, int, float, bool, Decimal, type(None))
LOCK = Lock()
"""Held while a request uses the tables."""


def make_quick() -> None:
    """Change moto in this process, for good."""
    _one_request_at_a_time()
    _back_up_only_what_a_transaction_names()
    _parse_each_expression_once()
    _walk_only_nodes_that_are_looked_for()
    _copy_without_looking()
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
        kept = [(place, copy.deepcopy(place.rows.get(place.sk))) for place in before if place]
        try:
            transact(backend, transact_items)
        except BaseException:
            for place, item in kept:
                place.rows.pop(place.sk, None)
                if item is not None:
                    place.rows[place.sk] = item
            raise

    DynamoDBBackend.transact_write_items = quick
    models.copy = SimpleNamespace(deepcopy=_all_but_tables, copy=copy.copy)


def place_of(
    backend: DynamoDBBackend, action: str, request: dict[str, Any]
) -> SimpleNamespace | None:
    """Return the location of the item in a transaction's action."""
    table = backend.tables.get(request["TableName"])
    if table is None:
        return None
    key = request["Item" if action == "Put" else "Key"]
    pk, sk = (dynamo_type.DynamoType(key[name]) for name in table.table_key_attrs)
    return SimpleNamespace(rows=table.items[pk], sk=sk)


def _all_but_tables(value: Any) -> Any:
    return value if isinstance(value, Table) else copy.deepcopy(value)


def _parse_each_expression_once() -> None:
    """There are few expressions, since their values are separate.

    Code that changes one copies it.
    """
    UpdateExpressionParser.make = lru_cache(UpdateExpressionParser.make)
    parser = comparisons.ConditionExpressionParser
    lex = parser._lex_condition_expression

    @lru_cache
    def nodes(expression: str) -> tuple[Any, ...]:
        return tuple(lex(parser(expression, None, None)))

    def quick(condition: Any) -> deque[Any]:
        return deque(nodes(condition.condition_expression))

    parser._lex_condition_expression = quick


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

    They are trees of nodes, which are parsed once, and items whose values never change.
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

    def item(original: Any, memo: dict[int, Any]) -> Any:
        made = object.__new__(dynamo_type.Item)
        made.hash_key, made.range_key = original.hash_key, original.range_key
        made.attrs = dynamo_type.LimitedSizeDict()
        for name, each in original.attrs.items():
            dict.__setitem__(made.attrs, name, value(each, memo))
        return made

    Node.__deepcopy__ = node
    dynamo_type.DynamoType.__deepcopy__ = value
    dynamo_type.Item.__deepcopy__ = item


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
