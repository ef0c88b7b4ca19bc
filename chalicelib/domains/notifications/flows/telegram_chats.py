"""Link Telegram chats to members by a code, carry out commands, and send messages to these chats.

Telegram repeats an update until it gets status 200. Each change is therefore committed with a
record of its update, so that a repeated update changes nothing more and gets the same reply.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from chalicelib.core.errors import IdempotencyKeyExistsError, RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.principals import PLATFORM
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.mails.store import kept_messages
from chalicelib.domains.notifications.rules.telegram_updates import Answer, Message, parse, text
from chalicelib.domains.notifications.store import telegram_links
from chalicelib.engine import idempotency, limits
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import telegram

WRONG_CODES = Limit(
    "telegram-wrong-codes", "wrong codes of a chat within an hour", 5, timedelta(hours=1)
)
# Names in the audit log, which are the names of the console's operations.
LINK, UNLINK = "link_telegram", "unlink_telegram"
Stage = Callable[[UnitOfWork], str]  # stages what a message changes, and returns the answer
log = logging.getLogger(__name__)


class Reply(NamedTuple):
    """The bot's answer to a chat."""

    chat_id: int
    text: str


class _RefusedError(Exception):
    """A code cannot be used by this chat, or not any more."""


def deliver(workspace_id: str, *, chat_id: int, text: str) -> bool:
    """Send a workspace's message to a chat. If the chat is gone, remove its links, return False.

    The message of a test workspace is kept instead.

    Raises:
        BusyError: the bot has sent too much; see ``retry_after``.
        TelegramError: another failure, after which the message may have been sent.
        NotConfiguredError: the bot is not configured.
    """
    if is_test(workspace_id):
        kept_messages.keep(
            workspace_id, channel="telegram", recipient=str(chat_id), subject=None, text=text
        )
        return True
    try:
        telegram.send(chat_id, text, origin=workspace_id)
    except telegram.ChatGoneError:
        # A chat that is gone is of no use to any workspace, so all its links end.
        for membership in telegram_links.read_memberships(chat_id):
            event = AuditEvent(UNLINK, "job", resources=(f"account:{membership.account_id}",))
            run_unit(
                membership.workspace_id, event, partial(_stage_end, membership.account_id, chat_id)
            )
        return False
    return True


def receive(update: object) -> Reply | None:
    """Carry out an update of Telegram, and return the answer to its chat, or None without one.

    The webhook and the development server pass updates to it. After UnavailableError, Telegram
    repeats the update.
    """
    message = parse(update)
    if message is None:
        return None
    try:
        answer = _answer(message)
    except RateLimitedError:
        answer = _text(message, "too_many_codes")
    return Reply(message.chat_id, answer)


def _answer(message: Message) -> str:
    match message.command:
        case "start":
            return _start(message)
        case "stop":
            for workspace_id, account_id in telegram_links.read_memberships(message.chat_id):
                stage: Stage = partial(_stage_end, account_id, message.chat_id)
                _once(message, workspace_id, account_id=account_id, operation=UNLINK, stage=stage)
            return _text(message, "stopped")
    return _text(message, "help")


def _text(message: Message, answer: Answer, **values: str) -> str:
    return text(message.language, answer, **values)


def _start(message: Message) -> str:
    code = telegram_links.find_code(message.argument)
    if code is not None:
        stage: Stage = partial(_stage_link, message)
        try:
            return _once(
                message, code.workspace_id, account_id=code.account_id, operation=LINK, stage=stage
            )
        # An unknown code and a refused one give the same answer, so a guess reveals nothing.
        except _RefusedError:
            pass
    return _once(
        message, PLATFORM, account_id="", operation=None, stage=partial(_stage_wrong_code, message)
    )


def _once(
    message: Message, tenant: str, *, account_id: str, operation: str | None, stage: Stage
) -> str:
    # A repeated update only gets the answer.
    record = IdempotencyRecord(f"telegram#{account_id}", str(message.update_id), fingerprint="")
    # Telegram sends an update again until it gets a response with the status 200.
    if stored_record := idempotency.find(tenant, record):
        return _stored_answer(record, stored_record)
    event = None
    if operation is not None:
        event = AuditEvent(operation, account_id, resources=(f"account:{account_id}",))

    def staged(unit: UnitOfWork) -> str:
        answer = stage(unit)
        unit.keep(replace(record, body=answer.encode()))
        return answer

    try:
        return run_unit(tenant, event, staged)
    except IdempotencyKeyExistsError:
        return _stored_answer(record, idempotency.find(tenant, record))


def _stored_answer(record: IdempotencyRecord, stored_record: IdempotencyRecord | None) -> str:
    return (record.require_answer(stored_record).body or b"").decode()


def _stage_link(message: Message, unit: UnitOfWork) -> str:
    # A chat that has sent too many wrong codes may not try further ones.
    limits.check(WRONG_CODES, str(message.chat_id))
    code = telegram_links.find_code(message.argument)
    if code is None:
        raise _RefusedError
    account_id = code.account_id
    linked = _text(message, "linked", workspace=workspaces.get(unit.tenant).name)
    if code.chat_id is not None:  # The user may have followed the link twice.
        link = telegram_links.find(unit.tenant, account_id=account_id)
        if link is None or not link.chat_id == code.chat_id == message.chat_id:
            raise _RefusedError
        return linked
    membership = workspaces.membership(account_id, workspace_id=unit.tenant)
    if membership is None or accounts.is_disabled(account_id):
        raise _RefusedError
    # A membership that ends in the meantime ends before the link is made, or its job removes the
    # link.
    unit.require(membership)
    unit.require(accounts.row(account_id), AccountRow.disabled_at.does_not_exist())
    telegram_links.stage_use(unit, code, message.chat_id)
    telegram_links.stage_link(
        unit, account_id, message.chat_id, message.name, language=message.language
    )
    return linked


def _stage_wrong_code(message: Message, unit: UnitOfWork) -> str:
    limits.stage(unit, WRONG_CODES, str(message.chat_id))
    return _text(message, "wrong_code")


def _stage_end(account_id: str, chat_id: int, unit: UnitOfWork) -> str:
    link = telegram_links.find(unit.tenant, account_id=account_id)
    # By now, the member may have linked another chat.
    if link is not None and link.chat_id == chat_id:
        telegram_links.stage_end(unit, link)
    return ""


def end_link(workspace_id: str, *, account_id: str, ended_at: datetime) -> None:
    """Remove the link of a former member. A later link of a member who has returned is kept."""
    link = telegram_links.find(workspace_id, account_id=account_id)
    if link is None:
        return
    # A link of an earlier membership ends, but a newer one belongs to the member who has returned.
    if (
        link.linked_at <= ended_at
        or workspaces.membership(account_id, workspace_id=workspace_id) is None
    ):
        stage = partial(_stage_end, link.account_id, int(link.chat_id))
        run_unit(workspace_id, AuditEvent.by_job(MEMBERSHIP_ENDED), stage)
