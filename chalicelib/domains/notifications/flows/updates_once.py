"""Carry out an update of a messenger once. A repeated update gets the same answer.

Messengers repeat an update until it gets status 200. Each change is therefore committed with a
record of its update.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from chalicelib.core.errors import IdempotencyKeyExistsError
from chalicelib.core.limits import Limit
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.domains.clients.store.client_chats import Chat
from chalicelib.domains.notifications.rules.messenger_updates import Message
from chalicelib.engine import idempotency, limits
from chalicelib.engine.unit import UnitOfWork, run_unit

WRONG_CODES = Limit(
    "telegram-wrong-codes", "wrong codes of a chat within an hour", 5, timedelta(hours=1)
)
Stage = Callable[[UnitOfWork], str]  # stages what a message changes, and returns the answer


class RefusedCodeError(Exception):
    """A code cannot be used by this chat, or not any more."""


def once(  # noqa: PLR0913  what a message changes
    chat: Chat,
    message: Message,
    tenant: str,
    subject: str,
    *,
    event: AuditEvent | None,
    stage: Stage,
) -> str:
    """Commit what a message changes for a subject, and return the answer of the stage."""
    scope = f"{chat.messenger}#{subject}"
    record = IdempotencyRecord(scope, message.update_key, fingerprint="")
    if stored_record := idempotency.find(tenant, record):
        return _stored_answer(record, stored_record)

    def staged(unit: UnitOfWork) -> str:
        answer = stage(unit)
        unit.keep(replace(record, body=answer.encode()))
        return answer

    try:
        return run_unit(tenant, event, staged)
    except IdempotencyKeyExistsError:
        return _stored_answer(record, idempotency.find(tenant, record))


def check_wrong_codes(chat: Chat) -> None:
    """Raise RateLimitedError if a chat has sent too many wrong codes."""
    limits.check(WRONG_CODES, _subject(chat))


def stage_wrong_code(unit: UnitOfWork, chat: Chat) -> None:
    """Stage that a chat has sent a wrong code."""
    limits.stage(unit, WRONG_CODES, _subject(chat))


def _subject(chat: Chat) -> str:
    return str(chat.chat_id) if chat.messenger == "telegram" else str(chat)


def _stored_answer(record: IdempotencyRecord, stored_record: IdempotencyRecord | None) -> str:
    return (record.require_answer(stored_record).body or b"").decode()
