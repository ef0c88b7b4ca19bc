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
from chalicelib.core.events import EVENT_TYPES, TEST_EVENT
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import Record

ACTIVE, OFF = "active", "off"  # Nothing is sent to a webhook that is off.
# Reasons why the service has switched a webhook off: the receiver answered 410, or has failed for
# days, a key that made or changed the webhook was revoked, or the workspace was imported.
GONE, FAILING, KEY_REVOKED, IMPORTED = "gone", "failing", "key_revoked", "imported"
# After a secret is replaced, requests are signed with the former one too for this long.
BOTH_SECRETS = timedelta(hours=24)
# Former secrets that sign requests: several if a secret is replaced more than once in this time.
MAX_OLD_SECRETS = 2
MAX_WEBHOOKS = 10  # of a workspace
LOCK = "webhooks"  # the lock row (``engine.locks``) for the webhooks of a workspace


class WebhookRow(Record):
    """A webhook. Its secret follows from ``secret_version``."""

    url = UnicodeAttribute()
    types: ListAttribute[Any] = ListAttribute(default=list)  # all events if empty
    status = UnicodeAttribute()
    off_at = UTCDateTimeAttribute(null=True)  # when it was last switched off
    on_at = UTCDateTimeAttribute(null=True)  # when it was switched on after that
    # What was wanted before and has not been sent is given up.
    skip_before = UTCDateTimeAttribute(null=True)
    off_because = UnicodeAttribute(null=True)  # set if the service has switched it off
    secret_version = NumberAttribute(default=1)
    # The first that was valid shortly before the latest change.
    first_version = NumberAttribute(default=1)
    rotated_at = UTCDateTimeAttribute(null=True)  # of the latest change of the secret
    # Who made the latest change: an account or the operator, and the key that was used.
    changed_by = UnicodeAttribute(null=True)
    changed_with = UnicodeAttribute(null=True)
    # The keys that made or changed it since a person last set its URL or switched it on.
    key_ids: ListAttribute[Any] = ListAttribute(default=list)

    def rotate(self) -> None:
        # Valid secrets remain valid for ``BOTH_SECRETS``.
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
        self.status, self.off_because = OFF, because
        self.off_at, self.on_at = clock.now(), None

    def receives(self, event_type: str, occurred_at: datetime) -> bool:
        was_off = self.off_at is not None and (
            self.off_at <= occurred_at and (self.on_at is None or occurred_at < self.on_at)
        )
        return not was_off and self.wants(event_type)

    def skips(self, wanted_since: datetime) -> bool:
        """Whether a delivery that is wanted since a time is given up."""
        return self.skip_before is not None and wanted_since < self.skip_before

    def wants(self, event_type: str) -> bool:
        return event_type == TEST_EVENT or not self.types or event_type in self.types

    @property
    def wanted_types(self) -> set[str]:
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
