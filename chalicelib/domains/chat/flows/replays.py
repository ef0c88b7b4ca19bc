"""Stored answers of chat calls with an idempotency key. The text stays with the dialog.

A session begun by the first call is stored encrypted (``gateways.sealing``), for callers with a bot
key. A visitor without a session or a bot key is not authenticated: strangers behind one address may
choose the same idempotency key. Therefore a visitor's replay begins a new session.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from pydantic_core import from_json, to_json

from chalicelib.core.errors import ConflictError, NotConfiguredError, UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.chat.rules import endings
from chalicelib.domains.chat.rules.endings import EndReason
from chalicelib.domains.chat.store import chat_sessions, messages, proposals
from chalicelib.domains.chat.store.proposals import ProposalRow
from chalicelib.engine import idempotency
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import sealing
from chalicelib.gateways.sealing import UnsealError

log = logging.getLogger(__name__)

# A crashed call keeps its key. By then the job has closed its hold.
MARKED_FOR = timedelta(minutes=10)


class Replay(NamedTuple):
    """A stored answer."""

    session_token: str
    text: str
    usage: TokenUsage | None
    reason: EndReason | None  # why it is not whole
    sources: Sequence[Mapping[str, str]]
    proposals: Sequence[ProposalRow]  # those that the caller can still confirm


def idempotency_record(
    scope: str, *, key: str, arguments: Sequence[str | None]
) -> IdempotencyRecord:
    """Return the record of a call. A retry must repeat these ``arguments``."""
    # The hash is of JSON, so that no two lists of arguments give the same bytes.
    return IdempotencyRecord(scope, key, hashlib.sha256(to_json(arguments)).hexdigest())


def find_or_mark(  # noqa: PLR0913  the fields of a call
    workspace_id: str,
    record: IdempotencyRecord,
    *,
    owner: str,
    agent_id: str,
    session_token: str | None,
    is_anonymous: bool,
) -> Replay | None:
    """Return the stored answer, or mark the key as in progress for this call.

    A replay continues the session that the call names, or else the session of the first call. An
    anonymous caller receives a new session, whose dialog begins with the next message. So does a
    caller if the session of the first call cannot be read.

    Raises:
        IdempotencyMismatchError: the key was used with another message.
        InProgressError: the first call is still being answered, or has crashed recently.
        ConflictError: its dialog has been erased in the meantime.
    """
    if idempotency.mark_in_progress(workspace_id, record, owner=owner, retention=MARKED_FOR):
        return None
    stored_record = record.require_answer(idempotency.find(workspace_id, record))
    body = from_json(stored_record.body or b"{}")
    answer = messages.find(workspace_id, dialog_id=body["dialog"], number=body["number"])
    if answer is None:
        raise ConflictError(
            "The dialog that used this idempotency key was erased. Use a new key.",
            key="dialog_erased",
        )
    token = None
    if not is_anonymous:
        token = session_token or _unsealed(body["session"], record, body["dialog"])
    is_new = token is None
    if token is None:
        token = chat_sessions.begin(workspace_id, agent_id=agent_id, dialog_id=new_id())
    usage = body["usage"] and TokenUsage(*body["usage"])
    # The dialog of a new session is another one, so its proposals cannot be confirmed.
    open_actions = (
        []
        if is_new
        else open_proposals(workspace_id, dialog_id=body["dialog"], number=body["number"])
    )
    return Replay(token, answer.content, usage, body["reason"], answer.sources or (), open_actions)


def open_proposals(workspace_id: str, *, dialog_id: str, number: int) -> list[ProposalRow]:
    """Return the proposals of an answer that are still open."""
    actions = proposals.find_actions(workspace_id, dialog_id=dialog_id)
    return [
        proposal
        for proposal in actions.proposals
        if proposal.id.message == number
        and proposals.state_of(proposal, actions.latest) == proposals.OPEN
    ]


def clear_replay(workspace_id: str, record: IdempotencyRecord | None, *, owner: str) -> None:
    """Delete the in-progress mark of a call that was not charged, so that it can be repeated."""
    if record is not None:
        idempotency.clear_in_progress(workspace_id, record, owner=owner)


def stage_replay(  # noqa: PLR0913  the fields of a replay
    unit: UnitOfWork,
    record: IdempotencyRecord,
    *,
    owner: str,
    dialog_id: str,
    number: int,
    session_token: str | None,
    usage: TokenUsage,
    reason: EndReason | None,
) -> None:
    """Stage the stored answer of a charged call. It replaces the in-progress mark.

    ``session_token`` is returned to a repeated call that sends no session.
    """
    code = endings.error_code(reason)
    body = {
        "dialog": dialog_id,
        "number": number,
        "session": session_token and _sealed(session_token, record, dialog_id),
        "usage": usage,
        "error": code and endings.ERRORS[code],
        "reason": reason,
    }
    answered = replace(record, body=to_json(body))
    unit.save(idempotency.row(unit.tenant, answered, owner=owner))


def _sealed(token: str, record: IdempotencyRecord, dialog_id: str) -> str | None:
    # The answer is charged either way. Its replay then begins a new session.
    try:
        return sealing.seal(token, purpose=_purpose(record, dialog_id))
    except (NotConfiguredError, UnavailableError):
        log.warning("a session is not stored: the master key cannot be read", exc_info=True)
        return None


def _unsealed(sealed: str | None, record: IdempotencyRecord, dialog_id: str) -> str | None:
    if sealed is None:
        return None
    try:
        return sealing.unseal(sealed, purpose=_purpose(record, dialog_id))
    except (NotConfiguredError, UnsealError):
        return None


def _purpose(record: IdempotencyRecord, dialog_id: str) -> str:
    return f"chat-session\0{record.scope}\0{record.key}\0{dialog_id}"
