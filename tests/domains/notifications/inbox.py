"""Emails to members and their choices, for tests of messages."""

import email
import re
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from tests.conftest import Owner, call_console


class Inbox:
    """Emails in the folder of the provider ``file``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def mails(self) -> list[EmailMessage]:
        return [
            email.message_from_bytes(path.read_bytes(), policy=default)  # type: ignore[misc]
            for path in sorted(self.folder.glob("*.eml"))
        ]

    @property
    def subjects(self) -> list[str]:
        return sorted(str(message["Subject"]) for message in self.mails)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the messages to members, from their links to unsubscribe."""
        links = " ".join(str(message["List-Unsubscribe"]) for message in self.mails)
        return sorted(re.findall(r"/unsubscribe/\w+\.\w+\.(\w+)\.", links))

    def clear(self) -> None:
        for path in self.folder.glob("*.eml"):
            path.unlink()

    def only(self) -> EmailMessage:
        (message,) = self.mails
        return message


def text_of(message: EmailMessage, kind: str = "plain") -> str:
    """Return the plain part of an email, or the HTML part with kind ``html``."""
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def choose(
    owner: Owner, account_id: str, membership: str, language: str = "en", **kinds: list[str]
) -> None:
    """Set the channels of each message kind for a member."""
    choices = [
        {"kind": kind, "mail": "mail" in channels, "telegram": "telegram" in channels}
        for kind, channels in kinds.items()
    ]
    call_console(
        owner.workspace.id,
        "set_notifications",
        account_id=account_id,
        membership=membership,
        language=language,
        choices=choices,
    )
