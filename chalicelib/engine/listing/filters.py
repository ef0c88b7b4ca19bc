"""The filters of a query, checked against the noun's declaration."""

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Generic, Self, TypeVar

from pynamodb.expressions.condition import Condition

from chalicelib.engine.listing.declaration import Declaration
from chalicelib.engine.listing.index_entries import BY_ROW, group, may_contain, token
from chalicelib.engine.listing.index_ranges import (
    Bounds,
    IndexRange,
    id_bounds,
    key_bounds,
    to_number,
)
from chalicelib.engine.listing.query import Query
from chalicelib.engine.tables import ContentRow, Record

R = TypeVar("R", bound=Record)


def is_within(number: int | None, bounds: Bounds) -> bool:
    """Whether a number is within inclusive bounds. None is within no bounds."""
    lower, upper = map(to_number, bounds)
    return number is not None and (
        (lower is None or number >= lower) and (upper is None or number <= upper)
    )


@dataclass(slots=True, eq=False, repr=False)
class Filters(Generic[R]):
    listing: Declaration[R]
    equal: dict[str, str]
    any_of: dict[str, frozenset[str]]  # accepted values of facets
    lookups: dict[str, str]
    ranges: dict[str, Bounds]
    present: dict[str, bool]  # whether each must be set

    @classmethod
    def from_query(cls, listing: Declaration[R], query: Query) -> Self:
        """Return the filters, or raise ValueError if the noun does not declare one, or the sort."""
        filters = cls(
            listing,
            equal={n: v for n, v in query.filters.items() if isinstance(v, str)},
            any_of={
                name: frozenset(values)
                for name, values in query.filters.items()
                if values is not None and not isinstance(values, str)
            },
            lookups={n: v for n, v in query.lookups.items() if v is not None},
            ranges={n: b for n, b in query.ranges.items() if b != (None, None)},
            present={n: p for n, p in query.present.items() if p is not None},
        )
        if unknown := filters._unknown(query):
            msg = f"the listing of {listing.noun} knows no {', '.join(unknown)}"
            raise ValueError(msg)
        return filters

    def _unknown(self, query: Query) -> list[str]:
        listing = self.listing
        return [
            *(self.equal.keys() - {*listing.facet_slots, *listing.tags}),
            *(self.any_of.keys() - listing.facet_slots.keys()),
            *(self.lookups.keys() - {lookup.name for lookup in listing.lookups}),
            *(self.present.keys() - set(listing.presence)),
            *(self.ranges.keys() - {*listing.number_slots, "created_at"}),
            *({query.sort} - listing.sorts.keys()),
            *(self.ranges.keys() & {"created_at"} if listing.parent or listing.scan_along else ()),
            *([] if query.parent is None or listing.parent else ["parent"]),
        ]

    @property
    def excludes_all(self) -> bool:
        return any(None not in bounds and bounds[0] > bounds[1] for bounds in self.ranges.values())

    @property
    def are_few(self) -> bool:
        """Whether there is at most one filter by a value and at most one range, and no other."""
        return not (self.present or self.any_of) and max(len(self.equal), len(self.ranges)) <= 1

    def fits(self, record: R) -> bool:
        slots, tokens = self.listing.facet_slots, record.c or ""
        return (
            all(
                token(name, value=value) in tokens
                if name in self.listing.tags
                else getattr(record, slots[name]) == value
                for name, value in self.equal.items()
            )
            and all(getattr(record, slots[n]) in values for n, values in self.any_of.items())
            and all(
                (token("has", value=name) in tokens) == there
                for name, there in self.present.items()
            )
            and all(self._is_in_range(record, name, bounds) for name, bounds in self.ranges.items())
        )

    def _is_in_range(self, record: R, name: str, bounds: Bounds) -> bool:
        if name == "created_at":
            first, last = id_bounds(bounds)
            return (first or "") <= record.id and (last is None or record.id <= last + "~")
        if name == "updated_at":  # rows of earlier releases have no copy in a slot
            return is_within(to_number(record.updated_at), bounds)
        return is_within(getattr(record, self.listing.number_slots[name]), bounds)

    def where(self, words: str) -> Condition | None:
        """Return DynamoDB's filter expression for a full scan."""
        having = self.listing.having(self.equal)
        conditions: list[Condition] = [] if having is None else [having]
        for name, there in self.present.items():
            has = ContentRow.c.contains(token("has", value=name))
            conditions.append(has if there else ~has)
        for name, bounds in self.ranges.items():
            if name not in {"created_at", self.listing.scan_along}:
                conditions += self._bounds(name, bounds)
        if words:
            conditions.append(may_contain(ContentRow.t, words) | ContentRow.x.exists())
        return reduce(and_, conditions) if conditions else None

    def _bounds(self, name: str, bounds: Bounds) -> list[Condition]:
        slot = getattr(ContentRow, self.listing.number_slots[name])
        lower, upper = map(to_number, bounds)
        conditions = [
            *([slot >= lower] if lower is not None else []),
            *([slot <= upper] if upper is not None else []),
        ]
        if name == "updated_at":  # the record tells
            return [reduce(and_, conditions) | slot.does_not_exist()]
        return conditions

    def scanned(self, query: Query) -> IndexRange:
        """Return the range of entries to scan: of a parent, or within bounds of their order."""
        parent = "" if query.parent is None else group(query.parent)
        # Key conditions, because DynamoDB refuses an index key in a filter expression.
        if self.listing.scan_along:
            bounds = key_bounds(self.ranges.get(self.listing.scan_along, (None, None)))
        else:
            bounds = id_bounds(self.ranges.get("created_at", (None, None)))
        return IndexRange(BY_ROW, parent, *bounds)
