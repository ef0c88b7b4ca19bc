"""A list of free slots, for members and for visitors."""

from collections.abc import Sequence
from itertools import takewhile

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.slot_out import SlotOut, SlotResource
from chalicelib.domains.bookings.flows.slot_search import PERMANENT_REASONS, Search
from chalicelib.domains.bookings.rules.slots import NoSlotReason, Query, Slot
from chalicelib.domains.identity.flows import periods
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

DEFAULT_DAYS = 7
MAX_DAYS = 31  # local dates of a search
MAX_SLOTS = 5000
# Small, because an AI model reads every slot, and a month of three resources has hundreds.
DEFAULT_MAX_SLOTS = 40


class SlotsRange(Wire):
    """Range and optional resource of a slot search."""

    resource_id: Id | None = optional("Only slots of this resource.")
    from_: When | None = Field(
        default=None, alias="from", description="ISO 8601 or a date, inclusive; default: now."
    )
    to: When | None = optional("Inclusive; default: 7 days later; at most 31 days.")
    timezone: Timezone | None = optional("IANA zone of startLocal, from and to.")


class SlotList(Wire):
    """Slots in a range, or the reason why there are none."""

    slots: list[SlotOut] = Field(description="The slots, by start.")
    resources: list[SlotResource] = Field(description="The service's resources.")
    timezone: str = Field(description="Zone of startLocal.")
    duration_min: int = Field(
        description="Length in minutes: the service's, or with the resourceId of the request."
    )
    step_min: int = Field(description="Minutes between the starts of two slots.")
    next_from: Timestamp | None = Field(description="from of the next call, if there are more.")
    reason: NoSlotReason | None = Field(description="Why there are no slots, or null.")
    next_available: SlotOut | None = Field(
        description="If there are no slots: the first within 93 days after, or null."
    )


def slot_list(ctx: Context, search: Search, args: SlotsRange, limit: int | None) -> SlotList:
    """Return the first ``limit`` slots of a range, or raise ValidationError for a wrong range.

    Without a limit, these are ``DEFAULT_MAX_SLOTS``, or all slots of the first day if they are
    more.
    """
    bound = search.candidates.bound
    zone = slot_search.zones(
        bound,
        args.resource_id,
        requested=args.timezone,
        of_workspace=lambda: periods.zone_of_workspace(ctx),
    ).effective
    span = _span(args, zone)
    query = Query(span.start, span.end, epoch_ms(clock.now()))
    availability = search.slots(query)
    slot_count = len(_first_slots(availability.slots, zone)) if limit is None else limit
    more = availability.slots[slot_count:]
    next_slot = (
        None
        if availability.slots or availability.reason in PERMANENT_REASONS
        else search.next(query)
    )
    rules = search.rules
    if args.resource_id is not None and not search.parts:
        rules = rules.with_resource(args.resource_id)
    return SlotList(
        slots=[SlotOut.from_slot(slot, zone) for slot in availability.slots[:slot_count]],
        resources=SlotResource.several(search.shown_resources, search),
        timezone=zone,
        duration_min=rules.duration_min,
        step_min=rules.step_min,
        next_from=clock.moment_at(more[0].start) if more else None,
        reason=availability.reason,
        next_available=SlotOut.from_slot(next_slot, zone) if next_slot else None,
    )


def _first_slots(slots: Sequence[Slot], zone: str) -> Sequence[Slot]:
    if len(slots) <= DEFAULT_MAX_SLOTS:
        return slots
    first_day = clock.local_day(clock.moment_at(slots[0].start), zone)
    on_first_day = takewhile(
        lambda slot: clock.local_day(clock.moment_at(slot.start), zone) == first_day, slots
    )
    return slots[: max(DEFAULT_MAX_SLOTS, sum(1 for _ in on_first_day))]


def _span(args: SlotsRange, zone: str) -> Span:
    span = slot_search.range_of(args.from_, last=args.to, zone=zone, days=DEFAULT_DAYS)
    if span.end < span.start:
        raise ValidationError.of("to", message="expected the time of from or a later time")
    first, last = map(clock.moment_at, span)
    days = zoned_times.count_of_days(first, last=last, timezone=zone)
    if days > MAX_DAYS:
        message = f"expected at most {MAX_DAYS} days between from and to, received {days}"
        raise ValidationError.of("to", message=message)
    return span
