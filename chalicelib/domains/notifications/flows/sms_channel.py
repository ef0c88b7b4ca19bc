"""Send a message to a client as an SMS, which the owner's balance pays for: the channel ``sms``.

The cascade tries a channel once, so an SMS is sent at most once. Its price is held before that. If
the response of the provider is lost, the hold stays open until a job has asked the provider
(``sms_jobs``), and the message goes to the next channel (ADR 134).
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import RateLimitedError, UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.billing.flows import sms_charging
from chalicelib.domains.billing.flows.sms_charging import SmsHold
from chalicelib.domains.billing.rules.spending_windows import InsufficientBalanceError
from chalicelib.domains.billing.store import sms_prices
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.store import short_links
from chalicelib.domains.bookings.store.bookings import VISITOR_SOURCES, BookingRow
from chalicelib.domains.mails.store import kept_messages
from chalicelib.domains.notifications.flows.client_message import ClientMessage
from chalicelib.domains.notifications.rules import sms_limits, sms_texts
from chalicelib.domains.notifications.rules.client_channels import BusyChannelError, Outcome
from chalicelib.domains.notifications.rules.job_kinds import CHECK_SMS
from chalicelib.engine import claims, jobs, limits
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import sms
from chalicelib.gateways.sms import Accepted, SmsBusyError, SmsRefusedError, SmsUnknownError
from chalicelib.lib import phones, sms_segments

SETTLED_AFTER = timedelta(minutes=10)  # Then a job closes a hold that is still open.
CHECKED_AFTER = timedelta(minutes=2)  # Then a job asks whether an SMS has arrived.
_BUSY_SECONDS = 60.0  # until a provider is asked again that names no time
log = logging.getLogger(__name__)


class _Sms(NamedTuple):
    message: ClientMessage
    number: str
    text: str

    @property
    def is_unproved(self) -> bool:
        """Whether a visitor has typed the number. A proof of the address proves no number."""
        booking = self.message.booking
        return booking.source in VISITOR_SOURCES and booking.paid_by is None

    def counters(self) -> list[tuple[Limit, str]]:
        """Return the limits that it counts for."""
        workspace, booking = self.message.workspace, self.message.booking
        limit = sms_limits.number_limit(is_unproved=self.is_unproved)
        counters = [(limit, claims.exact_hash(self.number))]
        for limit in sms_limits.workspace_limits(workspace.plan, is_unproved=self.is_unproved):
            counters.append((limit, workspace.id))
            if limit.share is not None:
                subjects = [f"{workspace.id}#{share}" for share in booking.visitor_shares or ()]
                counters += limits.visitor_limits(limit.share, subjects, limit)
        return counters


def may_lead_to(booking: BookingRow) -> bool:
    """Return whether a booking has a number, and this stage sends SMS."""
    return booking.client_phone is not None and sms.is_on()


def leads_to(message: ClientMessage) -> bool:
    """Return whether a message may be an SMS to its client.

    The booking is or was accepted, and the client has a mobile number of the workspace's country.
    """
    return (
        message.kind in sms_texts.KINDS
        and may_lead_to(message.booking)
        and not message.workspace.halt
        and _was_accepted(message.booking)
        and phones.mobile_country(message.booking.client_phone or "") == message.workspace.country
    )


def _was_accepted(booking: BookingRow) -> bool:
    if booking.status == "confirmed":
        return True
    # A cancelled booking that was never paid, and had to be, was not accepted.
    awaited_payment = booking.due is not None and booking.paid_by is None
    return booking.status == "cancelled" and not booking.has_lapsed and not awaited_payment


def deliver(message: ClientMessage) -> Outcome:
    """Send a message as an SMS, if the balance and the limits admit it.

    Raises BusyChannelError if the provider takes no SMS now.
    """
    workspace, booking = message.workspace, message.booking
    url = booking_links.short_url(workspace.id, booking)
    text = sms_texts.text(message.language, message.kind, message.facts, url)
    to_send = _Sms(message, str(booking.client_phone), text)
    if is_test(workspace.id):
        kept_messages.keep(
            workspace.id, channel="sms", recipient=to_send.number, subject=None, text=text
        )
        return Outcome.sent()
    price = sms_prices.find(workspace.country)
    if price is None:
        return Outcome.passed("by_country")
    hold = SmsHold(
        request_id=new_id(),
        account_id=workspace.owner_id,
        workspace_id=workspace.id,
        country=workspace.country,
        price=price,
        segments=sms_segments.count(text),
        day=clock.local_day(clock.now(), workspace.timezone),
        due_at=clock.now() + SETTLED_AFTER,
    )
    return _reserve(to_send, hold) or _send(to_send, hold)


def _reserve(to_send: _Sms, hold: SmsHold) -> Outcome | None:
    """Hold the price and count the SMS, or return why it is not sent."""
    message, counters = to_send.message, to_send.counters()
    payload = {
        **_named(message),
        "textHash": sms.hash_of(to_send.text),
        "at": iso(clock.now()),
    }

    def stage(unit: UnitOfWork) -> None:
        for limit, subject in counters:
            limits.stage(unit, limit, subject)
        if message.booking.token_secret is not None:
            code = booking_links.short_code(
                hold.workspace_id, message.booking, message.booking.token_secret
            )
            short_links.stage(unit, message.booking, code)

    try:
        sms_charging.reserve(hold, payload, stage)
    except InsufficientBalanceError:
        sms_charging.tell_low_balance(hold.workspace_id, account_id=hold.account_id)
        return Outcome.passed("by_balance")
    except RateLimitedError as error:
        return Outcome.passed("by_number" if error.key in _OF_NUMBERS else "by_day")
    return None


# Keys of the errors of a number's limits. The others are the workspace's.
_OF_NUMBERS = frozenset({"sms_unproved", "sms_number"})


def _send(to_send: _Sms, hold: SmsHold) -> Outcome:
    counted_at = clock.now()
    try:
        accepted = sms.send(
            to_send.number, to_send.text, message_id=hold.request_id, origin=hold.workspace_id
        )
    except SmsUnknownError as error:
        # The hold stays open for ``sms_jobs.settle_sms``.
        log.warning("an SMS may have been sent", extra={"sms": hold.request_id, "why": str(error)})
        return Outcome.passed("unknown")
    except SmsRefusedError as error:
        level = logging.ERROR if error.by_account else logging.INFO
        log.log(level, "an SMS was refused", extra={"sms": hold.request_id, "why": str(error)})
        _release(to_send, hold, counted_at)
        return Outcome.passed("by_provider")
    except SmsBusyError as error:
        log.info("an SMS waits", extra={"sms": hold.request_id, "why": str(error)})
        _release(to_send, hold, counted_at)
        raise BusyChannelError(error.retry_after or _BUSY_SECONDS) from error
    try:
        settle(hold, accepted, _named(to_send.message))
    except UnavailableError:
        # The client has it, so no other channel gets the message. The job closes the hold.
        log.exception("an SMS was not settled", extra={"sms": hold.request_id})
    return Outcome.sent()


def _release(to_send: _Sms, hold: SmsHold, counted_at: datetime) -> None:
    try:
        sms_charging.release(hold)
        for limit, subject in to_send.counters():
            limits.give_back(limit, subject, counted_at)
    except UnavailableError:
        log.exception("an SMS was not released", extra={"sms": hold.request_id})  # The job does.


def settle(hold: SmsHold, accepted: Accepted, named: Mapping[str, Any]) -> None:
    """Charge an SMS that the provider has accepted, and make the job that asks for its arrival.

    ``named`` says which message it is. Raises UnavailableError if the hold was not closed.
    """
    now = clock.now()
    payload = {name: named[name] for name in _NAMES}
    payload |= {"providerId": accepted.provider_id, "at": iso(now)}
    check = jobs.row(
        CHECK_SMS, hold.workspace_id, payload, now + CHECKED_AFTER, job_id=hold.request_id
    )
    segments = accepted.segments or hold.segments
    sms_charging.settle(hold, segments, lambda unit: unit.create(check))


_NAMES = ("bookingId", "messageId", "kind", "mailClass", "until")


def _named(message: ClientMessage) -> dict[str, Any]:
    """Return what ``sms_jobs`` writes the message from again."""
    return {
        "bookingId": message.booking.id,
        "messageId": message.job_id,
        "kind": message.kind,
        "mailClass": message.mail_class,
        "until": iso(message.until),
    }
