"""Dialogs: what visitors and a bot have said to each other, by its outside (ADR 25).

The messages are rows of their own (``domains.chat.store.messages``). A dialog is removed with them
by a job, a year after its last message: expiry by time-to-live would leave it in counters and
entries.
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
from chalicelib.domains.contacts.store.named_contacts import NAMED
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import listed
from chalicelib.engine.tables import ContentRow, Record
from chalicelib.engine.unit import UnitOfWork

KEPT = timedelta(days=365)
"""How long a dialog is kept after its last message."""
WORDS_BYTES = 2048
"""Of what a visitor says, from the beginning, which the search of the list reads."""


class DialogRow(Record):
    """A dialog. Its id is public; the token that continues it is not kept, only its hash.

    ``words`` is the beginning of what the visitor said, ``named_contacts`` are all addresses and
    numbers in it, ``last_number`` the number of the last
    message; numbers of messages begin at 1. ``last_message_at`` is when the visitor last spoke.
    ``visit_id`` is the widget's visit that it belongs to. An erased one keeps its counts alone.
    """

    agent_id = UnicodeAttribute()
    channel = UnicodeAttribute()
    lead_id = UnicodeAttribute(null=True)
    words = UnicodeAttribute(null=True)
    named_contacts: ListAttribute[str] = ListAttribute(null=True)
    page_url = UnicodeAttribute(null=True)
    visit_id = UnicodeAttribute(null=True)
    session_hash = UnicodeAttribute(null=True)
    last_number = NumberAttribute()
    messages_count = NumberAttribute()
    input_tokens = NumberAttribute(default=0)
    output_tokens = NumberAttribute(default=0)
    last_message_at = UTCDateTimeAttribute()

    def hear(self, text: str, at: datetime) -> int:
        """Note that the visitor has spoken; return the number of the message."""
        self.words = cut_bytes("\n".join(filter(None, (self.words, text))), WORDS_BYTES)
        self.last_message_at = at
        number = int(self.last_number) + 1
        self.last_number = number + 1  # the answer's
        self.messages_count += 1
        return number


DIALOGS = listed(
    Listing(
        row=DialogRow,
        noun="DIALOG",
        plural="a bot's",
        listed_by="svc_list_agent_dialogs",
        text=lambda dialog: (dialog.words or "",),
        sorts={"startedAt": "id", "lastMessageAt": "n1"},
        facets=("agent_id", "channel", "lead_id"),
        counted=("agent_id",),
        partitioned=("agent_id",),
        presence=("lead_id",),
        numbers=("last_message_at",),
        lookups=(Lookup(NAMED, lambda dialog: dialog.named_contacts),),
    )
)


class TotalsRow(ContentRow):
    """A dialog as the end of an answer writes it, whoever else changes it meanwhile.

    Others who read the dialog before begin again, as the version says.
    """

    messages_count = NumberAttribute()
    input_tokens = NumberAttribute()
    output_tokens = NumberAttribute()
    version = NumberAttribute()


def add_totals(  # noqa: PLR0913  what a dialog counts
    unit: UnitOfWork,
    workspace_id: str,
    dialog_id: str,
    *,
    messages: int,
    input_tokens: int,
    output_tokens: int,
) -> None:
    """Stage that a dialog has an answer, or cost tokens; in place, from any tenant's unit."""
    actions: list[Action] = [
        TotalsRow.messages_count.add(messages),
        TotalsRow.input_tokens.add(input_tokens),
        TotalsRow.output_tokens.add(output_tokens),
        TotalsRow.version.add(1),
    ]
    unit.update(TotalsRow(DIALOGS.partition(workspace_id), dialog_id), actions)
