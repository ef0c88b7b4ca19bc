"""Telegram chats of members, and the codes with which members link them.

A member has one chat in each workspace. A chat may belong to members of several workspaces, so each
link has an entry under its chat, too.
"""

import hashlib
from datetime import timedelta
from typing import NamedTuple

from pynamodb.attributes import (
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock
from chalicelib.core.principals import PLATFORM
from chalicelib.engine.tables import ContentRow, ControlRow
from chalicelib.engine.unit import UnitOfWork

CODE_LIFE = timedelta(minutes=10)
SORT_KEY = "-"


class TelegramLinkRow(ContentRow):
    """The chat of a member."""

    version = VersionAttribute()
    chat_id = NumberAttribute()
    name = UnicodeAttribute(default="")  # the name that Telegram shows for the user
    language = UnicodeAttribute()  # of the user's Telegram: ru or en
    linked_at = UTCDateTimeAttribute()

    @property
    def workspace_id(self) -> str:
        return self.pk.split("#")[1]

    @property
    def account_id(self) -> str:
        return self.sk


class TelegramChatRow(ContentRow):
    """Entry of a link under its chat. It belongs to the platform, as a chat has no workspace."""


class TelegramCodeRow(ControlRow):
    """A code, stored under its hash, and the chat that used the code."""

    workspace_id = UnicodeAttribute()
    account_id = UnicodeAttribute()
    chat_id = NumberAttribute(null=True)


class Membership(NamedTuple):
    """A membership that a chat is linked to."""

    workspace_id: str
    account_id: str


def find(workspace_id: str, *, account_id: str) -> TelegramLinkRow | None:
    """Return the link of a member, or None."""
    return TelegramLinkRow.find(_workspace_partition(workspace_id), account_id)


def read_memberships(chat_id: int) -> list[Membership]:
    """Return the memberships that a chat is linked to."""
    rows = TelegramChatRow.partition(_chat_partition(chat_id))
    return [Membership(*row.sk.split("#")) for row in rows]


def stage_link(
    unit: UnitOfWork, account_id: str, chat_id: int, name: str, *, language: str
) -> None:
    """Stage the link of a member to a chat. It replaces the member's former link."""
    link = find(unit.tenant, account_id=account_id)
    if link is not None and link.chat_id != chat_id:
        # The former chat must not receive what the member's new chat gets.
        unit.delete(_chat_row(int(link.chat_id), unit.tenant, account_id=account_id))
    row = link or TelegramLinkRow(_workspace_partition(unit.tenant), account_id)
    row.chat_id, row.name, row.language = chat_id, name, language
    row.linked_at = clock.now()
    unit.save(row)
    unit.save(_chat_row(chat_id, unit.tenant, account_id=account_id))


def stage_end(unit: UnitOfWork, link: TelegramLinkRow) -> None:
    """Stage the end of a link."""
    unit.delete(link)
    unit.delete(_chat_row(int(link.chat_id), link.workspace_id, account_id=link.account_id))


def code_row(code: str, *, workspace_id: str, account_id: str) -> TelegramCodeRow:
    """Return the row of a new code, for the caller to stage."""
    return TelegramCodeRow(
        _code_partition(code),
        SORT_KEY,
        workspace_id=workspace_id,
        account_id=account_id,
        expires=clock.now() + CODE_LIFE,
    )


def find_code(code: str) -> TelegramCodeRow | None:
    """Return a code, used or not, or None if it is unknown or has expired."""
    row = TelegramCodeRow.find(_code_partition(code), SORT_KEY)
    # DynamoDB deletes expired rows late.
    return row if row is not None and row.expires > clock.now() else None


def stage_use(unit: UnitOfWork, code: TelegramCodeRow, chat_id: int) -> None:
    """Stage the use of a code by a chat. Of several chats, one commits."""
    unit.update(
        code, [TelegramCodeRow.chat_id.set(chat_id)], TelegramCodeRow.chat_id.does_not_exist()
    )


def _chat_row(chat_id: int, workspace_id: str, *, account_id: str) -> TelegramChatRow:
    return TelegramChatRow(_chat_partition(chat_id), f"{workspace_id}#{account_id}")


def _workspace_partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#TELEGRAM"


def _chat_partition(chat_id: int) -> str:
    return f"W#{PLATFORM}#TELEGRAM_CHAT#{chat_id}"


def _code_partition(code: str) -> str:
    digest = hashlib.sha256(code.encode(errors="replace")).hexdigest()
    return f"W#{PLATFORM}#TELEGRAM_CODE#{digest}"
