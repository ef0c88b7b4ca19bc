"""A query for one page of a noun's records, and the page that answers it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from chalicelib.engine.listing.index_ranges import Bounds
from chalicelib.engine.reading import Cost
from chalicelib.engine.tables import Record

R = TypeVar("R", bound=Record)
Plan = Literal["index scan", "range scan", "full scan", "look-up"]


@dataclass(frozen=True, slots=True)
class Query:
    """What a list operation asks for.

    ``page`` counts from 1. ``filters`` maps attributes to a wanted value (one of several that a
    record has), or a facet to several values, any of which will do; ``lookups`` look-ups to a
    value; ``present`` attributes to whether they are set; ``ranges`` numbers, times, or
    ``created_at`` to their bounds, both inclusive. None means any. ``ids`` are those to choose
    from. ``parent`` is the wanted parent's id. ``charge`` is called with a weight before a search
    reads a large collection, and may refuse it.
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
        """How many rows come before the page."""
        return (self.page - 1) * self.size


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[R]):
    """One page of a list, and how many records match over all pages.

    ``plan`` says how it was read, and ``cost`` what that took.
    """

    records: list[R]
    total: int
    plan: Plan
    cost: Cost
