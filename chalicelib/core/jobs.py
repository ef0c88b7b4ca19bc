"""The kinds of scheduled jobs, and the registry of their handlers.

A scheduled function runs the jobs that are due.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from chalicelib.core.manifest import Declarations, manifest


class Job(Protocol):
    """A scheduled job, as passed to its handler."""

    kind: str
    workspace_id: str
    payload: Any

    @property
    def job_id(self) -> str:
        """Id of the job, which is unique within its kind."""


class Postponed(Exception):  # noqa: N818  no error: the job runs again
    """Raised by a handler to run its job again at ``due_at``, with the same id and payload."""

    def __init__(self, due_at: datetime) -> None:
        super().__init__(f"until {due_at}")
        self.due_at = due_at


JOB_HANDLERS: Declarations[Callable[[Job], None]] = Declarations(manifest().jobs)
"""Handlers by kind of job."""

KNOWLEDGE_STALE = "knowledge-stale"
"""The kind of job that brings the indexes of a workspace's bots up to date.

It is named here because it follows changes in domains below ``domains.knowledge``.
"""

MEMBERSHIP_ENDED = "membership-ended"
"""The kind of job that removes what a former member of a workspace has there.

The payload has ``accountId``, and ``endedAt`` in ISO 8601. It is named here because a domain below
its handler stages it.
"""

WEBHOOK_EVENTS = "webhook-events"
"""The kind of job that makes the deliveries of the events of a unit of work."""
DELIVER_WEBHOOK = "deliver-webhook"
"""The kind of job that sends what is due to one webhook."""

WEBHOOK_REPLIES = "webhook-replies"
"""The kind of job that removes replies of receivers, which may repeat personal data.

The payload has ``recordIds``, or the ``webhookId`` of a webhook that is deleted. The kind is
declared here because the erasure of a client stages the job.
"""
ATTEMPTS_END = timedelta(minutes=1)
"""Time after which the attempts of webhooks that are being made now have ended."""

PEOPLE_EVENTS = "people-events"
"""The kind of job that finds the members to notify of the events of a unit of work."""
NOTIFY_MEMBER = "notify-member"
"""The kind of job that sends one message to one member."""
NOTIFY_DIGEST = "notify-digest"
"""The kind of job that sends one message for many that were held back."""

VISITOR_EVENTS = "visitor-events"
"""The kind of job that sends e-mail to clients about the bookings in a unit of work's events."""
MAIL_CLIENT = "mail-client"
"""The kind of job that sends one mail about a booking to its client."""
REMIND_CLIENT = "remind-client"
"""The kind of job that reminds a client of a booking, and makes the job of the next reminder."""

MAIL_INVITATION = "mail-invitation"
"""The kind of job that sends an invitation to a workspace.

The payload has ``invitationId``. The kind is declared here because a domain below its handler
stages the job.
"""
MAIL_PROOF = "mail-proof"
"""The kind of job that sends the link by which an account proves its address.

The payload has ``accountId``, and ``at`` in ISO 8601. The kind is declared here because a domain
below its handler stages the job.
"""

MAIL_PASSWORD_RESET = "mail-password-reset"  # noqa: S105  a kind of job
"""The kind of job that sends a link for a new password. The payload has ``resetId``."""
MAIL_PASSWORD_SET = "mail-password-set"  # noqa: S105  as above
"""The kind of job that tells the owner of an account of a new password.

The payload has ``accountId``, and ``setAt`` in ISO 8601.
"""


MAIL_BOOKING_LINK = "mail-booking-link"
"""The kind of job that sends the link which books a visitor's request.

The payload has ``requestId``. The kind is declared here because a domain below its handler stages
the job.
"""
MAIL_REPLY = "mail-reply"
"""The kind of job that sends a member's reply to the visitor of a dialog by e-mail.

The payload has ``dialogId`` and ``replyId``, and ``at`` in ISO 8601. The kind is declared here
because a domain below its handler stages the job.
"""

PAYMENT_JOBS = {"booking": "booking-payment", "top_up": "top-up-payment"}
"""The kinds of jobs that ask a provider for the state of a payment, by its purpose.

The payload has ``paymentId``. The handler of a kind knows what follows from the payment.
"""
REFUND_JOBS = {"booking": "booking-refund"}
"""The kinds of jobs that send a refund, by the purpose of its payment.

The payload has ``paymentId`` and ``refundId``.
"""
CLOSE_RECEIPT = "close-receipt"
"""The kind of job that sends the closing receipt of a booking that took place."""


class Queue(StrEnum):
    """A queue of jobs, with its own runner.

    The queue's value begins the keys of its jobs.
    """

    MAIN = "JOBS"
    EVENTS = "EVENT-JOBS"
    """The jobs that wait for external servers, so that they delay no other job."""


EVENT_KINDS = frozenset(
    {
        WEBHOOK_EVENTS,
        DELIVER_WEBHOOK,
        PEOPLE_EVENTS,
        NOTIFY_MEMBER,
        NOTIFY_DIGEST,
        VISITOR_EVENTS,
        MAIL_CLIENT,
        REMIND_CLIENT,
        MAIL_INVITATION,
        MAIL_PASSWORD_RESET,
        MAIL_PASSWORD_SET,
        MAIL_BOOKING_LINK,
        MAIL_REPLY,
        MAIL_PROOF,
    }
)


def queue_of(kind: str) -> Queue:
    """Return the queue of a kind of jobs."""
    return Queue.EVENTS if kind in EVENT_KINDS else Queue.MAIN


D = TypeVar("D", bound=Callable[[Job], None])


def job_handler(kind: str) -> Callable[[D], D]:
    """Declare the handler of a kind of job. It may be called more than once for the same job.

    A handler that raises ``Postponed`` is called again later.

    >>> @job_handler("example")  # doctest: +SKIP
    ... def run(job: Job) -> None:
    ...     print(job.payload)

    Raises:
        ValueError: the kind has a handler already.
    """

    def declare(handler: D) -> D:
        JOB_HANDLERS.declare(kind, handler, handler.__module__)
        return handler

    return declare
