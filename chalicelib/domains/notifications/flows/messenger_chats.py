"""Carry out the commands that people send to the bots at messengers."""

from collections import defaultdict
from functools import partial
from typing import NamedTuple

from chalicelib.core.errors import RateLimitedError
from chalicelib.core.messengers import Messenger
from chalicelib.core.principals import PLATFORM
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.clients.store import client_chats as client_links
from chalicelib.domains.clients.store.client_chats import Chat, LinkPlace
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.notifications.flows import (
    client_chats,
    gone_chats,
    telegram_chats,
    updates_once,
)
from chalicelib.domains.notifications.flows.updates_once import RefusedCodeError, Stage, once
from chalicelib.domains.notifications.rules.messenger_updates import (
    STOP_ALL,
    Answer,
    Message,
    parse,
    stop_mark,
    text,
)
from chalicelib.domains.notifications.store import telegram_links
from chalicelib.engine.unit import UnitOfWork

MAX_CHOICES = 30  # workspaces in the answer to ``/stop``


class Reply(NamedTuple):
    """The bot's answer to a chat."""

    chat_id: int
    text: str


class _Links(NamedTuple):
    """What a chat is linked to in one workspace."""

    account_ids: list[str]
    places: list[LinkPlace]


def receive(messenger: Messenger, update: object) -> Reply | None:
    """Carry out an update of a messenger, and return the answer to its chat, or None without one.

    The webhooks and the development server pass updates to it. After UnavailableError, the
    messenger repeats the update.
    """
    message = parse(messenger, update)
    if message is None:
        return None
    chat = Chat(messenger, message.chat_id)
    if message.command == "left":
        gone_chats.end_links(chat)
        return None
    try:
        answer = _answer(chat, message)
    except RateLimitedError:
        answer = _text(message, "too_many_codes")
    return Reply(message.chat_id, answer)


def _answer(chat: Chat, message: Message) -> str:
    match message.command:
        case "start":
            return _start(chat, message)
        case "stop":
            return _stop(chat, message)
    return _text(message, "help")


def _text(message: Message, answer: Answer, **values: str) -> str:
    return text(message.language, answer, **values)


def _start(chat: Chat, message: Message) -> str:
    # An unknown code and a refused one give the same answer, so a guess reveals nothing.
    try:
        return _link_member(chat, message) or _link_client(chat, message) or _wrong(chat, message)
    except RefusedCodeError:
        return _wrong(chat, message)


def _link_member(chat: Chat, message: Message) -> str | None:
    code = telegram_links.find_code(message.argument) if chat.messenger == "telegram" else None
    if code is None:
        return None
    event = _event(telegram_chats.LINK, f"account:{code.account_id}", code.account_id)
    stage: Stage = partial(telegram_chats.stage_link, chat, message)
    return once(chat, message, code.workspace_id, code.account_id, event=event, stage=stage)


def _link_client(chat: Chat, message: Message) -> str | None:
    code = client_links.find_code(message.argument)
    if code is None:
        return None
    event = _event(client_chats.LINK, f"client:{code.client_id}")
    stage: Stage = partial(client_chats.stage_link, chat, message)
    return once(chat, message, code.workspace_id, code.client_id, event=event, stage=stage)


def _wrong(chat: Chat, message: Message) -> str:
    def stage(unit: UnitOfWork) -> str:
        updates_once.stage_wrong_code(unit, chat)
        return _text(message, "wrong_code")

    return once(chat, message, PLATFORM, "", event=None, stage=stage)


def _stop(chat: Chat, message: Message) -> str:
    links = _links(chat)
    match message.argument:
        case "" if len(links) > 1:
            return _choices(message, links)
        case "" | "all":
            chosen = links
        case mark:
            chosen = {each: links[each] for each in links if stop_mark(each) == mark}
            if not chosen and links:  # An old choice must not end another one.
                return _choices(message, links)
    for workspace_id, of_workspace in chosen.items():
        _end(chat, message, workspace_id, of_workspace)
    if len(chosen) == 1 and not next(iter(chosen.values())).account_ids:
        (workspace_id,) = chosen
        return _text(message, "client_stopped", workspace=workspaces.get(workspace_id).name)
    return _text(message, "stopped")


def _links(chat: Chat) -> dict[str, _Links]:
    found: defaultdict[str, _Links] = defaultdict(lambda: _Links([], []))
    if chat.messenger == "telegram":
        for workspace_id, account_id in telegram_links.read_memberships(chat.chat_id):
            found[workspace_id].account_ids.append(account_id)
    for place in client_links.of_chat(chat):
        found[place.workspace_id].places.append(place)
    return dict(found)


def _choices(message: Message, links: dict[str, _Links]) -> str:
    lines = [
        _text(
            message,
            "choose_one",
            workspace=workspaces.get(workspace_id).name,
            command=f"/stop_{stop_mark(workspace_id)}",
        )
        for workspace_id in list(links)[:MAX_CHOICES]
    ]
    every = _text(message, "choose_all", command=f"/stop_{STOP_ALL}")
    return "\n".join([_text(message, "choose"), *lines, every])


def _end(chat: Chat, message: Message, workspace_id: str, links: _Links) -> None:
    for account_id in links.account_ids:
        event = _event(telegram_chats.UNLINK, f"account:{account_id}", account_id)
        stage: Stage = partial(gone_chats.stage_end_of_member, account_id, chat.chat_id)
        once(chat, message, workspace_id, account_id, event=event, stage=stage)
    for place in links.places:
        event = _event(client_chats.UNLINK, f"client:{place.client_id}")
        stage = partial(_stage_end, chat, place)
        subject = f"{place.client_id}#{place.booking_id or ''}"
        once(chat, message, workspace_id, subject, event=event, stage=stage)


def _stage_end(chat: Chat, place: LinkPlace, unit: UnitOfWork) -> str:
    client_links.stage_end_of_chat(unit, chat, place)
    return ""


def _event(operation: str, resource: str, actor: str = "visitor") -> AuditEvent:
    return AuditEvent(operation, actor, resources=(resource,))
