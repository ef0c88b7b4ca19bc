"""Webhooks: URLs that receive the events of a workspace."""

from datetime import datetime
from typing import Any

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock
from chalicelib.core.events import EVENT_TYPES
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import Record

ACTIVE, OFF = "active", "off"
"""States of a webhook. Nothing is sent to one that is off."""
GONE, FAILING = "gone", "failing"
"""Reasons why the service has switched a webhook off: the receiver answered 410, or has failed for
days."""
LOCK = "webhooks"
"""Name of the lock row (``engine.locks``) for the webhooks of a workspace."""


class WebhookRow(Record):
    """A webhook. Without ``types`` it receives all events.

    Its secret follows from ``secret_version``. ``rotated_at`` is the time of the latest change of
    the secret. ``off_at`` is the time since which it is off, and ``off_because`` is set if the
    service has switched it off.
    """

    url = UnicodeAttribute()
    types: ListAttribute[Any] = ListAttribute(default=list)
    status = UnicodeAttribute()
    off_at = UTCDateTimeAttribute(null=True)
    off_because = UnicodeAttribute(null=True)
    secret_version = NumberAttribute(default=1)
    rotated_at = UTCDateTimeAttribute(null=True)

    def switch_on(self) -> None:
        """Let it receive events from now on."""
        self.status, self.off_at, self.off_because = ACTIVE, None, None

    def switch_off(self, because: str | None) -> None:
        """Let it receive no more events."""
        self.status, self.off_at, self.off_because = OFF, clock.now(), because

    def receives(self, event_type: str, occurred_at: datetime) -> bool:
        """Whether it receives events of a type, and was on when the event occurred."""
        is_on = self.off_at is None or occurred_at < self.off_at
        return is_on and (not self.types or event_type in self.types)

    @property
    def wanted_types(self) -> set[str]:
        """The types that it receives from now on."""
        return set() if self.status == OFF else set(self.types or EVENT_TYPES)


WEBHOOKS = register_listing(
    Listing(
        row=WebhookRow,
        noun="WEBHOOK",
        not_found_message="The workspace has no webhook with this id. List its webhooks.",
        text=lambda webhook: (webhook.url,),
        sorts={"createdAt": "id"},
        lookups=(lookups.by_id("WEBHOOK"),),
    )
)
