"""Commands that people send to the bots at messengers, and the texts of the bots' responses.

Each messenger has its own updates. Both become a ``Message``, so what follows is the same.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chalicelib.core.messengers import Messenger
from chalicelib.lib import po_files
from chalicelib.lib.localized import Language

# Of a chat or a user: at most 52 significant bits (Telegram's Bot API, Chat). MAX has int64, whose
# ids of users are far below.
MAX_ID = 2**52
MAX_NAME = 64  # of a user, as it is kept
# Folder of the PO files, with one folder per language, also for the catalogues of messages.
LOCALE = Path(__file__).parents[1] / "rules" / "locale"
# ``left``: the user has stopped the bot, and so reads no response.
Command = Literal["start", "stop", "left", "other"]
Answer = Literal[
    "linked",
    "client_linked",
    "client_linked_booking",
    "wrong_code",
    "too_many_codes",
    "stopped",
    "client_stopped",
    "not_stopped",
    "choose",
    "choose_one",
    "choose_all",
    "help",
]
STOP_ALL = "all"
_STOP = re.compile(r"/stop(?:_([0-9a-z]{1,16}))?", re.ASCII)


class Message(NamedTuple):
    """A message that a user sends to the bot in a private chat."""

    update_key: str  # the same if the messenger repeats the update
    chat_id: int
    command: Command
    argument: str  # what follows the command: a code, or the mark of a workspace
    language: Language
    name: str  # the name that the messenger shows for the user


def parse(messenger: Messenger, update: object) -> Message | None:
    """Return the message of an update, or None for all other updates, such as those of groups."""
    return _PARSERS[messenger](update)


def stop_mark(workspace_id: str) -> str:
    """Return what follows ``/stop_`` to stop the messages of one workspace.

    >>> stop_mark("w")
    '50e721e4'
    """
    return hashlib.sha256(workspace_id.encode()).hexdigest()[:8]


def text(language: Language, answer: Answer, **values: str) -> str:
    """Return an answer, with values in its placeholders."""
    return str(_catalogue(language).texts[answer]).format(**values)


def _parse_telegram(update: object) -> Message | None:
    # A group is not a single user to link.
    match update:
        case {
            "update_id": int(update_id),
            "message": {
                "chat": {"id": int(chat_id), "type": "private"},
                "from": {"is_bot": False, **person},
                **message,
            },
        } if abs(chat_id) <= MAX_ID:
            command, argument = _command(message.get("text"))
            language = _language(person.get("language_code"), "en")
            return Message(str(update_id), chat_id, command, argument, language, _name(person))
    return None


def _parse_max(update: object) -> Message | None:
    # MAX writes to a user by the user's id. Its updates have no id of their own.
    match update:
        case {
            "update_type": "bot_started" | "bot_stopped" as kind,
            "timestamp": int(timestamp),
            "user": {"user_id": int(user_id), **person},
            **more,
        } if 0 < user_id <= MAX_ID and not person.get("is_bot"):
            key = f"{kind}-{timestamp}-{user_id}"
            language = _language(more.get("user_locale"), "ru")
            if kind == "bot_stopped":
                return Message(key, user_id, "left", "", language, _name(person))
            payload = more.get("payload")
            argument = payload.strip() if isinstance(payload, str) else ""
            command: Command = "start" if argument else "other"
            return Message(key, user_id, command, argument, language, _name(person))
        case {
            "update_type": "message_created",
            "message": {
                "sender": {"user_id": int(user_id), **person},
                "recipient": {"chat_type": "dialog"},
                "body": {"mid": str(key), **body},
            },
            **more,
        } if 0 < user_id <= MAX_ID and not person.get("is_bot"):
            command, argument = _command(body.get("text"))
            language = _language(more.get("user_locale"), "ru")
            return Message(key[:100], user_id, command, argument, language, _name(person))
    return None


_PARSERS: Mapping[Messenger, Callable[[object], Message | None]] = {
    "telegram": _parse_telegram,
    "max": _parse_max,
}


def _command(text: object) -> tuple[Command, str]:
    words = text.split(maxsplit=1) if isinstance(text, str) else []
    argument = words[1].strip() if len(words) > 1 else ""
    match words[:1]:
        case ["/start"] if argument:
            return "start", argument
        case [str(word)] if stop := _STOP.fullmatch(word):
            return "stop", stop[1] or ""
    return "other", ""


def _language(code: object, default: Language) -> Language:
    if not isinstance(code, str) or not code:
        return default
    return "ru" if code.lower().startswith("ru") else "en"


def _name(person: Mapping[Any, Any]) -> str:
    if username := person.get("username"):
        return f"@{username}"[:MAX_NAME]
    names = filter(None, (person.get("first_name"), person.get("last_name")))
    return " ".join(map(str, names))[:MAX_NAME]


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "messengers")
