"""The rules of a service that decide when it can be booked."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Self


class Length(NamedTuple):
    """The length of a service with one resource, and the minutes between its starts."""

    duration_min: int
    step_min: int


_NONE: Mapping[str, Length] = MappingProxyType({})


class ServiceRules(NamedTuple):
    """Requirements of a service for a slot.

    A booking to be moved keeps its duration and buffers.
    """

    duration_min: int
    step_min: int
    buffer_before_min: int = 0
    buffer_after_min: int = 0
    min_notice_min: int = 0
    horizon_days: int = 60
    # By resource id, where they differ.
    lengths: Mapping[str, Length] = _NONE
    service_id: str = ""
    fixed_starts: bool = False  # offered at its dated starts only (ADR 141)

    def with_resource(self, resource_id: str) -> Self:
        """Return the rules of a slot of one resource."""
        length = self.lengths.get(resource_id)
        own = self._replace(lengths=_NONE) if self.lengths else self
        return own._replace(**length._asdict()) if length else own

    @property
    def longest_min(self) -> int:
        return max([self.duration_min, *(length.duration_min for length in self.lengths.values())])
