"""The own calendar of the demo's first teacher, whose busy times are not offered."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.schedule.flows import busy_links
from chalicelib.domains.schedule.store import busy_calendars
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib.spans import Span
from infra.local.demo import school
from infra.local.demo.caller import Caller, index_by_name
from infra.local.demo.texts import Language

HOST = "calendar.example.com"
PLACES = (6, 15, 24)
"""Numbers of the free times at which the calendar is busy, counted from 0."""


def make_busy_times(do: Caller, language: Language) -> None:
    """Store a calendar that was read now, and is busy at some times that were free.

    It is written to the database directly, because no calendar of another service can be read here.
    So no job reads it again, unless a user asks for that.
    """
    teacher = school.load(language).teachers[0]
    resource = index_by_name(do("list_resources", size=100)["resources"]).get(teacher.name)
    if resource is None or BusyCalendarRow.of(do.workspace_id, resource["id"]) is not None:
        return
    services = index_by_name(do("list_services", size=100)["services"])
    names = [name for name in teacher.services if name in services]
    if not names:
        return
    slots = do(
        "get_available_slots",
        serviceId=services[names[-1]]["id"],
        resourceId=resource["id"],
        limit=max(PLACES) + 1,
    )["slots"]
    spans = [
        Span(*(epoch_ms(datetime.fromisoformat(slot[name])) for name in ("startAt", "endAt")))
        for slot in (slots[place] for place in PLACES if place < len(slots))
    ]
    run_unit(do.workspace_id, None, lambda unit: _stage(unit, resource, spans))


def _stage(unit: UnitOfWork, resource: dict[str, str], spans: Sequence[Span]) -> None:
    now = clock.now()
    calendar = busy_calendars.new(unit.workspace_id, resource["id"])
    busy_links.set_link(calendar, f"https://{HOST}/basic.ics", HOST)
    calendar.read_at = calendar.succeeded_at = now
    calendar.next_at = now + timedelta(days=365)
    calendar.zone = resource["timezone"]
    calendar.first_day = (now - timedelta(days=1)).date().isoformat()
    unit.save(calendar)
    days = calendar_days.elsewhere_by_day(spans)
    calendar_days.stage_elsewhere(unit, resource["id"], days)
