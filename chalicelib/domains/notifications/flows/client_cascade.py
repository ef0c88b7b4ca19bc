"""Deliver a message to a client by the first channel that takes it.

Each channel is one row of ``CHANNELS``. A channel is tried at most once, however often the job of
the message runs: what is not known to be sent goes to the next channel (ADR 132).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from chalicelib.core import clock
from chalicelib.core.jobs import Postponed
from chalicelib.core.messengers import MESSENGERS
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.notifications.flows import client_chats, client_mail_sending, sms_channel
from chalicelib.domains.notifications.flows.client_message import ClientMessage
from chalicelib.domains.notifications.rules.client_channels import (
    BusyChannelError,
    Channel,
    Outcome,
)
from chalicelib.domains.notifications.store import client_deliveries
from chalicelib.domains.notifications.store.client_deliveries import Delivery, Place
from chalicelib.engine.reading import Key
from chalicelib.gateways import messengers

# Longer than a request to any channel: a try without an outcome has died.
LONGEST_TRY = timedelta(minutes=1)
# A busy channel may take a message for this long. Then the next channel gets it.
LONGEST_WAIT = timedelta(minutes=10)
log = logging.getLogger(__name__)


class ClientChannel(NamedTuple):
    """How a channel sends a message to a client.

    ``deliver`` sends it and returns the outcome. It may raise ``BusyChannelError``; another
    exception leaves open whether the message was sent, so it passes to the next channel.
    ``leads_to`` returns whether the channel leads to the client, without a request if it can.
    """

    leads_to: Callable[[ClientMessage], bool]
    deliver: Callable[[ClientMessage], Outcome]
    # The channel itself sees that a message is sent once, notes its states, and waits by
    # ``Postponed`` or an exception after which the job runs again.
    is_exact: bool = False


CHANNELS: Mapping[Channel, ClientChannel] = {
    **{
        name: ClientChannel(
            partial(client_chats.leads_to, name), partial(client_chats.deliver, name)
        )
        for name in MESSENGERS
    },
    "sms": ClientChannel(sms_channel.leads_to, sms_channel.deliver),
    "mail": ClientChannel(client_mail_sending.leads_to, client_mail_sending.deliver, is_exact=True),
}


def keys(workspace_id: str, booking: BookingRow) -> list[Key]:
    """Return the keys of rows that the channels need, to read them with the workspace."""
    return [key for name in MESSENGERS for key in client_chats.keys(workspace_id, booking, name)]


def may_lead_to(booking: BookingRow) -> bool:
    """Return whether any channel of this stage may lead to the client, without a request."""
    if booking.client_email is not None or sms_channel.may_lead_to(booking):
        return True
    return not client_chats.is_erased(booking) and any(map(messengers.may_be_ready, MESSENGERS))


def deliver(message: ClientMessage, order: Sequence[Channel]) -> None:
    """Send a message by the first of some channels that takes it.

    Raises:
        Postponed: the message waits for a channel.
        MailDelayedError: the mail server is busy.
        UnavailableError: the database is unavailable.
    """
    ways = [
        (name, CHANNELS[name])
        for name in order
        if name in CHANNELS and CHANNELS[name].leads_to(message)
    ]
    # The mail gate has states of its own, so a message with no other channel costs no request.
    known: Mapping[Channel, Delivery] = {}
    if any(not way.is_exact for _, way in ways):
        known = client_deliveries.read(message.workspace.id, message_id=message.job_id)
        if any(delivery.state == "sent" for delivery in known.values()):
            return
    for name, way in ways:
        outcome = way.deliver(message) if way.is_exact else _try(message, name, way, known)
        if outcome.state == "sent":
            return


def pass_on(message: ClientMessage, name: Channel, reason: str, order: Sequence[Channel]) -> None:
    """Pass a message that a channel has taken, and that cannot arrive, to the next channel.

    Raises as ``deliver``. A repeated call passes it on once.
    """
    known = client_deliveries.read(message.workspace.id, message_id=message.job_id)
    if (taken := known.get(name)) is not None and taken.state == "sent":
        _end(message, name, taken.attempt, Outcome.passed(reason))
    deliver(message, order)


def _try(
    message: ClientMessage, name: Channel, way: ClientChannel, known: Mapping[Channel, Delivery]
) -> Outcome:
    before, now = known.get(name), clock.now()
    if before is not None and before.state == "passed":
        return Outcome.passed(before.reason)
    if before is not None and before.state == "sending":
        if now < before.since + LONGEST_TRY:  # Another run of the job may be sending it.
            raise Postponed(before.since + LONGEST_TRY)
        return _end(message, name, before.attempt, Outcome.passed("unknown"))
    if now >= message.until:
        return _end(message, name, _new_attempt(), Outcome.passed("too_late"))
    attempt = _new_attempt()
    place = Place(message.workspace.id, message.job_id, name)
    if not client_deliveries.begin(place, attempt, waiting=before):
        raise Postponed(now + LONGEST_TRY)
    try:
        outcome = way.deliver(message)
    except BusyChannelError as busy:
        first_try = before.since if before is not None else now
        retry_at = clock.now() + timedelta(seconds=min(busy.retry_after, 86_400))
        if retry_at > min(first_try + LONGEST_WAIT, message.until):
            return _end(message, name, attempt, Outcome.passed("busy"))
        client_deliveries.end(place, attempt, state="waiting", since=first_try)
        message.note(name, "waiting", "busy")
        raise Postponed(retry_at) from busy
    except Exception:
        # Nobody knows whether it was sent: never again on this channel, and the client is told.
        log.exception("a channel failed", extra={"channel": name, "job": message.job_id})
        outcome = Outcome.passed("failed")
    return _end(message, name, attempt, outcome)


def _end(message: ClientMessage, name: Channel, attempt: str, outcome: Outcome) -> Outcome:
    place = Place(message.workspace.id, message.job_id, name)
    client_deliveries.end(place, attempt, state=outcome.state, reason=outcome.reason)
    if outcome.state == "sent" or outcome.reason is not None:
        message.note(name, "sent" if outcome.state == "sent" else "withheld", outcome.reason)
    return outcome


def _new_attempt() -> str:
    return uuid4().hex
