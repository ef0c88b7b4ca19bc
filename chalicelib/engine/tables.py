"""The tables and the attributes that all rows share, the only definition of the database.

Every partition key contains its owner (``W#<workspace>#<NOUN>``). The owner is never only a filter.
"""

import json
from collections.abc import Collection
from datetime import date
from functools import partial
from types import new_class
from typing import Any, ClassVar, Self, cast

from pydantic.alias_generators import to_camel
from pynamodb.attributes import (
    Attribute,
    JSONAttribute,
    NumberAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import TableConnection
from pynamodb.constants import STRING
from pynamodb.exceptions import TableError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.indexes import IncludeProjection, KeysOnlyProjection, LocalSecondaryIndex
from pynamodb.models import Model

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import FieldError, PayloadTooLargeError, VersionConflictError
from chalicelib.core.settings import settings
from chalicelib.engine.connection import connection, reaching
from chalicelib.engine.item_sizes import MAX_ITEM_BYTES, is_key, size_of

Facets = tuple[str | None, str | None, str | None, str | None]


class JsonAttribute(JSONAttribute):
    """JSON as compact UTF-8. ASCII escapes would triple the length of Cyrillic."""

    def serialize(self, value: Any) -> str | None:  # noqa: ANN401  any JSON value
        if value is None:
            return None
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class DateAttribute(Attribute[date]):
    """A calendar day as ISO text."""

    attr_type = STRING

    def serialize(self, value: date) -> str:
        return value.isoformat()

    def deserialize(self, value: str) -> date:
        return date.fromisoformat(value)


class TableName:
    """A table's full name, such as ``workspace-dev-content``, computed on access."""

    def __init__(self, table: str) -> None:
        self._table = table

    def __get__(self, instance: object, owner: type) -> str:
        # Importing this module must not read the environment.
        return settings().table_name(self._table)


class Row(Model):
    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)

    @classmethod
    def _get_connection(cls) -> TableConnection:
        if cls._connection is None:
            table = super()._get_connection()
            shared = connection()
            if table.table_name not in shared._tables:  # noqa: SLF001  PynamoDB has no public method
                shared.add_meta_table(table.get_meta_table())
            table.connection = shared
        return cast("TableConnection", cls._connection)

    @classmethod
    def find(cls, pk: str, sk: str) -> Self | None:
        """Return the row with this key, read consistently, or None."""
        if not is_key(pk, sk):
            return None
        with reaching():
            try:
                return cls.get(pk, sk, consistent_read=True)
            except cls.DoesNotExist:
                return None

    @classmethod
    def partition(cls, pk: str, **options: Any) -> list[Self]:  # noqa: ANN401  PynamoDB's query options
        """Return the rows of a partition in the order of their sort keys, read consistently."""
        if not is_key(pk):
            return []
        with reaching():
            return list(cls.query(pk, consistent_read=True, **options))

    def serialize(self, null_check: bool = True) -> dict[str, dict[str, Any]]:  # noqa: FBT001, FBT002  PynamoDB's signature
        """Return the row in DynamoDB's JSON; raise PayloadTooLargeError if it is too large."""
        item = super().serialize(null_check)
        if (size := size_of(item)) > MAX_ITEM_BYTES:
            raise self._too_large(item, size)
        return item

    def _too_large(self, item: dict[str, dict[str, Any]], size: int) -> PayloadTooLargeError:  # noqa: ARG002  for records
        limit = f"{MAX_ITEM_BYTES:,} bytes"
        msg = f"expected a record of at most {limit}, received {size:,}. Shorten it."
        return PayloadTooLargeError(msg, key="record")


class IdentityRow(Row):
    """Accounts, workspaces, memberships, keys, look-ups, global claims, and sessions."""

    class Meta:
        """PynamoDB's settings."""

        table_name = TableName("identity")

    expires = TTLAttribute(null=True)


class ByRow(LocalSecondaryIndex["ContentRow"]):  # type: ignore[no-untyped-call]  # PynamoDB's own hook
    """The compact index: what lists filter, search and sort by, about 150 bytes per row."""

    class Meta:
        """PynamoDB's settings."""

        index_name = "by_row"
        projection = IncludeProjection(
            ["s", "f1", "f2", "f3", "n1", "n2", "t", "x", "c", "y1", "y2"]
        )

    pk = UnicodeAttribute(hash_key=True)
    r = UnicodeAttribute(range_key=True)


