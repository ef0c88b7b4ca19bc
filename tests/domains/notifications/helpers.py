"""Members who link Telegram chats, and Telegram as the sender of their messages."""

import itertools
import json
from typing import Any

from chalicelib.gateways import telegram as gateway
from tests.conftest import Answer, Api, Owner, call_console, call_operator
from tests.fakes.telegram import update

PATH = "/api/telegram/webhook"
LINKED = "This chat now receives messages"
WRONG = "This code is wrong"
STOPPED = "This chat no longer receives messages"
HELP = "create a code in the console"
_updates = itertools.count(100)
"""Telegram numbers updates in order. Tests give lower ids to earlier updates."""


def post(content: Any, secret: str | None = None) -> Answer:
    """Send an update to the webhook, as Telegram does unless ``secret`` is another one."""
    headers = {gateway.SECRET_HEADER: gateway.webhook_secret() if secret is None else secret}
    return Api(None).call("POST", PATH, content, headers)


def send_text(chat_id: int, text: str, **person: Any) -> str:
    """Send a message from a chat to the bot, and return the reply."""
    return answer_to(update(next(_updates), chat_id, text, **person))


def answer_to(content: dict[str, Any]) -> str:
    """Send an update that the bot replies to, and return the reply."""
    answer = post(content)
    assert answer.status == 200, answer.body
    body = json.loads(answer.body)
    assert body["method"] == "sendMessage"
    assert body["chat_id"] == content["message"]["chat"]["id"]
    return str(body["text"])


def new_code(owner: Owner, account_id: str | None = None, membership: str = "owner") -> str:
    """Create a code in the console."""
    account_id = account_id or owner.workspace.owner_id
    link = call_console(
        owner.workspace.id, "link_telegram", account_id=account_id, membership=membership
    )
    return str(link["code"])


def link(owner: Owner, chat_id: int, account_id: str | None = None) -> None:
    """Link a chat to a member; to the workspace's owner by default."""
    answer = send_text(chat_id, f"/start {new_code(owner, account_id)}")
    assert answer.startswith(LINKED)


def state(owner: Owner, account_id: str | None = None) -> Any:
    """Return the state of a member's link, as the console shows it."""
    account_id = account_id or owner.workspace.owner_id
    return call_console(owner.workspace.id, "get_telegram", account_id=account_id)


def is_linked(owner: Owner, account_id: str | None = None) -> bool:
    """Whether a member has a chat."""
    return bool(state(owner, account_id)["isLinked"])


def new_member(owner: Owner, email: str, role: str = "member") -> str:
    """Add a new account to a workspace, and return its id."""
    call_operator("create_account", email=email, password="correct horse")
    return str(
        call_operator("add_member", workspaceId=owner.workspace.id, email=email, role=role)[
            "accountId"
        ]
    )
