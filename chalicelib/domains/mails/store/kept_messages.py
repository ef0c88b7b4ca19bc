"""Messages of test workspaces, which are kept for a week instead of being sent."""

from datetime import timedelta
from typing import Literal

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.engine.connection import reaching
from chalicelib.engine.tables import ControlRow

KEPT_FOR = timedelta(days=7)
Channel = Literal["mail", "telegram", "max", "sms"]


class KeptMessageRow(ControlRow):
    """A message that was not sent. Its sort key is a new id, so that rows are in order."""

    channel = UnicodeAttribute()
    recipient = UnicodeAttribute()  # an address, the id of a chat, or a phone number
    subject = UnicodeAttribute(null=True)  # of an e-mail
    # None if only the recipient may read the text, as it proves the recipient's address.
    text = UnicodeAttribute(null=True)
    kept_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        return self.sk


def keep(
    workspace_id: str,
    *,
    channel: Channel,
    recipient: str,
    subject: str | None,
    text: str | None,
) -> None:
    """Write a message of a test workspace. A repeated call writes another one."""
    now = clock.now()
    row = KeptMessageRow(
        _partition(workspace_id),
        new_id(now),
        channel=channel,
        recipient=recipient,
        subject=subject,
        text=text,
        kept_at=now,
        expires=now + KEPT_FOR,
    )
    with reaching():
        row.save()


def newest(workspace_id: str, limit: int) -> list[KeptMessageRow]:
    """Return the newest messages, newest first. Expired ones may not be deleted yet."""
    rows = KeptMessageRow.partition(_partition(workspace_id), scan_index_forward=False, limit=limit)
    return [row for row in rows if row.kept_at > clock.now() - KEPT_FOR]


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#KEPT-MESSAGE"
