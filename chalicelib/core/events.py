"""The types of events, which are changes for webhooks or for members. Each is declared here."""

from typing import NamedTuple


class EventType(NamedTuple):
    when: str  # completes "sent when"
    read_by: str  # the operation that returns the record of an event by its id
    record: str  # the field of its result with the record


_LEAD, _BOOKING = ("get_lead", "lead"), ("get_booking", "booking")
_CLIENT, _DIALOG = ("get_client", "client"), ("get_agent_dialog", "dialog")
_PRODUCT, _SERVICE = ("get_product", "product"), ("get_service", "service")
_FORM, _PAGE = ("get_form", "form"), ("get_page", "page")

TEST_EVENT = "webhook.test"  # sent by a user to try a webhook, without a record

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
    "client.created": EventType("a client is added, also by a first lead or booking", *_CLIENT),
    "client.erased": EventType("a client's personal data is erased", *_CLIENT),
    "client.updated": EventType(
        "a client's contacts, tags, notes, externalId or metadata change", *_CLIENT
    ),
    "dialog.handover_requested": EventType("a visitor asks a bot for a person", *_DIALOG),
    "dialog.started": EventType("a visitor starts a chat with a bot", *_DIALOG),
    "form.created": EventType("a form is created", *_FORM),
    "form.deleted": EventType("a form is deleted", *_FORM),
    "form.updated": EventType("a form changes", *_FORM),
    "lead.created": EventType("a form is sent, or a lead is added", *_LEAD),
    "lead.status_changed": EventType("a lead's status changes", *_LEAD),
    "lead.updated": EventType("a lead's data changes, but not its status", *_LEAD),
    "order.created": EventType("an order form is sent", *_LEAD),
    "page.created": EventType("a page is created or restored", *_PAGE),
    "page.deleted": EventType("a page is deleted, also with its site", *_PAGE),
    "page.updated": EventType("a page's HTML or metadata changes", *_PAGE),
    "product.created": EventType("a product is created", *_PRODUCT),
    "product.deleted": EventType("a product is deleted", *_PRODUCT),
    "product.low_stock": EventType("the stock of a product falls to 5 pieces or fewer", *_PRODUCT),
    "product.updated": EventType("a product changes, its stock included", *_PRODUCT),
    "service.created": EventType("a service is created", *_SERVICE),
    "service.deleted": EventType("a service is deleted", *_SERVICE),
    "service.updated": EventType("a service changes", *_SERVICE),
}

# Types that only members receive, never webhooks, each with its purpose. The id of an event is the
# id of the account, the booking, the client, the connection, the key, the resource or the webhook.
INTERNAL_TYPES = {
    "balance.low": "a payment for an answer takes an account's balance below 100 or 10 rubles",
    "balance.returned": "a top-up was refunded or disputed at the payment provider",
    "booking.disputed": "a client's bank takes back the payment of a booking",
    "booking.refund_done": "a payment provider has carried out the refund of a booking",
    "booking.refund_failed": "a payment provider does not carry out the refund of a booking",
    "bot.limit_half": "a payment for an answer takes what a bot has spent to half of a limit",
    "calendar.unreadable": "the own calendar of a resource could not be read for a day",
    "client.contacts_changed": "a client gets another name, e-mail address or phone number",
    "connection.created": "an app is connected with OAuth",
    "export.started": "an API key starts an export of the workspace",
    "key.created": "an API key is created",
    "key.revoked": "an API key is revoked, but not because its owner leaves the workspace",
    "member.added": "an account becomes a member of the workspace",
    "member.removed": "an account is removed from the workspace",
    "member.role_changed": "a member gets another role",
    "payment.refused": "the payment provider refuses the first payment since it took one",
    "webhook.changed": "a webhook is added or changed, or gets another secret",
    "webhook.deleted": "a webhook is deleted",
    "webhook.switched_off": "a webhook is switched off because its receiver is gone or fails, or a "
    "key that made it is revoked",
}


class MessageKind(NamedTuple):
    """A kind of messages about events of one type (``notifications.rules.who_is_told``)."""

    type: str
    unless: str = ""  # No message follows if the unit of work has such an event of the record, too.
    opt_in: bool = False  # Nobody gets it without having chosen it.


# Kinds of messages by name, in the order of the console's page.
MESSAGE_KINDS = {
    "lead": MessageKind("lead.created", unless="order.created"),
    "order": MessageKind("order.created"),
    "booking": MessageKind("booking.created"),
    "booking_moved": MessageKind("booking.moved"),
    "booking_cancelled": MessageKind("booking.status_changed", unless="booking.hold_expired"),
    "booking_paid": MessageKind("booking.paid"),
    "refund_returned": MessageKind("booking.refund_done"),
    "refund_failed": MessageKind("booking.refund_failed"),
    "payment_disputed": MessageKind("booking.disputed"),
    "contacts": MessageKind("client.contacts_changed"),
    "dialog": MessageKind("dialog.started", opt_in=True),
    "handover": MessageKind("dialog.handover_requested"),
    "limit": MessageKind("bot.limit_reached"),
    "limit_half": MessageKind("bot.limit_half"),
    "calendar_unread": MessageKind("calendar.unreadable"),
    "webhook_off": MessageKind("webhook.switched_off"),
    "webhook_changed": MessageKind("webhook.changed"),
    "webhook_deleted": MessageKind("webhook.deleted"),
    "balance": MessageKind("balance.low"),
    "topup_returned": MessageKind("balance.returned"),
    "payment_refused": MessageKind("payment.refused"),
    "app_connected": MessageKind("connection.created"),
    "key_created": MessageKind("key.created"),
    "key_revoked": MessageKind("key.revoked"),
    "export_started": MessageKind("export.started"),
    "member_added": MessageKind("member.added"),
    "member_removed": MessageKind("member.removed"),
    "member_role": MessageKind("member.role_changed"),
}

# The event in the job of an e-mail about a refund. No unit of work emits it, so webhooks and
# members never receive it.
REFUNDED_EVENT = "booking.refunded"
# A booking's client is notified of these by mail. Not of ``booking.hold_expired``, because the same
# unit of work changes the status.
VISITOR_EVENTS = frozenset({"booking.created", "booking.moved", "booking.status_changed"})
