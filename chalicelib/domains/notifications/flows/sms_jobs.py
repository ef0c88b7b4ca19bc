"""Jobs that follow an SMS: close a hold that was left open, and see whether the SMS has arrived."""

import logging
from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.billing.flows import sms_charging
from chalicelib.domains.billing.store.sms_holds import SETTLE_SMS
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.notifications.flows import client_cascade, client_message, sms_channel
from chalicelib.domains.notifications.flows.client_message import ClientMessage
from chalicelib.domains.notifications.rules.client_channels import order_of
from chalicelib.domains.notifications.rules.job_kinds import CHECK_SMS
from chalicelib.engine import jobs
from chalicelib.gateways import sms
from chalicelib.gateways.sms import Accepted, SmsBusyError, SmsError

PAUSE = timedelta(minutes=10)  # until a provider that did not tell is asked again
# A provider that does not tell for this long what has become of an SMS is not asked any more.
GIVEN_UP_AFTER = timedelta(days=1)
_FIRST_PAUSE = timedelta(minutes=2)
log = logging.getLogger(__name__)


@job_handler(SETTLE_SMS)
def settle_sms(job: Job) -> None:
    """Charge or release an SMS whose outcome is unknown. It may run more than once.

    Where the provider cannot be asked, the owner does not pay for what may not have been sent.
    """
    hold = sms_charging.find_open(job.payload["accountId"], request_id=job.payload["requestId"])
    if hold is None:
        return
    accepted = _find_lost(job)
    if accepted is None:
        log.warning("an SMS that may have been sent was released", extra={"sms": job.job_id})
        sms_charging.release(hold)
        return
    sms_channel.settle(hold, accepted, job.payload)
    if (message := _message(job)) is not None:
        message.note("sms", "sent")


def _find_lost(job: Job) -> Accepted | None:
    booking = BOOKINGS.find(job.workspace_id, record_id=job.payload["bookingId"])
    since = datetime.fromisoformat(job.payload["at"])
    if booking is None or booking.client_phone is None or not sms.is_on():
        return None
    try:
        return sms.provider().find_lost(booking.client_phone, job.payload["textHash"], since)
    except SmsBusyError as error:
        if clock.now() > since + GIVEN_UP_AFTER:
            return None
        raise Postponed(clock.now() + PAUSE) from error
    except SmsError:
        log.exception("the provider of SMS cannot be asked", extra={"sms": job.job_id})
        return None


@job_handler(CHECK_SMS)
def check_sms(job: Job) -> None:
    """Ask whether an SMS has arrived, and pass its message to the next channel if it cannot."""
    message, sent_at = _message(job), datetime.fromisoformat(job.payload["at"])
    age = clock.now() - sent_at
    # An SMS that has neither arrived nor failed by then is taken for one that has arrived.
    if message is None or not sms.is_on() or age > GIVEN_UP_AFTER or clock.now() >= message.until:
        return
    try:
        delivery = sms.provider().delivery(job.payload["providerId"])
    except SmsBusyError as error:
        raise Postponed(clock.now() + max(_FIRST_PAUSE, age)) from error
    except SmsError:
        log.exception("the provider of SMS cannot be asked", extra={"sms": job.job_id})
        return
    if delivery == "waiting":
        raise Postponed(clock.now() + max(_FIRST_PAUSE, age))
    if delivery == "undelivered":
        order = order_of(message.kind, message.workspace.client_channels)
        client_cascade.pass_on(message, "sms", "undelivered", order)


def _message(job: Job) -> ClientMessage | None:
    """Return the message of an SMS as it is now, or None if it is of no use any more."""
    booking = BOOKINGS.find(job.workspace_id, record_id=job.payload["bookingId"])
    kind = job.payload["kind"]
    # A booking that was cancelled or moved since has a message of its own about that.
    if booking is None or (booking.status == "cancelled") != (kind == "cancelled"):
        return None
    first_job = jobs.row(
        MAIL_CLIENT, job.workspace_id, {}, clock.now(), job_id=job.payload["messageId"]
    )
    until = datetime.fromisoformat(job.payload["until"])
    since = until - mail_gate.LONGEST_WAIT
    keys = client_cascade.keys(job.workspace_id, booking)
    return client_message.write(
        first_job, booking, kind, job.payload["mailClass"], since, keys=keys
    )
