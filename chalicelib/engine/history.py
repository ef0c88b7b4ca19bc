"""History rows, which show the changes of a record to its owner."""

from typing import Any, ClassVar, Self

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.engine.listing.index_entries import group
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

SHOWN = 500


class HistoryRow(ContentRow):
    """One change of a record. The rows of all records of a noun share a partition."""

    noun: ClassVar[str]

    at = UTCDateTimeAttribute()
    by = UnicodeAttribute()

    kept_when_erased = frozenset({"at", "by"})

    @classmethod
    def new(cls, workspace_id: str, *, record_id: str, by: str, **values: Any) -> Self:  # noqa: ANN401  the row's attributes
        place = group(record_id) + new_id()
        return cls(cls._partition(workspace_id), place, at=clock.now(), by=by, **values)

    @classmethod
    def newest(cls, workspace_id: str, *, record_id: str, limit: int | None = SHOWN) -> list[Self]:
        """Return the latest changes of a record, at most ``limit``, oldest first."""
        newest_first = cls.partition(
            cls._partition(workspace_id),
            range_key_condition=cls.sk.startswith(group(record_id)),
            scan_index_forward=False,
            limit=limit,
        )
        return newest_first[::-1]

    @classmethod
    def to_erase(cls, workspace_id: str, *, record_id: str) -> list[Self]:
        """Return the changes of a record that have values which an erasure removes."""
        names = cls.erasable()
        events = cls.newest(workspace_id, record_id=record_id, limit=None) if names else []
        empty: tuple[Any, ...] = (None, [], {})
        return [
            event for event in events if any(getattr(event, name) not in empty for name in names)
        ]

    def stage_erasure(self, unit: UnitOfWork) -> None:
        unit.update(self, [attribute.remove() for attribute in self.erasable().values()])

    @classmethod
    def _partition(cls, workspace_id: str) -> str:
        return f"W#{workspace_id}#{cls.noun}#HISTORY"
