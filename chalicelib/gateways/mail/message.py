"""Build the MIME message of an e-mail. Headers with user input are encoded here.

The folding of the standard library loses quotes and decodes encoded words in some versions of
Python, which would allow a name to become a second address (CVE-2024-6923, CVE-2025-1795).
"""

import re
from email.header import Header
from email.headerregistry import HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.core.text import one_line, unlinked
from chalicelib.gateways.mail import Attachment, Mail, MailRefusedError
from chalicelib.lib import emails

MAX_SUBJECT = 200  # characters
MAX_NAME = 64  # characters
MAX_URL = 900  # characters; a line of an e-mail has at most 998 bytes (RFC 5322, 2.1.1)
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
_URL = re.compile(r"https?://[!-;=?-~]+")
_MEDIA_TYPE = re.compile(r'[\w.+-]+/[\w.+-]+(; *[\w-]+="?[\w./+-]+"?)*', re.ASCII)


class RawMail(NamedTuple):
    """An e-mail as it is sent, with the addresses, its ids, and the bytes of the message."""

    id: str
    sender: str
    recipient: str
    content: bytes
    workspace_id: str | None
    cause: str | None = None


class _Verbatim(UnstructuredHeader):
    name: str

    @classmethod
    def parse(cls, value: str, kwds: dict[str, Any]) -> None:
        kwds["decoded"], kwds["parse_tree"] = value, None

    def fold(self, *, policy: Any) -> str:  # noqa: ANN401, ARG002  the library's
        # A line for each encoded word.
        return f"{self.name}: {self}\r\n".replace("?= =?", "?=\r\n =?")


_REGISTRY: Any = HeaderRegistry()
for _name in ("From", "To", "Reply-To", "Subject", "Message-ID", "List-Unsubscribe"):
    _REGISTRY.map_to_type(_name, _Verbatim)
_POLICY = SMTP.clone(header_factory=_REGISTRY, cte_type="7bit")


def build(mail: Mail, sender: str) -> RawMail:
    """Return an e-mail as a MIME message, or raise MailRefusedError or ValueError."""
    _checked_id(mail.id, name="id")
    recipient = _address(mail.recipient)
    # Mail programs turn host names into links. A name of a workspace must not become one.
    name = unlinked(_line(mail.sender_name, MAX_NAME))
    product = unlinked(_line(settings().product_name, MAX_NAME))
    message = EmailMessage(_POLICY)
    message["From"] = f"{_phrase(f'{name} via {product}' if name else product)} <{sender}>"
    message["To"] = recipient
    if mail.reply_to is not None:
        message["Reply-To"] = _address(mail.reply_to)
    message["Subject"] = _words(_line(mail.content.subject, MAX_SUBJECT), header="Subject")
    message["Date"] = clock.now()
    message["Message-ID"] = f"<{mail.id}@{sender.rpartition('@')[2]}>"
    # Automatic replies must not be sent to an automatic e-mail (RFC 3834, 5).
    message["Auto-Submitted"] = "auto-generated"
    if mail.workspace_id is not None:
        message["X-Workspace-Id"] = _checked_id(mail.workspace_id, name="workspace_id")
    if mail.unsubscribe_url is not None:
        message["List-Unsubscribe"] = f"<{_checked_url(mail.unsubscribe_url)}>"
        # Gmail and Yahoo require this header for the button that unsubscribes (RFC 8058, 3.1).
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message.set_content(_encodable(mail.content.text))
    message.add_alternative(_encodable(mail.content.html), subtype="html")
    for attachment in mail.attachments:
        _attach(message, attachment)
    ascii_only = all(str(message[name]).isascii() for name in ("To", "Reply-To"))
    # A recipient whose local part is not ASCII needs UTF-8 headers (RFC 6532).
    policy = _POLICY if ascii_only else _POLICY.clone(utf8=True)
    content = message.as_bytes(policy=policy)
    return RawMail(mail.id, sender, recipient, content, mail.workspace_id, mail.cause)


def _address(text: str) -> str:
    email = emails.find_email(text)
    if email is None:
        raise MailRefusedError("A recipient or reply address is no e-mail address.")
    return emails.mailbox(email)


def _line(text: str, limit: int) -> str:
    return one_line(_encodable(text), limit)


def _encodable(text: str) -> str:
    # Lone surrogates have no encoding.
    return text.replace("\0", "").encode(errors="ignore").decode()


def _words(text: str, *, header: str) -> str:
    # An ASCII string that contains "=?" would be decoded as an encoded word (RFC 2047).
    if text.isascii() and "=?" not in text:
        return text
    return Header(text, "utf-8", header_name=header).encode(linesep="")


def _phrase(name: str) -> str:
    if name.isascii() and "=?" not in name:
        return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'
    return _words(name, header="From")


def _checked_id(text: str, *, name: str) -> str:
    if not _ID.fullmatch(text):
        msg = f"{name}: expected 1 to 200 of A-Z a-z 0-9 _ -, received {text!r}"
        raise ValueError(msg)
    return text


def _checked_url(url: str) -> str:
    if not _URL.fullmatch(url) or len(url) > MAX_URL:
        msg = f"unsubscribe_url: expected an absolute ASCII URL of at most {MAX_URL} characters"
        raise ValueError(msg)
    return url


def _attach(message: EmailMessage, attachment: Attachment) -> None:
    if not _MEDIA_TYPE.fullmatch(attachment.media_type):
        msg = f"media_type: expected one such as text/calendar, received {attachment.media_type!r}"
        raise ValueError(msg)
    kind = _REGISTRY("Content-Type", attachment.media_type)
    message.add_attachment(
        attachment.content,
        maintype=kind.maintype,
        subtype=kind.subtype,
        filename=re.sub(r'[/\\"]', "_", _line(attachment.name, MAX_NAME)) or "attachment",
        params=dict(kind.params),
    )
