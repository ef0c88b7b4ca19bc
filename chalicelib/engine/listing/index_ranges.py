"""Ranges along an index: bounds on numbers and times as bounds on sort keys."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pynamodb.expressions.condition import Condition

from chalicelib.core.clock import epoch_ms
from chalicelib.core.ids import first_id_at
from chalicelib.engine.listing.index_entries import BY_ROW, number_key
from chalicelib.engine.tables import ContentRow

Bounds = tuple[Any, Any]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IndexRange:
    """Bounds on the keys of an index, or without one on the table in the order of creation."""

    index: str | None
    prefix: str
    lower: str | None = None
    upper: str | None = None

    @property
    def condition(self) -> Condition | None:
        slot: Any = ContentRow.sk
        if self.index is not None:
            slot = ContentRow.r if self.index == BY_ROW else getattr(ContentRow, self.index[3:])
        condition: Condition | None = None
        if self.lower is not None or self.upper is not None:
            # "~" sorts after every digit and after every character of an id.
            top = self.prefix + (self.upper or "") + "~"
            lower = self.prefix + (self.lower or "")
            condition = slot.between(lower, top) if lower else slot <= top
        elif self.prefix:
            condition = slot.startswith(self.prefix)
        return condition

    def options(self, *, descending: bool) -> dict[str, Any]:
        options: dict[str, Any] = {"scan_index_forward": not descending}
        if self.index is not None:
            options["index_name"] = self.index
        if (condition := self.condition) is not None:
            options["range_key_condition"] = condition
        return options


def to_number(bound: Any) -> int | None:  # noqa: ANN401  a number, a time or None
    """Return a bound as the number that an index holds."""
    return epoch_ms(bound) if isinstance(bound, datetime) else bound


def key_bounds(bounds: Bounds) -> tuple[str | None, str | None]:
    """Return bounds on a number as bounds on the keys of its index."""
    lower, upper = map(to_number, bounds)
    return (
        None if lower is None else number_key(lower),
        None if upper is None else number_key(upper),
    )


def id_bounds(bounds: Bounds) -> tuple[str | None, str | None]:
    """Return bounds on the time of creation as bounds on ids, which begin with the time."""
    lower, upper = bounds
    return (
        # A ULID encodes its 48 bits of time in the first ten characters.
        None if lower is None else first_id_at(lower)[:10],
        None if upper is None else first_id_at(upper)[:10],
    )
