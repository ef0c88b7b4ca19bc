"""A start of a service on a date, where it is offered on dates only (ADR 141)."""

from typing import NamedTuple

from chalicelib.lib.spans import Span

_MINUTE = 60_000


class DatedStart(NamedTuple):
    """A start of a service on a date, with the length and the buffers that it keeps (ADR 141).

    Its resource is there for this service alone.
    """

    service_id: str
    start: int
    end: int
    buffer_before_min: int = 0
    buffer_after_min: int = 0

    @property
    def buffered(self) -> Span:
        return Span(
            self.start - self.buffer_before_min * _MINUTE,
            self.end + self.buffer_after_min * _MINUTE,
        )

    def takes(self, service_id: str, start: int, buffered: Span) -> bool:
        """Return whether a booking of a service, with its buffers, can have a place of it."""
        own = self.buffered
        return (
            (service_id, start) == (self.service_id, self.start)
            # A service that has become longer would run into what follows.
            and own.start <= buffered.start
            and buffered.end <= own.end
        )
