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
    """The query of a list operation.

    ``page`` starts at 1. ``filters`` maps an attribute to the wanted value, or a facet to several
    accepted values. An attribute with several values must include the wanted one. ``lookups`` maps
    look-ups to a value, and ``present`` maps attributes to whether they are set. ``ranges`` maps
    numbers, times or ``created_at`` to inclusive bounds. None means no filter. ``ids`` limits the
    result to these records. ``parent`` is the id of the parent. ``charge`` is called with a weight
    before a search reads a large collection, and may refuse it.
    """

    page: int
    size: int
    sort: str
    descending: bool = False
    filters: Mapping[str, str | Collection[str] | None] = field(default_factory=dict)
    lookups: Mapping[str, str | None] = field(default_factory=dict)
    present: Mapping[str, bool | None] = field(default_factory=dict)
    ranges: Mapping[str, Bounds] = field(default_factory=dict)
    search: str | None = None
    ids: Collection[str] | None = None
    parent: str | None = None
    charge: Callable[[int], object] | None = None

    @property
    def offset(self) -> int:
        """The number of rows before the page."""
        return (self.page - 1) * self.size


class Selection(TypedDict, total=False):
    """The parts of a query except the page, for ``Listing.query``."""

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
    """One page of a list, and the number of matching records over all pages.

    ``plan`` names the way of reading, and ``cost`` its requests and read units.
    """

    records: list[R]
    total: int
    plan: Plan
    cost: Cost
