"""Answers that are told again: what a chat keeps under an idempotency key.

The text stays where it is, with the dialog. A session that the first call has made is kept sealed
for callers with a bot key: its token is read with the idempotency key, of which the database has a
hash. A visitor without a session or a bot key has proved nothing: strangers behind one address may
choose the same idempotency key. So a visitor's replay begins a session of its own.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from pydantic_core import from_json, to_json

from chalicelib.core.errors import ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.chat.store import chat_sessions, messages
from chalicelib.engine import idempotency
from chalicelib.engine.unit import UnitOfWork

MARKED_FOR = timedelta(minutes=10)
"""How long a call that has crashed keeps its key: until the job has closed what it left."""


class Replay(NamedTuple):
    """An answer as it was given; ``error`` is what it ended with, if that was no ``usage``."""

    session_token: str
    text: str
    usage: TokenUsage | None
    error: str | None


def record(scope: str, key: str, said: Sequence[str | None]) -> IdempotencyRecord:
    """Return what a call is kept under; ``said`` is what a repetition must say, too."""
    return IdempotencyRecord(scope, key, hashlib.sha256(to_json(said)).hexdigest())


def find_or_mark(  # noqa: PLR0913  whose call it is
    workspace_id: str,
    kept: IdempotencyRecord,
    *,
    owner: str,
    agent_id: str,
    session_token: str | None,
    is_visitors: bool,
) -> Replay | None:
    """Return the answer that is kept, or mark the key as taken by this call.

    A replay goes on with the session that the call names, or else with the one that the first call
    began; if it ``is_visitors``, with a new session, whose dialog begins with its first message.

    Raises:
        IdempotencyMismatchError: the key was used with another message.
        InProgressError: the first call is still being answered, or has crashed just now.
        ConflictError: its dialog has been erased since.
    """
    if idempotency.mark_in_progress(workspace_id, kept, owner=owner, kept=MARKED_FOR):
        return None
    found = kept.answered(idempotency.find(workspace_id, kept))
    told = from_json(found.body or b"{}")
    answer = messages.find(workspace_id, told["dialog"], told["number"])
    if answer is None:
        raise ConflictError("What this idempotency key was used for has been erased.")
    if is_visitors:
        token = chat_sessions.begin(workspace_id, agent_id=agent_id, dialog_id=new_id())
    else:
        token = session_token or _sealed(told["session"], kept, told["dialog"])
    usage = told["usage"] and TokenUsage(*told["usage"])
    return Replay(token, answer.content, usage, told["error"])


def clear(workspace_id: str, kept: IdempotencyRecord | None, *, owner: str) -> None:
    """Drop the mark of a call that was not charged: it may be made again."""
    if kept is not None:
        idempotency.clear_in_progress(workspace_id, kept, owner=owner)


def stage(  # noqa: PLR0913  what a replay says
    unit: UnitOfWork,
    kept: IdempotencyRecord,
    *,
    owner: str,
    dialog_id: str,
    number: int,
    session_token: str | None,
    usage: TokenUsage | None,
    error: str | None,
) -> None:
    """Stage an answer that was charged, in place of the mark.

    ``session_token`` is what a replay may give to a caller who does not send it.
    """
    told = {
        "dialog": dialog_id,
        "number": number,
        "session": session_token and _sealed(session_token, kept, dialog_id),
        "usage": usage,
        "error": error,
    }
    unit.save(idempotency.row(unit.tenant, replace(kept, body=to_json(told)), owner=owner))


def _sealed(token: str, kept: IdempotencyRecord, dialog_id: str) -> str:
    """Return a token sealed, or a sealed one opened: the mask is used for one token only."""
    secret = f"session\0{kept.scope}\0{kept.key}\0{dialog_id}"
    raw = urlsafe_b64decode(token + "=")
    mask = hashlib.sha256(secret.encode()).digest()
    mixed = bytes(one ^ other for one, other in zip(raw, mask, strict=True))
    return urlsafe_b64encode(mixed).decode().rstrip("=")
