"""Store the messages of a dialog, numbered from 1.

A visitor's message and its empty answer are stored before the request to the model. Checkpoints
update the answer while it streams. The settlement writes its final text.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.chat.rules.endings import END_REASONS, EndReason
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.reading import Cost, Key, Partition
from chalicelib.engine.tables import ConversationRow, JsonAttribute
from chalicelib.engine.unit import UnitOfWork

USER = "user"
ASSISTANT = "assistant"
MessageStatus = Literal["ok", "partial", "error"]
# Of an answer; longer ones are cut. A DynamoDB item is limited to 400 KB.
MAX_ANSWER_BYTES = 200_000
_DIGITS = 9


class MessageRow(ConversationRow):
    """A message. Its sort key is its number.

    An answer is open while it streams, or after its request has crashed. It then has the fields
    that a job needs to settle it: the expected input and, after the first checkpoint, the output.
    """

    role = UnicodeAttribute()
    content = UnicodeAttribute()
    status = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()
    # Of a visitor's message: all input tokens of its request to the model.
    tokens = NumberAttribute(null=True)
    is_open = BooleanAttribute(null=True)
    tool_calls: JsonAttribute = JsonAttribute(null=True)
    sources: JsonAttribute = JsonAttribute(null=True)
    input_tokens = NumberAttribute(null=True)
    output_tokens = NumberAttribute(null=True)
    channel = UnicodeAttribute(null=True)
    session_hash = UnicodeAttribute(null=True)
    reason = UnicodeAttribute(null=True)

    @property
    def end_reason(self) -> EndReason | None:
        """Why the answer is not whole, or None if this release does not know the reason."""
        return next((end_reason for end_reason in END_REASONS if end_reason == self.reason), None)

    @property
    def number(self) -> int:
        return int(self.sk)

    @property
    def dialog_id(self) -> str:
        return self.pk.rpartition("#")[2]

    @property
    def id(self) -> str:
        return f"{self.dialog_id}-{self.number}"


def row(workspace_id: str, *, dialog_id: str, number: int, **attributes: Any) -> MessageRow:  # noqa: ANN401  the row's attributes
    """Return a message row, for the caller to stage."""
    return MessageRow(
        _partition(workspace_id, dialog_id=dialog_id), _sort_key(number), **attributes
    )


def key(workspace_id: str, *, dialog_id: str, number: int) -> Key:
    """Return a message's key, for ``fetch``."""
    return Key(MessageRow, _partition(workspace_id, dialog_id=dialog_id), _sort_key(number))


def find(workspace_id: str, *, dialog_id: str, number: int) -> MessageRow | None:
    """Return a message, or None."""
    return MessageRow.find(_partition(workspace_id, dialog_id=dialog_id), _sort_key(number))


def stage_exchange(  # noqa: PLR0913  the fields of an exchange
    unit: UnitOfWork,
    dialog_id: str,
    number: int,
    text: str,
    *,
    channel: str,
    session_hash: str,
    input_tokens: int,
    sources: list[dict[str, str]],
) -> None:
    """Stage a visitor's message and its empty answer, which has the next number."""
    question = row(
        unit.workspace_id, dialog_id=dialog_id, number=number, created_at=clock.now(), role=USER
    )
    question.content, question.status = text, "ok"
    unit.create(question)
    answer = row(
        unit.workspace_id,
        dialog_id=dialog_id,
        number=number + 1,
        created_at=clock.now(),
        role=ASSISTANT,
    )
    answer.content, answer.status, answer.is_open = "", "partial", True
    answer.channel, answer.session_hash = channel, session_hash
    answer.input_tokens = input_tokens
    answer.sources = sources or None
    unit.create(answer)


class Ended(NamedTuple):
    """Status of an answer, its usage, its tool calls, and why it is not whole."""

    status: MessageStatus
    usage: TokenUsage | None
    tool_calls: list[Mapping[str, Any]]
    reason: EndReason | None


def checkpoint(
    workspace_id: str, *, dialog_id: str, number: int, content: str, ended: Ended
) -> None:
    """Store an open answer's text and usage so far, or raise UnavailableError."""
    actions: list[Action] = [
        MessageRow.content.set(content),
        MessageRow.status.set(ended.status),
        *_details(ended),
    ]
    if ended.usage is None:
        actions.append(MessageRow.output_tokens.remove())
    else:
        actions.append(MessageRow.input_tokens.set(ended.usage.input_tokens))
        actions.append(MessageRow.output_tokens.set(ended.usage.output_tokens))
    table = MessageRow._get_connection()  # noqa: SLF001  ``update`` would read the row again
    place = (_partition(workspace_id, dialog_id=dialog_id), _sort_key(number))
    try:
        # The settlement may have closed the answer, whose final text must be kept.
        table.update_item(*place, actions=actions, condition=MessageRow.is_open.exists())
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)


def stage_end(unit: UnitOfWork, answer: MessageRow, content: str, ended: Ended) -> None:
    """Stage the final text of an answer, which must still be open."""
    used = ended.usage or TokenUsage(0, 0)
    actions: list[Action] = [
        MessageRow.content.set(content),
        MessageRow.status.set(ended.status),
        MessageRow.created_at.set(clock.now()),
        MessageRow.tokens.set(used.output_tokens),
        MessageRow.is_open.remove(),
        MessageRow.input_tokens.remove(),
        MessageRow.output_tokens.remove(),
        MessageRow.session_hash.remove(),
        *_details(ended),
    ]
    unit.update(answer, actions, MessageRow.is_open.exists())
    question = MessageRow(answer.pk, _sort_key(answer.number - 1))
    unit.update(question, [MessageRow.tokens.set(used.input_tokens)])


def _details(ended: Ended) -> Iterator[Action]:
    if ended.tool_calls:
        yield MessageRow.tool_calls.set(ended.tool_calls)
    if ended.reason:
        yield MessageRow.reason.set(ended.reason)


def latest(workspace_id: str, *, dialog_id: str, limit: int) -> Iterator[MessageRow]:
    """Yield a dialog's messages, newest first, at most ``limit``. They are read on demand."""
    for item in Partition(_partition(workspace_id, dialog_id=dialog_id), Cost(), MessageRow).items(
        limit, scan_index_forward=False, consistent_read=True
    ):
        yield MessageRow.from_raw_data(item)


def page(
    workspace_id: str, *, dialog_id: str, offset: int, limit: int | None
) -> Iterator[MessageRow]:
    """Yield a dialog's messages from an offset on, oldest first."""
    partition = Partition(_partition(workspace_id, dialog_id=dialog_id), Cost(), MessageRow)
    start = partition.skip(offset, consistent_read=True)
    if offset and start is None:
        return
    for item in partition.items(limit, exclusive_start_key=start, consistent_read=True):
        yield MessageRow.from_raw_data(item)


def keys(workspace_id: str, *, dialog_id: str) -> list[MessageRow]:
    """Return a dialog's messages with keys only, for a unit of work to delete."""
    pk = _partition(workspace_id, dialog_id=dialog_id)
    items = Partition(pk, Cost(), MessageRow).items(attributes_to_get=["sk"], consistent_read=True)
    return [MessageRow(pk, item["sk"]["S"]) for item in items]


def _partition(workspace_id: str, *, dialog_id: str) -> str:
    return f"W#{workspace_id}#DIALOG#{dialog_id}"


def _sort_key(number: int) -> str:
    return f"{number:0{_DIGITS}d}"