def _order(slot: str) -> LocalSecondaryIndex[Any]:
    meta = type("Meta", (), {"index_name": f"by_{slot}", "projection": KeysOnlyProjection()})
    body = {
        "Meta": meta,
        "pk": UnicodeAttribute(hash_key=True),
        slot: UnicodeAttribute(range_key=True),
    }
    order = new_class(
        f"By{slot.upper()}", (LocalSecondaryIndex,), exec_body=lambda ns: ns.update(body)
    )
    return cast("LocalSecondaryIndex[Any]", order())


class ContentRow(Row):
    """A row of ``content``, the workspaces' data. Short names are slots of the list engine."""

    class Meta:
        """PynamoDB's settings."""

        table_name = TableName("content")

    expires = TTLAttribute(null=True)
    r = UnicodeAttribute(null=True)  # groups rows under a parent (a page's site)
    s = UnicodeAttribute(null=True)  # the status
    f1 = UnicodeAttribute(null=True)  # facets
    f2 = UnicodeAttribute(null=True)
    f3 = UnicodeAttribute(null=True)
    n1 = NumberAttribute(null=True)  # numbers to sort by
    n2 = NumberAttribute(null=True)
    t = UnicodeAttribute(null=True)  # the folded search string
    # Marks a search string that is too long for the row's index entry.
    x = NumberAttribute(null=True)
    c = UnicodeAttribute(null=True)  # multi-valued facets and the names of set attributes
    y1 = NumberAttribute(null=True)  # a number to filter by only
    y2 = NumberAttribute(null=True)  # the time of the last change
    o1 = UnicodeAttribute(null=True)  # the keys of the indexes of large collections
    o2 = UnicodeAttribute(null=True)
    o3 = UnicodeAttribute(null=True)
    o4 = UnicodeAttribute(null=True)

    # All local indexes are created with the table: DynamoDB cannot add one later (ADR 4).
    by_row = ByRow()
    by_o1 = _order("o1")
    by_o2 = _order("o2")
    by_o3 = _order("o3")
    by_o4 = _order("o4")

    # What stays when the row's person is erased: ids, counts, times and words of fixed lists, or
    # what the business has written. All others go, so an attribute that is added later goes, too.
    kept_when_erased: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def erasable(cls) -> dict[str, Attribute[Any]]:
        """Return the attributes that an erasure removes, by name."""
        kept = {*ContentRow.get_attributes(), *cls.kept_when_erased}
        return {name: each for name, each in cls.get_attributes().items() if name not in kept}

    def erase(self) -> None:
        """Set the attributes that are not kept to their defaults. The caller saves the row."""
        for name, attribute in self.erasable().items():
            default = attribute.default
            setattr(self, name, default() if callable(default) else default)


