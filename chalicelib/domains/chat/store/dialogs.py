"""Dialogs between visitors and bots, without their messages (ADR 25).

A job removes a dialog and its messages a year after the last message. DynamoDB's time to live is
not used for dialogs, because it would not update counters and index entries.
"""

from datetime import datetime, timedelta

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core.text import cut_bytes
from chalicelib.domains.clients.store.contact_lookups import NAMED, contact_lookup
from chalicelib.engine.listing.event_rules import is_new
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import ContentRow, JsonAttribute, Record, changed_now
from chalicelib.engine.unit import UnitOfWork

RETENTION = timedelta(days=365)  # after the last message
WORDS_BYTES = 2048  # of ``words``, which are searched in the list of dialogs


WAITS, YES = "waits_for_person", "1"
"""The look-up, and its one value, of dialogs that wait for a member of the workspace."""


class DialogRow(Record):
    """A dialog. Its id is public. After an erasure only counts remain."""

    agent_id = UnicodeAttribute()
    channel = UnicodeAttribute()
    lead_id = UnicodeAttribute(null=True)
    client_id = UnicodeAttribute(null=True)  # that the dialog's lead created, if any
    words = UnicodeAttribute(null=True)  # beginning of the visitor's messages
    # E-mail addresses and phone numbers in the visitor's messages.
    named_contacts: ListAttribute[str] = ListAttribute(null=True)
    page_url = UnicodeAttribute(null=True)
    visit_id = UnicodeAttribute(null=True)  # the widget visit of the dialog
    session_hash = UnicodeAttribute(null=True)  # Only the hash of the token is stored.
    handover_at = UTCDateTimeAttribute(null=True)  # when the bot last asked for an employee
    handover_reason = UnicodeAttribute(null=True)
    # The latest replies of members, oldest first, each with ``id``, ``text``, ``author`` and
    # ``at``.
    replies: JsonAttribute = JsonAttribute(null=True)
    last_number = NumberAttribute()  # number of the last message, from 1
    messages_count = NumberAttribute()
    input_tokens = NumberAttribute(default=0)
    output_tokens = NumberAttribute(default=0)
    last_message_at = UTCDateTimeAttribute()  # of the visitor

    kept_when_erased = Record.kept_when_erased | {
        *("agent_id", "channel", "lead_id", "handover_at", "last_message_at"),
        *("last_number", "messages_count", "input_tokens", "output_tokens"),
    }

    @property
    def waits_for_person(self) -> bool:
        # A visitor has asked the bot for a person, and no member has replied since.
        if self.handover_at is None or self.channel == "test":
            return False
        replied_at = [datetime.fromisoformat(each["at"]) for each in self.replies or ()]
        return all(at < self.handover_at for at in replied_at)

    def record_message(self, text: str, at: datetime) -> int:
        """Record a message of the visitor, and return its number."""
        self.words = cut_bytes("\n".join(filter(None, (self.words, text))), WORDS_BYTES)
        self.last_message_at = at
        number = int(self.last_number) + 1
        self.last_number = number + 1  # The next number is reserved for the answer.
        self.messages_count += 1
        return number


DIALOGS = register_listing(
    Listing(
        row=DialogRow,
        noun="DIALOG",
        plural="the dialogs of a bot",
        listed_by="svc_list_agent_dialogs",
        text=lambda dialog: (dialog.words or "",),
        sorts={"startedAt": "id", "lastMessageAt": "n1"},
        facets=("agent_id", "channel", "lead_id"),
        counted=("agent_id",),
        partitioned=("agent_id",),
        presence=("lead_id",),
        numbers=("last_message_at",),
        events={
            "dialog.started": is_new,
            "dialog.handover_requested": lambda old_row, new_row: (
                new_row.handover_at is not None
                and (old_row is None or new_row.handover_at != old_row.handover_at)
            ),
        },
        lookups=(
            contact_lookup(NAMED, lambda dialog: dialog.named_contacts),
            Lookup(WAITS, lambda dialog: YES if dialog.waits_for_person else None),
        ),
    )
)


class TotalsRow(ContentRow):
    """Counters of a dialog, which the end of an answer increments without reading the row."""

    messages_count = NumberAttribute()
    input_tokens = NumberAttribute()
    output_tokens = NumberAttribute()
    version = NumberAttribute()  # So a concurrent update that has read the dialog runs again.


def add_totals(  # noqa: PLR0913  the counts of a dialog
    unit: UnitOfWork,
    workspace_id: str,
    *,
    dialog_id: str,
    messages: int,
    input_tokens: int,
    output_tokens: int,
) -> None:
    """Stage an increment of a dialog's counters. The unit may belong to another tenant."""
    actions: list[Action] = [
        TotalsRow.messages_count.add(messages),
        TotalsRow.input_tokens.add(input_tokens),
        TotalsRow.output_tokens.add(output_tokens),
        TotalsRow.version.add(1),
        *changed_now(),
    ]
    unit.update(TotalsRow(DIALOGS.partition(workspace_id), dialog_id), actions)
