"""Moto, safe under threads and about twice as fast: the suite's time is mostly moto's.

What moto answers stays the same; only work that changes no answer is left out.
"""

import copy
from collections import deque
from functools import lru_cache
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest
from moto.core import responses as core_responses
from moto.core import serialize
from moto.dynamodb import comparisons, models, responses
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import DynamoDBBackend, Table, dynamo_type
from moto.dynamodb.parsing.expressions import UpdateExpressionParser

ITEM_BYTES = 405_000
"""What moto takes for the largest item."""


@pytest.fixture(scope="session", autouse=True)
def _quick_moto() -> None:
    _one_request_at_a_time()
    _back_up_only_what_a_transaction_names()
    _parse_each_expression_once()
    _measure_a_new_item_once()
    _serialize_only_the_type_that_a_value_has()
    _look_up_actions_once()


def _one_request_at_a_time() -> None:
    """Moto's tables are not safe under threads."""
    lock, call_action = Lock(), responses.DynamoHandler.call_action

    def locked(handler: Any) -> Any:
        with lock:
            return call_action(handler)

    responses.DynamoHandler.call_action = locked


def _back_up_only_what_a_transaction_names() -> None:
    """Moto copies each table whole, once for each item of a transaction, to roll it back."""
    transact = DynamoDBBackend.transact_write_items

    def quick(backend: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        before = [_place(backend, *named) for action in transact_items for named in action.items()]
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


def _place(
    backend: DynamoDBBackend, action: str, request: dict[str, Any]
) -> SimpleNamespace | None:
    """Return where the item is that an action of a transaction names."""
    table = backend.tables.get(request["TableName"])
    if table is None:
        return None
    key = request["Item" if action == "Put" else "Key"]
    pk, sk = (dynamo_type.DynamoType(key[name]) for name in table.table_key_attrs)
    return SimpleNamespace(rows=table.items[pk], sk=sk)


def _all_but_tables(value: Any) -> Any:
    return value if isinstance(value, Table) else copy.deepcopy(value)


def _parse_each_expression_once() -> None:
    """Expressions are few, with their values apart; whoever changes a parsed one copies it."""
    UpdateExpressionParser.make = lru_cache(UpdateExpressionParser.make)
    parser = comparisons.ConditionExpressionParser
    lex = parser._lex_condition_expression

    @lru_cache
    def nodes(expression: str) -> tuple[Any, ...]:
        return tuple(lex(parser(expression, None, None)))

    def quick(condition: Any) -> deque[Any]:
        return deque(nodes(condition.condition_expression))

    parser._lex_condition_expression = quick


def _measure_a_new_item_once() -> None:
    """Moto adds up what an item has so far for each attribute that it gets."""

    def init(item: Any, hash_key: Any, range_key: Any, attrs: dict[str, Any]) -> None:
        item.hash_key, item.range_key = hash_key, range_key
        item.attrs = dynamo_type.LimitedSizeDict()
        for name, value in attrs.items():
            dict.__setitem__(item.attrs, name, dynamo_type.DynamoType(value))
        if item.size() > ITEM_BYTES:
            raise ItemSizeTooLarge

    dynamo_type.Item.__init__ = init


def _serialize_only_the_type_that_a_value_has() -> None:
    """A value has one of ten types; moto looks for the nine others, each in several spellings."""
    serializer = serialize.ResponseSerializer
    serialize_member = serializer._serialize_structure_member

    def quick(self: Any, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.parent.name != "AttributeValue" or key in value:
            serialize_member(self, serialized, value, shape, key)

    serializer._serialize_structure_member = quick


def _look_up_actions_once() -> None:
    """Which actions a service has never changes."""
    core_responses.method_names_from_class = lru_cache(core_responses.method_names_from_class)
