"""Store and settle one exchange of a dialog, which is a message and its answer.

An exchange writes, in this order:

1. The hold, with the session's lock.
2. The dialog and both messages.
3. Checkpoints of the answer.
4. The end, in the transaction that settles or releases the hold: the final answer, totals,
   counters, the release of the lock, and the stored replay.

A crash between two steps leaves either nothing or a hold. The hold's job performs the same end
(``settle_hold``). Its handler is in this module, because the function that runs jobs imports only
the module that the manifest names for a kind of job.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from chalicelib.core import clock, deadline
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Settled, Stage
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bots.rules.channels import Channel
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.chat.flows import replays
from chalicelib.domains.chat.flows.tool_calls import Tool, ToolContext
from chalicelib.domains.chat.rules.endings import EndReason, ErrorCode, error_code
from chalicelib.domains.chat.store import chat_sessions, dialogs, messages
from chalicelib.domains.chat.store.chat_sessions import SessionRow
from chalicelib.domains.chat.store.messages import Ended, MessageRow, MessageStatus
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine.metrics import Increments
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways.llm.messages import Message, count_input
from chalicelib.gateways.llm.models import ModelSpec

SETTLE_SECONDS = 10.0  # for the settlement at the end of a stream; after that the job settles it
log = logging.getLogger(__name__)


class Ending(NamedTuple):
    """Result of an answer."""

    text: str
    status: MessageStatus
    # None if no request was sent to the model, or if it failed before any output. Then nothing is
    # charged.
    usage: TokenUsage | None
    reason: EndReason | None = None  # why an answer is not whole
    first_token_ms: int | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()  # the model's calls, as they are stored

    @property
    def error(self) -> ErrorCode | None:
        return error_code(self.reason)

    @property
    def entry_kind(self) -> str:
        return ledger.EMPTY if self.reason == "empty_answer" else ledger.SETTLE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Exchange:
    """An accepted message. Money is held for its answer, and both are stored."""

    hold: Hold
    spec: ModelSpec
    messages: Sequence[Message]
    message_without_tools: Message  # for a model that turns out to take no tools
    tools: Sequence[Tool]
    tool_context: ToolContext
    max_output: int  # output tokens of one call to the model
    link_hosts: Collection[str]  # The answer may link to these and to sites.
    workspace: WorkspaceRow
    dialog_id: str
    number: int  # of the answer in the dialog
    session_token: str
    session_hash: str
    returns_session: bool  # A repeated call receives the session's token.
    channel: Channel
    sources: list[dict[str, str]]  # pages that the facts come from, if the client shows them
    last_reply: str | None  # the id of a member's latest reply
    idempotency_record: IdempotencyRecord | None  # None without an idempotency key
    began: float

    @property
    def input_tokens(self) -> int:
        """An estimate of the input tokens of the first call to the model."""
        return count_input(self.messages, [tool.spec for tool in self.tools])

    def checkpoint(self, ending: Ending) -> None:
        """Store the answer so far, with its usage, unless it used nothing.

        Raises UnavailableError if the database is unavailable.
        """
        if ending.usage is not None:
            messages.checkpoint(
                self.hold.workspace_id,
                dialog_id=self.dialog_id,
                number=self.number,
                content=ending.text,
                ended=_ended(ending, ending.usage),
            )

    def renew_session_lock(self) -> None:
        """Renew the session's lock, or raise UnavailableError."""
        chat_sessions.renew(
            self.hold.workspace_id, token_hash=self.session_hash, holder=self.hold.request_id
        )

    def close(self, ending: Ending) -> Settled:
        """End the exchange: charge its usage, or release its hold.

        Raises UnavailableError if that is not done within ``SETTLE_SECONDS``. The job will do it.
        """
        with deadline.side_by_side() as start:
            # The final checkpoint is written during the reads of the settlement, and before its
            # commit.
            return self._settle(ending, start(partial(self._final_checkpoint, ending)))

    def _final_checkpoint(self, ending: Ending) -> None:
        try:
            # An answer that costs nothing replaces the usage of its checkpoints, so that the job
            # does not charge it.
            if ending.usage is None and ending.reason:
                messages.checkpoint(
                    self.hold.workspace_id,
                    dialog_id=self.dialog_id,
                    number=self.number,
                    content=ending.text,
                    ended=_ended(ending, None),
                )
            else:
                self.checkpoint(ending)
        except Exception:
            # The failure prevents nothing.
            log.exception(
                "the final checkpoint of an answer was not written",
                extra={"requestId": self.hold.request_id, "agentId": self.hold.agent_id},
            )

    def _settle(self, ending: Ending, checkpointed: Future[None]) -> Settled:
        unused = [_unchanged(self.hold, self.session_hash)]

        def stage(unit: UnitOfWork) -> None:
            # If the commit fails, the job settles this checkpoint, so it must be stored first.
            checkpointed.result()
            stage_end(
                unit,
                self.hold,
                ending,
                unused.pop() if unused else read_rows(self.hold, self.session_hash),
                channel=self.channel,
                zone=self.workspace.timezone,
            )
            if self.idempotency_record is not None and ending.usage is not None:
                replays.stage_replay(
                    unit,
                    self.idempotency_record,
                    owner=self.hold.request_id,
                    dialog_id=self.dialog_id,
                    number=self.number,
                    session_token=self.session_token if self.returns_session else None,
                    usage=ending.usage,
                    reason=ending.reason,
                )

        if ending.usage is None:
            settled = charging.release(self.hold, stage, seconds=SETTLE_SECONDS)
            replays.clear_replay(
                self.hold.workspace_id, self.idempotency_record, owner=self.hold.request_id
            )
            return settled
        return charging.settle(
            self.hold, ending.usage, stage, kind=ending.entry_kind, seconds=SETTLE_SECONDS
        )


