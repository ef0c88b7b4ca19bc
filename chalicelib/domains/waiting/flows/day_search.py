"""Search the free times of a service on the local day of a line."""

from typing import NamedTuple, Self

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.rules.slots import Availability, Query
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.domains.waiting.store.waiting_lines import LinePlace
from chalicelib.engine.reading import Rows
from chalicelib.lib.spans import Span


class DaySearch(NamedTuple):
    """The search for free times of a service on a local day, as the booking page shows them."""

    search: Search
    timezone: str
    period: Span  # of the starts of a day, without its end

    @classmethod
    def create(cls, workspace_id: str, service: ServiceRow, place: LinePlace, rows: Rows) -> Self:
        search = Search.create(workspace_id, service, None, rows=rows)
        zone = slot_search.zones(
            search.shown_resources,
            None,
            requested=None,
            of_workspace=lambda: workspaces.get(workspace_id, rows).timezone,
        ).effective
        span = slot_search.range_of(place.day, last=place.day, zone=zone, days=1)
        return cls(search, zone, Span(span.start, span.end + 1))

    def find(self, resource_id: str | None = None) -> Availability:
        """Return the free times that can be booked now, read consistently."""
        search = self.search if resource_id is None else self.search.among([resource_id])
        return search.slots(Query(self.period.start, self.period.end - 1, epoch_ms(clock.now())))

    @property
    def resource_spans(self) -> list[tuple[str, Span]]:
        """What of the calendars of the resources decides whether a time of the day is free."""
        span = slots.busy_range(self.search.rules, self.period.start, last=self.period.end - 1)
        return [(each.resource.id, span) for each in self.search.candidates.active]
