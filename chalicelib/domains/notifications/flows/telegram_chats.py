"""Link Telegram chats to members by a code, and send messages to these chats."""

from datetime import datetime
from functools import partial

from chalicelib.core.test_workspaces import is_test
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.clients.store.client_chats import Chat
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.mails.store import kept_messages
from chalicelib.domains.notifications.flows import gone_chats, updates_once
from chalicelib.domains.notifications.flows.updates_once import RefusedCodeError
from chalicelib.domains.notifications.rules.messenger_updates import Message, text
from chalicelib.domains.notifications.store import telegram_links
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import telegram
from chalicelib.gateways.messenger_errors import ChatGoneError

# Names in the audit log, which are the names of the console's operations.
LINK, UNLINK = "link_telegram", "unlink_telegram"


def deliver(workspace_id: str, *, chat_id: int, text: str) -> bool:
    """Send a workspace's message to a chat. If the chat is gone, remove its links, return False.

    The message of a test workspace is kept instead.

    Raises:
        BusyError: the bot has sent too much; see ``retry_after``.
        MessengerError: another failure, after which the message may have been sent.
        NotConfiguredError: the bot is not configured.
    """
    if is_test(workspace_id):
        kept_messages.keep(
            workspace_id, channel="telegram", recipient=str(chat_id), subject=None, text=text
        )
        return True
    try:
        telegram.send(chat_id, text, origin=workspace_id)
    except ChatGoneError:
        gone_chats.end_links(Chat("telegram", chat_id))
        return False
    return True


def stage_link(chat: Chat, message: Message, unit: UnitOfWork) -> str:
    """Stage the link of a member by the code of a message, or raise RefusedCodeError."""
    # A chat that has sent too many wrong codes may not try further ones.
    updates_once.check_wrong_codes(chat)
    code = telegram_links.find_code(message.argument)
    if code is None:
        raise RefusedCodeError
    account_id = code.account_id
    workspace_name = workspaces.get(unit.tenant).name
    linked = text(message.language, "linked", workspace=workspace_name)
    if code.chat_id is not None:  # The user may have followed the link twice.
        link = telegram_links.find(unit.tenant, account_id=account_id)
        if link is None or not link.chat_id == code.chat_id == chat.chat_id:
            raise RefusedCodeError
        return linked
    membership = workspaces.membership(account_id, workspace_id=unit.tenant)
    if membership is None or accounts.is_disabled(account_id):
        raise RefusedCodeError
    # A membership that ends in the meantime ends before the link is made, or its job removes the
    # link.
    unit.require(membership)
    unit.require(accounts.row(account_id), AccountRow.disabled_at.does_not_exist())
    telegram_links.stage_use(unit, code, chat.chat_id)
    telegram_links.stage_link(
        unit, account_id, chat.chat_id, message.name, language=message.language
    )
    return linked


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
        stage = partial(gone_chats.stage_end_of_member, link.account_id, int(link.chat_id))
        run_unit(workspace_id, AuditEvent.by_job(MEMBERSHIP_ENDED), stage)
