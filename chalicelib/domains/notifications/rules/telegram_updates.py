"""Commands that people send to the Telegram bot, and the texts of its responses."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from chalicelib.lib import po_files
from chalicelib.lib.localized import Language

MAX_ID = 2**52  # of a chat, with at most 52 significant bits (Bot API, Chat)
MAX_NAME = 64  # of a user, as it is kept
# Folder of the PO files, with one folder per language, also for the catalogues of messages.
LOCALE = Path(__file__).parents[1] / "rules" / "locale"
Command = Literal["start", "stop", "other"]
Answer = Literal["linked", "wrong_code", "too_many_codes", "stopped", "help"]


class Message(NamedTuple):
    """A message that a user sends to the bot in a private chat."""

    update_id: int
    chat_id: int
    command: Command
    argument: str  # what follows the command, such as a code
    language: Language
    name: str  # the name that Telegram shows for the user


def parse(update: object) -> Message | None:
    """Return the message of an update, or None for all other updates, such as those of groups."""
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
            language: Language = (
                "ru" if str(person.get("language_code")).lower().startswith("ru") else "en"
            )
            return Message(update_id, chat_id, command, argument, language, _name(person))
    return None


def text(language: Language, answer: Answer, **values: str) -> str:
    """Return an answer, with values in its placeholders."""
    return str(_catalogue(language).texts[answer]).format(**values)


def _command(text: object) -> tuple[Command, str]:
    words = text.split(maxsplit=1) if isinstance(text, str) else []
    argument = words[1].strip() if len(words) > 1 else ""
    match words[:1]:
        case ["/start"] if argument:
            return "start", argument
        case ["/stop"]:
            return "stop", ""
    return "other", ""


def _name(person: Mapping[Any, Any]) -> str:
    if username := person.get("username"):
        return f"@{username}"[:MAX_NAME]
    names = filter(None, (person.get("first_name"), person.get("last_name")))
    return " ".join(map(str, names))[:MAX_NAME]


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "telegram")
