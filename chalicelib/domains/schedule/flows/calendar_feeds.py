"""Build the calendar feed of a resource or of the whole business (ADR 133)."""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from pydantic_core import to_json

from chalicelib import SERVICE, VERSION
from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules import booking_tokens, calendar_files
from chalicelib.domains.bookings.rules.booking_tokens import BookingToken, Purpose
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.bookings.store.booked_times import BookingState
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.schedule.rules import feed_names
from chalicelib.domains.schedule.store.calendar_links import CalendarLinkRow
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.engine.unit import split_batches
from chalicelib.lib.spans import Span

PATH = "/api/public/calendars/{file}"
PAST, AHEAD = timedelta(days=14), timedelta(days=180)
MAX_EVENTS = 5_000
# Of the events in a response, which is quoted twice (``application.invoke``).
MAX_BYTES = 5_500_000
BATCH = 800  # bookings whose records are in memory at the same time: eight requests side by side
REFRESH = timedelta(hours=1)


class Feed(NamedTuple):
    """A calendar feed whose bookings are known by their index entries only."""

    workspace_id: str
    calendar_id: str
    name: str
    tag: str  # changes with the events
    states: Sequence[BookingState]

    @property
    def is_of_business(self) -> bool:
        return self.calendar_id == self.workspace_id

    def content(self) -> bytes:
        """Read the bookings, and return the calendar."""
        return calendar_files.calendar_feed(
            self._texts(), producer=SERVICE, name=self.name, refresh=REFRESH
        )

    def _texts(self) -> Iterator[str]:
        size = 0
        for states in split_batches(self.states, BATCH):
            for booking in booked_times.records_of(self.workspace_id, states):
                if not _is_shown(booking):
                    continue
                text = event_text(self.workspace_id, booking, is_of_business=self.is_of_business)
                size += len(to_json(to_json(text).decode()))
                if size > MAX_BYTES:
                    return
                yield text


def event_text(workspace_id: str, booking: BookingRow, *, is_of_business: bool) -> str:
    """Return the event of a booking, with the first name of the client and no contacts."""
    event = booking_links.calendar_event(workspace_id, workspace=None, booking=booking)
    staff = booking.resource_name if is_of_business else None
    summary = feed_names.summary(booking.service_name, booking.client_name, staff)
    return calendar_files.event_text(event._replace(summary=summary))


def _is_shown(booking: BookingRow) -> bool:
    # It may be cancelled since its entry was read, or its hold has expired.
    expires = booking.hold_expires_at
    return booking.blocks and (expires is None or expires > clock.now())


def url(workspace_id: str, link: CalendarLinkRow) -> str:
    """Return the URL of a calendar feed."""
    token = booking_tokens.token(
        workspace_id, booking_id=link.sk, purpose=Purpose.FEED, secret=link.secret
    )
    return settings().public_url + PATH.format(file=token + booking_links.FILE_SUFFIX)


def parse(file: str) -> BookingToken:
    """Return the ids of a link, whose signature is not verified yet, or raise NotFoundError."""
    token = booking_tokens.read(file.removesuffix(booking_links.FILE_SUFFIX))
    if token is None:
        raise _unknown()
    return token


def open_feed(file: str) -> Feed:
    """Return the feed of a link, or raise NotFoundError, the same for all links that do not work.

    Records of bookings are not read yet.
    """
    token = parse(file)
    workspace_id, calendar_id = token.workspace_id, token.booking_id
    is_of_business = calendar_id == workspace_id
    link = CalendarLinkRow.of(workspace_id, calendar_id)
    if link is None or not token.is_for(Purpose.FEED, link.secret):
        raise _unknown()
    now = clock.now()
    period = Span(epoch_ms(now - PAST), epoch_ms(now + AHEAD))
    with deadline.side_by_side() as start:
        states_task = start(
            lambda: booked_times.nearest(
                workspace_id,
                period,
                epoch_ms(now),
                limit=MAX_EVENTS,
                resource_id=None if is_of_business else calendar_id,
            )
        )
        workspace_task = start(lambda: workspaces.get(workspace_id))
        resource = None if is_of_business else RESOURCES.find(workspace_id, record_id=calendar_id)
        if resource is None and not is_of_business:
            raise _unknown()
        workspace_name = workspace_task.result().name
        name = f"{resource.name} \N{EN DASH} {workspace_name}" if resource else workspace_name
        states = states_task.result()
    return Feed(workspace_id, calendar_id, name, _tag(link.secret, name, states), states)


def _tag(secret: str, name: str, states: Sequence[BookingState]) -> str:
    # Entries have contacts, so the tag is keyed: nobody can try phones against it.
    digest = hmac.new(bytes.fromhex(secret), to_json([VERSION, name]), hashlib.sha256)
    for state in sorted(states):
        digest.update(to_json(state.values))
    return f'W/"{digest.hexdigest()[:32]}"'


def _unknown() -> NotFoundError:
    return NotFoundError("This calendar does not exist. Check the link.", key="calendar_link")