def message_id(dialog_id: str, number: int) -> str:
    """Return the id of an answer that its hold stores."""
    return f"{dialog_id}-{number}"


def answer_key(hold: Hold) -> Key:
    """Return the key of a hold's answer."""
    dialog_id, _, number = hold.message_id.rpartition("-")
    return messages.key(hold.workspace_id, dialog_id=dialog_id, number=int(number))


class _Rows(NamedTuple):
    answer: MessageRow | None
    session: SessionRow | None


def _unchanged(hold: Hold, session_hash: str) -> _Rows:
    # The rows as the exchange has left them, without a read: the conditions of the end check both.
    # If one fails, the rows have been changed by others and are to be read.
    answer = answer_key(hold)
    session = chat_sessions.key(hold.workspace_id, token_hash=session_hash)
    return _Rows(
        MessageRow(answer.pk, answer.sk, is_open=True),
        SessionRow(session.pk, session.sk, holder=hold.request_id),
    )


def read_rows(hold: Hold, session_hash: str | None) -> _Rows:
    """Return the answer and the session of a hold as they are stored."""
    keys = [answer_key(hold)]
    if session_hash is not None:
        keys.append(chat_sessions.key(hold.workspace_id, token_hash=session_hash))
    answer = session = None
    for row in fetch(keys):
        match row:
            case MessageRow():
                answer = row
            case SessionRow():
                session = row
    return _Rows(answer, session)


def stage_end(  # noqa: PLR0913  the fields of an ending
    unit: UnitOfWork, hold: Hold, ending: Ending, rows: _Rows, *, channel: str, zone: str
) -> None:
    """Stage the final answer, the dialog's totals, the release of its session, and the counters."""
    used = ending.usage or TokenUsage(0, 0)
    has_text = bool(ending.text.strip())
    # The message may have been erased while the answer was streamed.
    if rows.answer is not None and rows.answer.is_open:
        messages.stage_end(unit, rows.answer, ending.text, _ended(ending, used))
        dialogs.add_totals(
            unit,
            hold.workspace_id,
            dialog_id=rows.answer.dialog_id,
            messages=int(has_text),
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
        )
    chat_sessions.stage_release(unit, rows.session, hold.request_id)
    counts = Increments(hold.workspace_id)
    measures = {
        bot_metrics.MESSAGES: int(has_text),
        bot_metrics.INPUT_TOKENS: used.input_tokens,
        bot_metrics.OUTPUT_TOKENS: used.output_tokens,
        bot_metrics.ERRORS: int(ending.error is not None),
        bot_metrics.TOOL_CALLS: len(ending.tool_calls),
    }
    if ending.first_token_ms is not None:
        measures[bot_metrics.FIRST_TOKEN_MS] = ending.first_token_ms
        measures[bot_metrics.FIRST_TOKENS] = 1
    bot_metrics.count(
        counts,
        hold.agent_id,
        channel=channel,
        day=clock.local_day(clock.now(), zone),
        measures=measures,
    )
    counts.stage(unit)


def _ended(ending: Ending, usage: TokenUsage | None) -> Ended:
    return Ended(ending.status, usage, list(ending.tool_calls), ending.reason)


class Recovered(NamedTuple):
    """Outcome of a crashed request: its usage, or None without output, and the writes to stage."""

    usage: TokenUsage | None
    stage: Stage
    kind: str = ledger.SETTLE  # of the ledger entry of a charged request


@job_handler(ledger.SETTLE_HOLD)
def settle_hold(job: Job) -> None:
    """Settle the produced output of a hold that a crash left open, or release the hold."""
    hold = charging.find_open_hold(job)
    if hold is None:
        return
    usage, stage, kind = recover(hold)
    if usage is None:
        charging.release(hold, stage)
    else:
        charging.settle(hold, usage, stage, kind=kind)


def recover(hold: Hold) -> Recovered:
    """Return the text and usage of a crashed request's last checkpoint, if any."""
    key = answer_key(hold) if hold.message_id else None
    answer = MessageRow.find(key.pk, key.sk) if key else None
    # A closed answer was settled by the request itself.
    if answer is None or not answer.is_open:
        return Recovered(None, charging.nothing)
    zone = workspaces.get(hold.workspace_id).timezone
    if answer.output_tokens is None:
        ending = Ending("", "error", None, answer.end_reason or "provider_failed")
    else:
        usage = TokenUsage(int(answer.input_tokens), int(answer.output_tokens))
        status = cast("MessageStatus", answer.status)
        calls = answer.tool_calls or ()
        ending = Ending(answer.content, status, usage, answer.end_reason, tool_calls=calls)

    def stage(unit: UnitOfWork) -> None:
        stage_end(
            unit,
            hold,
            ending,
            read_rows(hold, answer.session_hash),
            channel=answer.channel,
            zone=zone,
        )

    return Recovered(ending.usage, stage, ending.entry_kind)
