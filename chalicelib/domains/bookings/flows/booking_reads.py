"""Read what decides about a booking in few waves of requests to the database.

Each wave reads what the previous one has led to: the service leads to its resources, and they to
the time zone of the requested start. A start with a UTC offset needs no zone, so the calendar days
are then read with the resources.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from chalicelib.core import deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span


class BookingReads:
    """Rows and time off that one attempt to book reads, each once."""

    def __init__(self, unit: UnitOfWork) -> None:
        self.workspace_id = unit.workspace_id
        self.rows = Rows()
        self._unit = unit
        self._time_off: dict[Span, list[TimeOff]] = {}

    def read_service(self, service_id: str, keys: Iterable[Key] = ()) -> ServiceRow | None:
        """Return a service, read in one request with the workspace, the lock and other rows."""
        key, tenant = SERVICES.key(self.workspace_id, record_id=service_id), self.workspace_id
        self.rows.read([key, workspaces.key(tenant), time_off.lock_key(tenant), *keys])
        slot_search.workspace_of(self._unit, self.rows)
        return self.rows.find(ServiceRow, key)

    def read_ahead(
        self,
        service: ServiceRow,
        start: date,
        resource_id: str | None,
        *,
        with_time_off: bool,
        keys: Iterable[Key] = (),
    ) -> None:
        """Read, with other rows, what shows whether a service can be booked at a start."""
        ids = [resource_id] if resource_id else list(service.resource_ids)
        keys = [*keys, *opening_hours.keys_with_schedules(self.workspace_id, service.resource_ids)]
        if not isinstance(start, datetime) or start.tzinfo is None:
            self.rows.read(keys)
            return
        moment = epoch_ms(start)
        span = slots.busy_range(service.rules, moment, last=moment)
        self.read_calendars(
            [(resource_id, span) for resource_id in ids], span if with_time_off else None, keys
        )

    def read_calendars(
        self,
        spans: Sequence[tuple[str, Span]],
        off: Span | None,
        keys: Iterable[Key] = (),
    ) -> None:
        """Read calendar days and other rows, side by side with the time off in ``off``."""
        row_keys = [*keys, *calendar_days.keys_of(self.workspace_id, spans).values()]
        if off is None or off in self._time_off:
            self.rows.read(row_keys)
            return
        # The lock is read before the time off. If time off is added in between, the lock conflicts.
        self.rows.read([time_off.lock_key(self.workspace_id)])
        with deadline.side_by_side() as start:
            off_task = start(
                lambda: time_off.overlapping(self.workspace_id, off.start, last_ms=off.end)
            )
            self.rows.read(row_keys)
            self._time_off[off] = off_task.result()

    def time_off(self, span: Span) -> list[TimeOff]:
        return self._time_off[span]
