"""Read what decides about a booking in few waves of requests to the database.

Each wave reads what the previous one has led to: the service leads to its resources, and they to
the time zone of the requested start. A start with a UTC offset needs no zone, so the calendar days
are then read with the resources. The rows are those of the unit of work.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.services.store.time_off import CheckedTimeOff
from chalicelib.engine.reading import Key
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span


def read_service(unit: UnitOfWork, service_id: str, keys: Iterable[Key] = ()) -> ServiceRow | None:
    """Return a service, read in one request with the workspace, the lock and other rows."""
    key, tenant = SERVICES.key(unit.workspace_id, record_id=service_id), unit.workspace_id
    unit.rows.read([key, workspaces.key(tenant), time_off.lock_key(tenant), *keys])
    slot_search.workspace_of(unit)
    return unit.rows.find(ServiceRow, key)


def read_ahead(  # noqa: PLR0913  what a booking asks for
    unit: UnitOfWork,
    service: ServiceRow,
    start: date,
    resource_id: str | None,
    *,
    with_time_off: bool,
    keys: Iterable[Key] = (),
) -> None:
    """Read, with other rows, what shows whether a service can be booked at a start."""
    ids = [resource_id] if resource_id else list(service.resource_ids)
    keys = [*keys, *opening_hours.keys_with_schedules(unit.workspace_id, service.resource_ids)]
    if not isinstance(start, datetime) or start.tzinfo is None:
        unit.rows.read(keys)
        return
    moment = epoch_ms(start)
    spans = spans_of(service.rules, ids, moment)
    off = slots.busy_range(service.rules, moment, last=moment)
    read_calendars(unit, spans, off if with_time_off else None, keys)


def spans_of(
    rules: ServiceRules, resource_ids: Iterable[str], start: int
) -> list[tuple[str, Span]]:
    """Return what a booking at a start takes of each resource."""
    return [
        (resource_id, slots.busy_range(rules.with_resource(resource_id), start, last=start))
        for resource_id in resource_ids
    ]


def read_calendars(
    unit: UnitOfWork,
    spans: Sequence[tuple[str, Span]],
    off: Span | None,
    keys: Iterable[Key] = (),
) -> CheckedTimeOff | None:
    """Read calendar days and other rows, side by side with the time off in ``off``."""
    keys = [*keys, *calendar_days.keys_of(unit.workspace_id, spans).values()]
    if off is not None:
        return time_off.read_checked(unit, off, keys)
    unit.rows.read(keys)
    return None
