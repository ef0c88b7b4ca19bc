"""Send e-mail through one function, ``send``. Callers check ``is_on`` first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import refuse_from_test

if TYPE_CHECKING:
    from chalicelib.lib.markup.mails import RenderedMail  # callers render; imports are dear


class Attachment(NamedTuple):
    """A file of an e-mail."""

    name: str
    media_type: str  # with parameters: ``text/calendar; method=REQUEST``
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """An e-mail to one recipient. Control characters are removed from the subject and the names."""

    # The same at each attempt to send the e-mail: 1 to 200 ASCII letters, digits, ``-`` and ``_``.
    id: str
    recipient: str
    content: "RenderedMail"
    # The workspace whose event, member or visitor causes it, or ``PLATFORM``. That of a test
    # workspace is never sent.
    origin: str
    sender_name: str = ""  # shown as "{name} via {service}", or if empty, as the service's name
    reply_to: str | None = None
    attachments: Sequence[Attachment] = field(default=())
    unsubscribe_url: str | None = None  # requested with POST (RFC 8058)
    # Set for an e-mail to a visitor: bounces and complaints count for the workspace, by the
    # ``cause`` of the e-mail.
    workspace_id: str | None = None
    cause: str | None = None
    # Only the recipient may read the content, because its link proves the recipient's address.
    is_secret: bool = False


class MailError(Exception):
    """An e-mail was not sent. The message is for the log.

    It contains neither an address nor the server's response, which may repeat the address.
    """


class MailRefusedError(MailError):
    """The recipient or the content was refused permanently. Do not send this e-mail again."""


class MailDelayedError(MailError):
    """The e-mail may be sent later. ``retry_after`` is the wait in seconds, if it is known."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def is_on() -> bool:
    """Whether the operator has set up mail."""
    return settings().mail != "off"


def takes(address: str) -> bool:
    """Whether the gateway accepts an address. SES takes only ASCII before the at sign."""
    # An SMTP server may take any address (RFC 6531). Only its response shows that.
    return settings().mail != "ses" or address.rpartition("@")[0].isascii()


def send(mail: Mail) -> None:
    """Send an e-mail.

    If the server's response is lost, ``MailDelayedError`` is raised, and the recipient may get the
    e-mail twice. Both copies have the same Message-ID, except from SES, which replaces it.

    Raises:
        MailRefusedError: the e-mail will never be accepted.
        MailDelayedError: the server is busy, cannot be reached, or refuses this service.
        NotConfiguredError: mail is off.
        ValueError: an id, the unsubscribe URL or an attachment's type is malformed.
        InTestWorkspaceError: a test workspace causes the e-mail.
    """
    from chalicelib.gateways.mail import message

    refuse_from_test(mail.origin)
    current = settings()
    if current.mail == "off":
        raise NotConfiguredError("E-mail is switched off. The operator can set MAIL.", key="mail")
    raw = message.build(mail, current.mail_from)
    match current.mail:  # Load only the provider in use.
        case "ses":
            from chalicelib.gateways.mail import ses as provider
        case "smtp":
            from chalicelib.gateways.mail import smtp as provider  # type: ignore[no-redef]
        case "file":
            from chalicelib.gateways.mail import folder as provider  # type: ignore[no-redef]
    provider.send(raw)
