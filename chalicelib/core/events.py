"""The types of events, which are changes for webhooks or for members.

A noun's listing declares the rules by which its changes are events. Other events are emitted by
name. Every name is declared here.
"""

from typing import NamedTuple


class EventType(NamedTuple):
    """A type of event.

    ``when`` completes "sent when". ``read_by`` is the operation that returns the record of an event
    by its id, and ``record`` the field of its result with the record.
    """

    when: str
    read_by: str
    record: str


_LEAD, _BOOKING = ("get_lead", "lead"), ("get_booking", "booking")
_CLIENT, _DIALOG = ("get_client", "client"), ("get_agent_dialog", "dialog")

TEST_EVENT = "webhook.test"
"""The type of an event that a user sends to try a webhook. The event has no record."""

EVENT_TYPES = {
    "booking.created": EventType("a booking is made", *_BOOKING),
    "booking.hold_expired": EventType("a booking was not paid in time", *_BOOKING),
    "booking.moved": EventType("a booking gets another time or another staff member", *_BOOKING),
    "booking.paid": EventType("a booking is paid in advance", *_BOOKING),
    "booking.status_changed": EventType("a booking's status changes", *_BOOKING),
    "bot.limit_reached": EventType(
        "a bot refuses a request because of its spending limit, once a day, week or month",
        "get_agent",
        "agent",
    ),
    "client.erased": EventType("a client's personal data is erased", *_CLIENT),
    "client.updated": EventType("a client's contacts, tags or notes change", *_CLIENT),
    "dialog.handover_requested": EventType("a visitor asks a bot for a person", *_DIALOG),
    "dialog.started": EventType("a visitor starts a chat with a bot", *_DIALOG),
    "lead.created": EventType("a form is sent, or a lead is added", *_LEAD),
    "lead.status_changed": EventType("a lead's status changes", *_LEAD),
    "lead.updated": EventType("a lead's data changes, but not its status", *_LEAD),
    "order.created": EventType("an order form is sent", *_LEAD),
    "product.low_stock": EventType(
        "the stock of a product falls to 5 pieces or fewer", "get_product", "product"
    ),
}

INTERNAL_TYPES = {
    "balance.low": "a payment for an answer takes an account's balance below 100 or 10 rubles",
    "booking.refund_failed": "a payment provider does not carry out the refund of a booking",
    "balance.returned": "a top-up was refunded or disputed at the payment provider",
    "bot.limit_half": "a payment for an answer takes what a bot has spent to half of a limit",
    "connection.created": "an app is connected with OAuth",
    "key.created": "an API key is created",
    "key.revoked": "an API key is revoked, but not because its owner leaves the workspace",
    "member.added": "an account becomes a member of the workspace",
    "member.removed": "an account is removed from the workspace",
    "member.role_changed": "a member gets another role",
    "payment.refused": "the payment provider refuses the first payment since it took one",
    "webhook.switched_off": "a webhook is switched off because its receiver is gone or fails",
}
"""Types that only members receive, never webhooks, each with its purpose.

The id of an event is the id of the account, the booking, the connection, the key or the webhook.
"""


class MessageKind(NamedTuple):
    """A kind of message to members, which follows events of one type.

    No message follows an event whose unit of work also has an event of the type ``unless`` for the
    record. With a ``status``, the record must still have it when the message is sent. A kind that
    is ``owner_only`` concerns money or access, so other members cannot choose it. Managers get one
    that is ``for_managers`` by mail, too, unless they choose otherwise. So do members who are
    linked to a member of the staff, if it is ``for_staff``; plain members get only their own. A
    kind that is ``for_others`` is not sent to the member who made the change in the console.
    """

    type: str
    unless: str = ""
    status: str = ""
    owner_only: bool = False
    for_managers: bool = False
    for_staff: bool = False
    for_others: bool = False


MESSAGE_KINDS = {
    "lead": MessageKind("lead.created", unless="order.created", for_others=True),
    "order": MessageKind("order.created", for_others=True),
    "booking": MessageKind("booking.created", for_staff=True, for_others=True),
    "booking_cancelled": MessageKind(
        *("booking.status_changed", "booking.hold_expired", "cancelled"),
        for_staff=True,
        for_others=True,
    ),
    "refund_failed": MessageKind(
        "booking.refund_failed", status="refund_failed", for_managers=True
    ),
    "handover": MessageKind("dialog.handover_requested"),
    "limit": MessageKind("bot.limit_reached"),
    "limit_half": MessageKind("bot.limit_half", for_managers=True),
    "webhook_off": MessageKind("webhook.switched_off", status="off"),
    "balance": MessageKind("balance.low", status="low", owner_only=True),
    "topup_returned": MessageKind("balance.returned", owner_only=True),
    "payment_refused": MessageKind("payment.refused", owner_only=True),
    "app_connected": MessageKind("connection.created", owner_only=True),
    "key_created": MessageKind("key.created", owner_only=True),
    "key_revoked": MessageKind("key.revoked", owner_only=True),
    "member_added": MessageKind("member.added", owner_only=True),
    "member_removed": MessageKind("member.removed", owner_only=True),
    "member_role": MessageKind("member.role_changed", owner_only=True),
}
"""Kinds of messages to members by name. ``domains.notifications`` has the wording."""

REFUNDED_EVENT = "booking.refunded"
"""The event in the job of an e-mail about a refund.

No unit of work emits it, so webhooks and members never receive it.
"""
VISITOR_EVENTS = frozenset({"booking.created", "booking.moved", "booking.status_changed"})
"""Types of events that a booking's client is notified of by mail.

``booking.hold_expired`` is left out, because the same unit of work changes the status.
"""