class Record(ContentRow):
    """A record of a noun. Its sort key is its id. Another stored version refuses a save."""

    version = VersionAttribute()
    created_at = UTCDateTimeAttribute()
    updated_at = UTCDateTimeAttribute()

    # Id of the deletion, or of another thing, that a soft-deleted record is found by.
    trashed_with_id = UnicodeAttribute(null=True)

    kept_when_erased = frozenset({"version", "created_at", "updated_at", "trashed_with_id"})

    stored: dict[str, Any] | None = None  # the row as it was read, in DynamoDB's JSON; None if new
    # The stored row was counted under these. A new record has only None.
    facets_read: Facets = (None, None, None, None)
    revision: int = 0  # what readers see after the commit
    follows: int = 0  # the version of the row that a new row continues, when a record moves

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        record = super().from_raw_data(data)
        record.stored = data
        record.facets_read, record.revision = record.facets, int(record.version or 0)
        return record

    def _handle_version_attribute(
        self,
        *,
        attributes: dict[str, Any] | None = None,
        actions: list[Action] | None = None,
    ) -> Condition | None:
        # A row may continue another one, whereas PynamoDB sets version 1.
        is_new = self.version is None
        condition = super()._handle_version_attribute(attributes=attributes, actions=actions)
        if is_new and attributes is not None:
            attributes["version"] = {"N": str(self.follows + 1)}
        return condition

    def require_version(self, expected: int | None) -> None:
        """Raise VersionConflictError if a write was made for another version than the record's."""
        if expected is not None and expected != self.revision:
            msg = (
                f"ifVersion: expected {self.revision}, the current version of the record, "
                f"received {expected}. Read the record, and apply your change to it."
            )
            raise VersionConflictError(msg, version=self.revision)

    def changes(self, among: Collection[str] | None = None) -> list[Action]:
        """Return one action per changed attribute, which turn the stored row into this one."""
        # A change of one number must not write a long text again.
        old, new = self.stored or {}, self.serialize()
        actions: list[Action] = []
        for name, attribute in self.get_attributes().items():
            wire = attribute.attr_name
            if wire in {"pk", "sk", "version"} or old.get(wire) == new.get(wire):
                continue
            if among is not None and name not in among:
                continue
            path: Any = getattr(type(self), name)
            actions.append(path.set(getattr(self, name)) if wire in new else path.remove())
        return actions

    def _too_large(self, item: dict[str, dict[str, Any]], size: int) -> PayloadTooLargeError:
        sizes = {
            name: size_of(item[attribute.attr_name])
            for name, attribute in self.get_attributes().items()
            if attribute.attr_name in item
        }
        largest = max(sizes, key=sizes.__getitem__)
        field = to_camel(largest)
        message = (
            f"expected a record of at most {MAX_ITEM_BYTES:,} bytes, received {size:,}, of which "
            f"{sizes[largest]:,} are {field}. Shorten it."
        )
        return PayloadTooLargeError(
            f"{field}: {message}", errors=[FieldError(field, message, "too_large")], key="field"
        )

    @property
    def original(self) -> Self | None:
        """The record as it was read, or None for a new record."""
        return self.from_raw_data(dict(self.stored)) if self.stored else None

    @property
    def facets(self) -> Facets:
        return (self.s, self.f1, self.f2, self.f3)

    @property
    def values(self) -> dict[str, Any]:
        """The attributes with a value, the id, and as ``version`` the version that readers see."""
        # PynamoDB's attribute access takes ten times as long as one dictionary.
        attributes = self.attribute_values
        return {**attributes, "id": attributes["sk"], "version": self.revision}

    def copied_values(self, *except_for: str) -> dict[str, Any]:
        """Return the attributes that a copy of the record gets, which only its noun has."""
        names = self.get_attributes().keys() - Record.get_attributes().keys() - set(except_for)
        return {name: value for name, value in self.attribute_values.items() if name in names}

    @property
    def id(self) -> str:
        return self.sk


class ProgramRecord(Record):
    """A record that a program makes, with its id in the program's system and metadata (ADR 113).

    Its listing finds it by ``external_id``. An erasure removes both.
    """

    external_id = UnicodeAttribute(null=True)
    metadata: JsonAttribute = JsonAttribute(null=True)  # strings by key; None if there are none

    def copied_values(self, *except_for: str) -> dict[str, Any]:
        # The other system knows only the original.
        return super().copied_values("external_id", *except_for)


def changed_now() -> list[Action]:
    """Return the actions by which a change of single attributes becomes a change of the record."""
    now = clock.now()
    return [Record.updated_at.set(now), ContentRow.y2.set(epoch_ms(now))]


class ConversationRow(Row):
    """A row of ``conversations``, the table for data without a fixed limit: daily counters."""

    class Meta:
        """PynamoDB's settings."""

        table_name = TableName("conversations")

    expires = TTLAttribute(null=True)


class ControlRow(Row):
    """A row of ``control``, such as an idempotency record or a scheduled job."""

    class Meta:
        """PynamoDB's settings."""

        table_name = TableName("control")

    expires = TTLAttribute(null=True)


class AuditTableRow(Row):
    """A row of ``audit``, a separate table: functions may only put rows and query them (ADR 17)."""

    class Meta:
        """PynamoDB's settings."""

        table_name = TableName("audit")

    expires = TTLAttribute()


class LedgerRow(Row):
    """Wallets, entries, holds and budgets. Rows never expire and are never deleted."""

    class Meta:
        """PynamoDB's settings."""

        table_name = TableName("ledger")


TABLES: dict[str, type[Row]] = {
    "identity": IdentityRow,
    "content": ContentRow,
    "conversations": ConversationRow,
    "ledger": LedgerRow,
    "control": ControlRow,
    "audit": AuditTableRow,
}


def ensure_tables() -> list[str]:
    """Create missing tables, with their time-to-live, and return their names."""
    names = []
    for row in TABLES.values():
        if not row.exists():
            create = partial(row.create_table, wait=True, billing_mode="PAY_PER_REQUEST")
            try:
                create()
            except (
                TableError
            ):  # The request was repeated after a lost response, and found the table.
                create()
            names.append(row.Meta.table_name)
    return names
