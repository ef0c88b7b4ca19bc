"""A query for one page of a noun's records, and the resulting page."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypedDict, TypeVar

from chalicelib.engine.listing.index_ranges import Bounds
from chalicelib.engine.reading import Cost
from chalicelib.engine.tables import Record

R = TypeVar("R", bound=Record)
Plan = Literal["index scan", "range scan", "full scan", "look-up"]


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a list operation. A filter of None does not filter."""

    page: int  # from 1
    size: int
    sort: str
    descending: bool = False
    # An attribute and the wanted value, which one of several values must equal, or a facet and
    # several accepted values.
    filters: Mapping[str, str | Collection[str] | None] = field(default_factory=dict)
    lookups: Mapping[str, str | None] = field(default_factory=dict)
    present: Mapping[str, bool | None] = field(default_factory=dict)  # whether attributes are set
    # Inclusive bounds of numbers, times or ``created_at``.
    ranges: Mapping[str, Bounds] = field(default_factory=dict)
    search: str | None = None
    ids: Collection[str] | None = None  # limits the result to these records
    parent: str | None = None
    # Called with a weight before a search, or a list by the time of changes, reads a large
    # collection, and may refuse it.
    charge: Callable[[int], object] | None = None

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size


class Selection(TypedDict, total=False):
    sort: str
    descending: bool
    filters: Mapping[str, str | Collection[str] | None]
    lookups: Mapping[str, str | None]
    present: Mapping[str, bool | None]
    ranges: Mapping[str, Bounds]
    search: str | None
    ids: Collection[str] | None
    charge: Callable[[int], object] | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResultPage(Generic[R]):
    """One page of a list, and the number of matching records over all pages."""

    records: list[R]
    total: int
    plan: Plan
    cost: Cost
