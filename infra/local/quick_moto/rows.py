# mypy: disable-error-code="method-assign, assignment, attr-defined"
# ruff: noqa: ANN401, SLF001
"""Let moto share stored rows, which an update replaces and never changes."""

import copy
from decimal import Decimal
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from moto.core import responses as core_responses
from moto.core import serialize
from moto.dynamodb import models, responses
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import DynamoDBBackend, Table, dynamo_type, utilities

ITEM_BYTES = 405_000
"""The largest item that moto accepts."""
TEXTS = frozenset({"S", "N"})
"""Types of DynamoDB whose values are strings."""
PLAIN = TEXTS | {"BOOL", "NULL"}
"""Types whose values are the same in JSON."""
IMMUTABLE = (str, bytes, int, float, bool, Decimal, type(None))


def make_quick() -> None:
    """Change moto in this process, permanently."""
    _back_up_only_what_a_transaction_names()
    _copy_values_that_can_change()
    _update_copies_of_rows()
    _measure_a_new_item_once()
    _serialize_only_the_type_that_a_value_has()
    _look_up_actions_once()
    _query_only_the_partition()
    _project_without_converting()
    _compare_texts_as_they_are()
    _measure_texts_at_once()
    _answer_with_texts_as_they_are()


def _back_up_only_what_a_transaction_names() -> None:
    """Moto copies every table for each item of a transaction, to be able to roll it back."""
    transact = DynamoDBBackend.transact_write_items

    def quick(backend: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        named_places = [
            place_of(backend, *key) for action in transact_items for key in action.items()
        ]
        old_rows = [(place, place.rows.get(place.sk)) for place in named_places if place]
        try:
            transact(backend, transact_items)
        # A time limit of a test may interrupt the transaction with any exception.
        except BaseException:
            for place, item in old_rows:
                put_back(place, row=item)
            raise

    DynamoDBBackend.transact_write_items = quick
    models.copy = SimpleNamespace(deepcopy=_all_but_tables, copy=copy.copy)


def place_of(
    backend: DynamoDBBackend, action: str, request: dict[str, Any]
) -> SimpleNamespace | None:
    """Return the location of the row that a write names, or None without a row."""
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


def _copy_values_that_can_change() -> None:
    """Share values of known types and whole rows, because a stored row never changes."""

    def value(original: Any, memo: dict[int, Any]) -> Any:
        old_value = original.value
        if isinstance(old_value, IMMUTABLE):
            return original
        # The constructor would parse the value once more.
        copied_value = object.__new__(dynamo_type.DynamoType)
        copied_value.type, copied_value.value = original.type, copy.deepcopy(old_value, memo)
        return copied_value

    dynamo_type.DynamoType.__deepcopy__ = value
    dynamo_type.Item.__deepcopy__ = lambda item, _memo: item


def _update_copies_of_rows() -> None:
    """Moto changes a row in place, so that it copies each row before each use.

    A stored row never changes here: an update replaces it. A failed update leaves it.
    """
    update = DynamoDBBackend.update_item

    def quick(backend: Any, table_name: str, key: Any, *args: Any, **options: Any) -> Any:
        place = place_of(backend, "Update", {"TableName": table_name, "Key": key})
        if place is None:
            return update(backend, table_name, key, *args, **options)
        old_row = place.rows.get(place.sk)
        if old_row is not None:
            place.rows[place.sk] = _copied(old_row)
        try:
            return update(backend, table_name, key, *args, **options)
        except BaseException:
            put_back(place, row=old_row)
            raise

    DynamoDBBackend.update_item = quick


def _copied(row: Any) -> Any:
    """Return a copy of a row that shares the values that cannot change."""
    copied_item = object.__new__(dynamo_type.Item)
    copied_item.hash_key, copied_item.range_key = row.hash_key, row.range_key
    copied_item.attrs = dynamo_type.LimitedSizeDict()
    for name, value in row.attrs.items():
        # ``LimitedSizeDict`` measures the whole item with each attribute that is set.
        dict.__setitem__(copied_item.attrs, name, copy.deepcopy(value))
    return copied_item


def put_back(place: Any, *, row: Any) -> None:
    """Store a row again as it was, or delete the row for None."""
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
        if _size(item.attrs) > ITEM_BYTES:
            raise ItemSizeTooLarge

    dynamo_type.Item.__init__ = init


def _serialize_only_the_type_that_a_value_has() -> None:
    """Skip moto's checks for the other nine types of a value."""
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
    """Moto sorts all items of a table, and then looks for the items of the partition.

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
    """Convert only the attributes that are returned to Python values."""
    project = dynamo_type.Item.project

    def quick(item: Any, paths: list[list[str]]) -> Any:
        if any(len(path) > 1 or "[" in path[0] for path in paths):
            return project(item, paths)
        projected_item = copy.copy(item)
        projected_item.attrs = {name: item.attrs[name] for (name,) in paths if name in item.attrs}
        return projected_item

    dynamo_type.Item.project = quick


def _compare_texts_as_they_are() -> None:
    """Check first whether a key is a string, before moto checks for other types."""
    cast = dynamo_type.DynamoType.cast_value.fget

    def quick(value: Any) -> Any:
        return value.value if value.type == "S" else cast(value)

    dynamo_type.DynamoType.cast_value = property(quick)


def _measure_texts_at_once() -> None:
    """Moto encodes each name and value of each item that it reads. Most are ASCII.

    A row is measured once, when it is first read, because a stored row never changes.
    """

    def size(item: Any) -> int:
        if not hasattr(item, "bytes"):
            item.bytes = _size(item.attrs)
        return int(item.bytes)

    dynamo_type.Item.size = size


def _size(attributes: dict[str, Any]) -> int:
    """Return the size of an item in bytes."""
    return sum(
        (len(name) if name.isascii() else len(name.encode()))
        + (len(value.value) if value.type in TEXTS and value.value.isascii() else value.size())
        for name, value in attributes.items()
    )


def _answer_with_texts_as_they_are() -> None:
    """Moto tries each value for a date and for a converter of its own."""
    to_dict = utilities.dynamo_to_dict

    def quick(value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return value
        if kind is dynamo_type.DynamoType:
            if value.type in PLAIN:
                return {value.type: value.value}
            if value.type == "M":
                return {"M": {name: quick(child) for name, child in value.value.items()}}
            if value.type == "L":
                return {"L": [quick(child) for child in value.value]}
        if kind is dict:
            return {name: quick(child) for name, child in value.items()}
        return to_dict(value)

    utilities.dynamo_to_dict = responses.dynamo_to_dict = quick


def attributes_of(row: Any) -> dict[str, Any]:
    """Return the attributes of a stored row in DynamoDB's JSON, converted once."""
    if not hasattr(row, "converted"):
        row.converted = utilities.dynamo_to_dict(dict(row.attrs))
    return dict(row.converted)
