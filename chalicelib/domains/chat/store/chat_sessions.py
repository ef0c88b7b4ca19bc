"""Store chat sessions, which link a visitor's token to a dialog and lock it during an answer.

The token is unguessable and bound to one bot. Only its hash is stored. A session has one stream at
a time. Its lock expires soon after the last renewal, so a crash blocks the session only briefly.
"""

import secrets
from datetime import timedelta

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError, ConflictError
from chalicelib.domains.chat.store.dialogs import RETENTION
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ConversationRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import tokens

LOCKED_FOR = timedelta(seconds=20)  # after the last renewal of a lock
UNUSED_FOR = timedelta(days=1)  # A session begun by a replay waits this long for its first message.
TOKEN_BYTES = 32
SORT_KEY = "-"


class SessionBusyError(ConflictError):
    """An answer is still being streamed in the chat session."""

    code = "session_busy"
    precedence = 0

    def __init__(self) -> None:
        super().__init__(
            "The bot is still answering in this session. Wait until the answer is complete.",
            headers={"Retry-After": "2"},
        )


class SessionRow(ConversationRow):
    """A session. ``holder`` is the id of the request that streams, until ``held_until``."""

    agent_id = UnicodeAttribute()
    dialog_id = UnicodeAttribute()
    holder = UnicodeAttribute(null=True)
    held_until = UTCDateTimeAttribute(null=True)

    @property
    def is_held(self) -> bool:
        return self.held_until is not None and self.held_until >= clock.now()


def new_token() -> str:
    """Return the token of a new session."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def new(workspace_id: str, *, token: str, agent_id: str, dialog_id: str, holder: str) -> SessionRow:
    """Return a new session, locked by the request that begins it, for the caller to stage."""
    now = clock.now()
    return SessionRow(
        _partition(workspace_id, token_hash=tokens.digest(token)),
        SORT_KEY,
        agent_id=agent_id,
        dialog_id=dialog_id,
        holder=holder,
        held_until=now + LOCKED_FOR,
        expires=now + RETENTION,
    )


def begin(workspace_id: str, *, agent_id: str, dialog_id: str) -> str:
    """Store an unlocked session before its dialog; return its token or raise UnavailableError."""
    token = new_token()
    row = SessionRow(
        _partition(workspace_id, token_hash=tokens.digest(token)),
        SORT_KEY,
        agent_id=agent_id,
        dialog_id=dialog_id,
        expires=clock.now() + UNUSED_FOR,
    )
    with reaching():
        row.save()
    return token


def find(workspace_id: str, *, agent_id: str, token: str) -> SessionRow | None:
    """Return a bot's session by its token, or None if it is the session of another bot."""
    session = find_by_hash(workspace_id, token_hash=tokens.digest(token))
    return session if session is not None and session.agent_id == agent_id else None


def find_by_hash(workspace_id: str, *, token_hash: str) -> SessionRow | None:
    """Return a session by its token's hash, unless it has expired."""
    return unexpired(SessionRow.find(_partition(workspace_id, token_hash=token_hash), SORT_KEY))


def unexpired(session: SessionRow | None) -> SessionRow | None:
    """Return a session that was read, or None if it has expired but was not removed yet."""
    if session is None or session.expires is None:
        return session
    return session if session.expires >= clock.now() else None


def key(workspace_id: str, *, token_hash: str) -> Key:
    """Return a session's key, for ``fetch``."""
    return Key(SessionRow, _partition(workspace_id, token_hash=token_hash), SORT_KEY)


def stage_lock(unit: UnitOfWork, session: SessionRow, holder: str) -> None:
    """Stage locking a session for a request; the commit may raise ``SessionBusyError``.

    The session then expires in a year.
    """
    now = clock.now()
    actions: list[Action] = [
        SessionRow.holder.set(holder),
        SessionRow.held_until.set(now + LOCKED_FOR),
        SessionRow.expires.set(now + RETENTION),
    ]
    unlocked = SessionRow.held_until.does_not_exist() | (SessionRow.held_until < now)
    free: Condition = SessionRow.agent_id.exists() & (unlocked | (SessionRow.holder == holder))
    unit.update(session, actions, free, on_conflict=SessionBusyError())


def stage_release(unit: UnitOfWork, session: SessionRow | None, holder: str) -> None:
    """Stage releasing a session's lock, if the request still holds it."""
    # Another request may hold the lock by now.
    if session is not None and session.holder == holder:
        actions: list[Action] = [SessionRow.holder.remove(), SessionRow.held_until.remove()]
        unit.update(
            session, actions, SessionRow.holder == holder, on_conflict=ConcurrentUpdateError()
        )


def renew(workspace_id: str, *, token_hash: str, holder: str) -> None:
    """Renew a session's lock, unless another request holds it, or raise UnavailableError."""
    table = SessionRow._get_connection()  # noqa: SLF001  ``update`` would read the row again
    try:
        table.update_item(
            _partition(workspace_id, token_hash=token_hash),
            SORT_KEY,
            actions=[SessionRow.held_until.set(clock.now() + LOCKED_FOR)],
            condition=SessionRow.holder == holder,
        )
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)


def end(unit: UnitOfWork, workspace_id: str, *, token_hash: str) -> None:
    """Stage the deletion of a session."""
    unit.delete(SessionRow(_partition(workspace_id, token_hash=token_hash), SORT_KEY))


def _partition(workspace_id: str, *, token_hash: str) -> str:
    return f"W#{workspace_id}#SESSION#{token_hash}"
