"""Show the messages that a test workspace did not send."""

from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire
from chalicelib.domains.mails.store import kept_messages
from chalicelib.domains.mails.store.kept_messages import KeptMessageRow

MAX_SHOWN = 100


class KeptMessage(Wire):
    """A message of a test workspace."""

    id: Id = Field(description="Message id.")
    channel: str = Field(description="mail, telegram, max or sms.")
    recipient: str = Field(description="E-mail address, number of a chat, or phone number.")
    subject: str | None = Field(description="Subject of an e-mail, or null.")
    text: str | None = Field(
        description="Text; null for an invitation, whose link proves the recipient's address."
    )
    kept_at: Timestamp = Field(description="When it would have been sent.")

    @classmethod
    def from_record(cls, row: KeptMessageRow) -> Self:
        return cls.from_row(row.attribute_values, id=row.id)


class Outbox(Wire):
    """Messages of a test workspace."""

    messages: list[KeptMessage] = Field(description="At most 100 messages, newest first.")


@operation(title="List the messages of a test workspace", role=Role.MANAGER)
def list_outbox(ctx: Context, args: NoInput) -> Outbox:
    """Return the newest messages of seven days. Other workspaces have none: theirs are sent."""
    rows = kept_messages.newest(ctx.workspace_id, MAX_SHOWN)
    return Outbox(messages=list(map(KeptMessage.from_record, rows)))
