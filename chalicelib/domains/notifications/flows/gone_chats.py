"""End all links of a chat that takes no more messages, as they are of no use to any workspace."""

from functools import partial

from chalicelib.core.unit import AuditEvent
from chalicelib.domains.clients.store import client_chats
from chalicelib.domains.clients.store.client_chats import Chat
from chalicelib.domains.notifications.store import telegram_links
from chalicelib.engine.unit import UnitOfWork, run_unit


def end_links(chat: Chat) -> None:
    """End the links of a chat to members and to clients. It may run more than once."""
    if chat.messenger == "telegram":
        for workspace_id, account_id in telegram_links.read_memberships(chat.chat_id):
            event = AuditEvent("unlink_telegram", "job", resources=(f"account:{account_id}",))
            run_unit(workspace_id, event, partial(stage_end_of_member, account_id, chat.chat_id))
    for place in client_chats.of_chat(chat):
        event = AuditEvent("unlink_client_chat", "job", resources=(f"client:{place.client_id}",))
        stage = partial(client_chats.stage_end_of_chat, chat=chat, place=place)
        run_unit(place.workspace_id, event, stage)


def stage_end_of_member(account_id: str, chat_id: int, unit: UnitOfWork) -> str:
    """Stage the end of a member's link, unless the member has linked another chat by now."""
    link = telegram_links.find(unit.tenant, account_id=account_id)
    if link is not None and link.chat_id == chat_id:
        telegram_links.stage_end(unit, link)
    return ""
