"""Store the URLs that receive events of a workspace."""

from datetime import datetime, timedelta
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
BOTH_SECRETS = timedelta(hours=24)
"""After a secret is replaced, requests are signed with the former one too for this long."""
MAX_OLD_SECRETS = 2
"""Maximum number of former secrets that sign requests.

There are several if a secret is replaced more than once in this time.
"""
MAX_WEBHOOKS = 10
"""Maximum number of webhooks of a workspace."""
LOCK = "webhooks"
"""Name of the lock row (``engine.locks``) for the webhooks of a workspace."""


class WebhookRow(Record):
    """A webhook. Without ``types`` it receives all events.

    Its secret follows from ``secret_version``. ``rotated_at`` is the time of the latest change of
    the secret, and ``first_version`` the first that was valid shortly before that time. ``off_at``
    is the time when it was last switched off, and ``on_at`` when it was switched on after that.
    ``off_because`` is set if the service has switched it off. What was wanted before
    ``skip_before`` and has not been sent is given up.
    """

    url = UnicodeAttribute()
    types: ListAttribute[Any] = ListAttribute(default=list)
    status = UnicodeAttribute()
    off_at = UTCDateTimeAttribute(null=True)
    on_at = UTCDateTimeAttribute(null=True)
    skip_before = UTCDateTimeAttribute(null=True)
    off_because = UnicodeAttribute(null=True)
    secret_version = NumberAttribute(default=1)
    first_version = NumberAttribute(default=1)
    rotated_at = UTCDateTimeAttribute(null=True)

    def rotate(self) -> None:
        """Replace the secret. Valid secrets remain valid for ``BOTH_SECRETS``."""
        valid, version = self.valid_versions, int(self.secret_version) + 1
        # Each version adds a signature to the header of every request.
        self.first_version = max(min(valid), version - MAX_OLD_SECRETS)
        self.secret_version, self.rotated_at = version, clock.now()

    @property
    def valid_versions(self) -> range:
        """The versions of the secret that sign requests, newest first."""
        version = int(self.secret_version)
        is_recent = self.rotated_at and clock.now() - self.rotated_at < BOTH_SECRETS
        return range(version, (int(self.first_version) if is_recent else version) - 1, -1)

    def switch_on(self, *, send_waiting: bool) -> None:
        """Let it receive events from now on, and also waiting events if the webhook wants them."""
        now = clock.now()
        self.status, self.on_at, self.off_because = ACTIVE, now, None
        self.skip_before = self.skip_before if send_waiting else now

    def switch_off(self, because: str | None) -> None:
        """Let it receive no more events."""
        self.status, self.off_because = OFF, because
        self.off_at, self.on_at = clock.now(), None

    def receives(self, event_type: str, occurred_at: datetime) -> bool:
        """Whether it receives events of a type, and was on when the event occurred."""
        was_off = self.off_at is not None and (
            self.off_at <= occurred_at and (self.on_at is None or occurred_at < self.on_at)
        )
        return not was_off and (not self.types or event_type in self.types)

    def skips(self, wanted_since: datetime) -> bool:
        """Whether a delivery that is wanted since a time is given up."""
        return self.skip_before is not None and wanted_since < self.skip_before

    @property
    def wanted_types(self) -> set[str]:
        """The types that it receives from now on."""
        return set() if self.status == OFF else set(self.types or EVENT_TYPES)


WEBHOOKS = register_listing(
    Listing(
        row=WebhookRow,
        noun="WEBHOOK",
        not_found_message="The workspace has no webhook with this id. List the webhooks.",
        text=lambda webhook: (webhook.url,),
        sorts={"createdAt": "id"},
        lookups=(lookups.id_lookup("WEBHOOK"),),
    )
)


def read_all(workspace_id: str) -> list[WebhookRow]:
    """Return the webhooks of a workspace, newest first."""
    return WEBHOOKS.latest(workspace_id, MAX_WEBHOOKS)
