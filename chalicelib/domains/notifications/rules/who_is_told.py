"""Who is told of what, and how: the one table of messages.

A row is an event, or what a job does without an event. Its cells say which messages follow for the
client, for the members of the workspace and for the member of the staff, or why none does. The code
that makes messages reads the table, and docs/notifications.md is written from it.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from chalicelib.core.events import EVENT_TYPES, INTERNAL_TYPES
from chalicelib.domains.booking_page.rules.job_kinds import MAIL_BOOKING_LINK
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.chat.rules.job_kinds import MAIL_REPLY
from chalicelib.domains.identity.rules.job_kinds import (
    MAIL_CONFIRMED,
    MAIL_INVITATION,
    MAIL_PASSWORD_RESET,
    MAIL_PASSWORD_SET,
    MAIL_PROOF,
    MAIL_SIGN_UP,
    MAIL_STANDING,
    MAIL_TEST_IDLE,
)
from chalicelib.domains.notifications.rules.job_kinds import BOOK_AGAIN, REMIND_CLIENT
from chalicelib.domains.waiting.rules.job_kinds import TELL_WAITING

# Kinds of e-mails about bookings. ``link`` has the link that books what a visitor requested. The
# last two are for those who wait for a free time.
ClientKind = Literal[
    "confirmed",
    "pending",
    "moved",
    "cancelled",
    "refund_started",
    "refunded",
    "refund_failed",
    "reminder",
    "again",
    "link",
    "waiting",
    "offer",
]
Role = Literal["owner", "manager", "staff"]


class NotSent(NamedTuple):
    """No message is sent."""

    because: str  # completes "not sent, because"


class ToClient(NamedTuple):
    """Messages to a client, by the channels of ``client_channels``. A ``link`` goes by mail."""

    # The keys are statuses: of the booking after an event, or of what a job is about. A ``reply``
    # is about no booking.
    by_status: Mapping[str, ClientKind | Literal["reply"]]


class ToMembers(NamedTuple):
    """A kind of messages to members. What follows from its event is in ``core.events``."""

    kind: str
    # Roles that get it by mail until they choose otherwise. ``staff`` are members who are linked to
    # a member of the staff; plain members among these get no messages about bookings of others.
    mailed: tuple[Role, ...] = ("owner",)
    like: str = ""  # Until a member chooses, the channels chosen for this kind apply.
    # Members with the role *staff* may not open its page, so they get no link.
    managers_page: bool = False
    owner_only: bool = False  # Other members cannot choose it: it concerns money or access.
    for_others: bool = False  # not sent to the member who made the change in the console
    status: str = ""  # The record must still have it when the message is sent.


class Told(NamedTuple):
    """A row: who is told of an event, or of what a job does."""

    client: ToClient | NotSent
    members: ToMembers | NotSent
    by_visitors: bool = False  # Visitors cause it, so somebody must be told.
    when: str = ""  # completes "sent when"

    @property
    def reaches_somebody(self) -> bool:
        return not (isinstance(self.client, NotSent) and isinstance(self.members, NotSent))


_AND_STAFF: tuple[Role, ...] = ("owner", "staff")
_AND_MANAGERS: tuple[Role, ...] = ("owner", "manager")
_NO_CLIENT = NotSent("it concerns no client")
_ON_THE_PAGE = NotSent("the visitor reads the reply on the page")
_OWN_WORK = NotSent("members and their programs make this change")
_BY_OTHERS = NotSent("the lead or the booking tells them")
_CLIENT_ONLY = NotSent("the business has set what is sent")
_BY_STATUS = NotSent("`booking.status_changed` tells the client")

# Who is told of each event (``core.events``).
EVENTS: Mapping[str, Told] = {
    "booking.created": Told(
        ToClient({"confirmed": "confirmed", "pending_payment": "pending"}),
        ToMembers("booking", _AND_STAFF, for_others=True),
        by_visitors=True,
    ),
    "booking.moved": Told(
        ToClient({"confirmed": "moved", "pending_payment": "moved"}),
        ToMembers("booking_moved", _AND_STAFF, "booking", for_others=True),
        by_visitors=True,
    ),
    "booking.status_changed": Told(
        ToClient(
            {"confirmed": "confirmed", "pending_payment": "pending", "cancelled": "cancelled"}
        ),
        ToMembers("booking_cancelled", _AND_STAFF, for_others=True, status="cancelled"),
        by_visitors=True,
    ),
    "booking.hold_expired": Told(_BY_STATUS, NotSent("nobody has cancelled")),
    "booking.paid": Told(_BY_STATUS, ToMembers("booking_paid", like="booking"), by_visitors=True),
    "booking.refund_done": Told(
        NotSent("the job of the refund tells the client"),
        ToMembers("refund_returned", status="refunded"),
    ),
    "booking.refund_failed": Told(
        NotSent("the job of the refund tells the client"),
        ToMembers("refund_failed", _AND_MANAGERS, status="refund_failed"),
    ),
    "booking.disputed": Told(
        NotSent("the client has asked the bank"),
        ToMembers("payment_disputed", _AND_MANAGERS, status="disputed"),
    ),
    "client.contacts_changed": Told(
        NotSent("an address may be new, and nobody has proved it"),
        ToMembers("contacts", for_others=True),
    ),
    "client.updated": Told(
        NotSent("tags and notes are the business's own"),
        NotSent("tags and notes are the business's own; contacts have their own event"),
    ),
    "client.created": Told(NotSent("what made the client tells it"), _BY_OTHERS),
    "client.erased": Told(NotSent("no address is left"), _OWN_WORK),
    "lead.created": Told(_ON_THE_PAGE, ToMembers("lead", for_others=True), by_visitors=True),
    "lead.updated": Told(NotSent("the change is the business's own"), _OWN_WORK),
    "lead.status_changed": Told(NotSent("a status is the business's own"), _OWN_WORK),
    "order.created": Told(_ON_THE_PAGE, ToMembers("order", for_others=True), by_visitors=True),
    "dialog.started": Told(_ON_THE_PAGE, ToMembers("dialog", ()), by_visitors=True),
    "dialog.handover_requested": Told(_ON_THE_PAGE, ToMembers("handover"), by_visitors=True),
    "bot.limit_reached": Told(_ON_THE_PAGE, ToMembers("limit"), by_visitors=True),
    "bot.limit_half": Told(_NO_CLIENT, ToMembers("limit_half", _AND_MANAGERS), by_visitors=True),
    "balance.low": Told(
        _NO_CLIENT, ToMembers("balance", owner_only=True, status="low"), by_visitors=True
    ),
    "balance.returned": Told(_NO_CLIENT, ToMembers("topup_returned", owner_only=True)),
    "payment.refused": Told(
        _ON_THE_PAGE, ToMembers("payment_refused", owner_only=True), by_visitors=True
    ),
    "product.low_stock": Told(_NO_CLIENT, _OWN_WORK),
    **{
        f"{noun}.{change}": Told(_NO_CLIENT, _OWN_WORK)
        for noun in ("product", "service", "form", "page")
        for change in ("created", "updated", "deleted")
    },
    "calendar.unreadable": Told(
        _NO_CLIENT, ToMembers("calendar_unread", _AND_STAFF, managers_page=True, status="failing")
    ),
    "webhook.switched_off": Told(_NO_CLIENT, ToMembers("webhook_off", status="off")),
    "webhook.changed": Told(_NO_CLIENT, ToMembers("webhook_changed", owner_only=True)),
    "webhook.deleted": Told(_NO_CLIENT, ToMembers("webhook_deleted", owner_only=True)),
    "connection.created": Told(
        _NO_CLIENT, ToMembers("app_connected", owner_only=True), by_visitors=True
    ),
    "key.created": Told(_NO_CLIENT, ToMembers("key_created", owner_only=True)),
    "key.revoked": Told(_NO_CLIENT, ToMembers("key_revoked", owner_only=True)),
    "export.started": Told(_NO_CLIENT, ToMembers("export_started", owner_only=True)),
    "member.added": Told(_NO_CLIENT, ToMembers("member_added", owner_only=True), by_visitors=True),
    "member.removed": Told(_NO_CLIENT, ToMembers("member_removed", owner_only=True)),
    "member.role_changed": Told(_NO_CLIENT, ToMembers("member_role", owner_only=True)),
}

# Who is told of what jobs do without an event, by the kind of the job.
JOBS: Mapping[str, Told] = {
    MAIL_CLIENT: Told(
        ToClient(
            {
                "requested": "refund_started",
                "sent": "refund_started",
                "done": "refunded",
                "failed": "refund_failed",
            }
        ),
        NotSent("the events `booking.refund_done` and `booking.refund_failed` tell members"),
        when="a refund begins, is done or fails",
    ),
    REMIND_CLIENT: Told(
        ToClient({"confirmed": "reminder"}), _CLIENT_ONLY, when="a booking begins soon"
    ),
    BOOK_AGAIN: Told(
        ToClient({"confirmed": "again", "completed": "again"}),
        _CLIENT_ONLY,
        when="a client who has agreed to advertising has not booked again, as many days after a "
        "visit as the service has set",
    ),
    MAIL_BOOKING_LINK: Told(
        ToClient({"requested": "link"}),
        NotSent("nothing is booked yet"),
        when="a visitor who has used up the bookings without a proof requests another one",
        by_visitors=True,
    ),
    TELL_WAITING: Told(
        ToClient({"joined": "waiting", "offered": "offer"}),
        NotSent("the console shows who waits"),
        when="somebody begins to wait for a free time, or a free time is offered to them",
        by_visitors=True,
    ),
    MAIL_REPLY: Told(
        ToClient({"replied": "reply"}), _OWN_WORK, when="a member replies to a visitor in a chat"
    ),
}

# When an e-mail goes to the address of an account, by the kind of the job. Nobody else is told.
ACCOUNT_MAILS: Mapping[str, str] = {
    MAIL_INVITATION: "somebody is invited to a workspace",
    MAIL_PROOF: "an account is made whose address is not proved",
    MAIL_PASSWORD_RESET: "a new password is requested for a proved account",
    MAIL_SIGN_UP: "somebody asks to sign up with the address",
    MAIL_PASSWORD_SET: "a new password is set",
    MAIL_TEST_IDLE: "a test workspace is emptied in seven days, because nobody uses it",
    MAIL_STANDING: "a workspace of the account is suspended, closed or open again",
    MAIL_CONFIRMED: "something is done that a thief of a session would want",
}

MEMBER_KINDS: Mapping[str, ToMembers] = {
    told.members.kind: told.members
    for told in EVENTS.values()
    if isinstance(told.members, ToMembers)
}


def client_kind(event: str, *, status: str) -> ClientKind | None:
    """Return the message to the client that follows an event or a job, by the status, or None."""
    client = (EVENTS.get(event) or JOBS[event]).client
    kind = client.by_status.get(status) if isinstance(client, ToClient) else None
    return None if kind == "reply" else kind


def when(name: str) -> str:
    """Return when a row applies, which completes "sent when"."""
    if name in JOBS:
        return JOBS[name].when
    return EVENT_TYPES[name].when if name in EVENT_TYPES else INTERNAL_TYPES[name]
