"""The types of events: changes that webhooks report.

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
"""The type of an event that a person sends to try a webhook. It has no record."""

EVENT_TYPES = {
    "booking.created": EventType("a booking is made", *_BOOKING),
    "booking.hold_expired": EventType("a booking was not paid in time", *_BOOKING),
    "booking.moved": EventType("a booking gets another time or another staff member", *_BOOKING),
    "booking.status_changed": EventType("a booking's status changes", *_BOOKING),
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
