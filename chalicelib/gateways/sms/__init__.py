"""Send SMS through one function, ``send``, and ask what has become of them.

No provider has an idempotency key for SMS. After ``SmsUnknownError`` an SMS may have been sent, so
the caller does not send it again: a second one costs money and reaches the client twice.
"""

import hashlib
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import refuse_from_test
from chalicelib.gateways.secrets_manager import UnreadableSecretError, value_of

SECONDS = 10.0  # of a request

Delivery = Literal["waiting", "delivered", "undelivered"]


class Accepted(NamedTuple):
    """An SMS that a provider has accepted, and charges for."""

    provider_id: str
    segments: int | None = None  # if the provider counts them in its response


class SmsError(Exception):
    """An SMS was not sent, or may not have been. The message is for the log.

    It contains neither the number nor the text, and no key.
    """


class SmsRefusedError(SmsError):
    """The provider has refused the SMS. It was not sent, and another attempt fails as well.

    ``by_account`` is set if the provider refuses every SMS of the operator for now, such as for a
    wrong key, an unknown sender or a lack of money at the provider.
    """

    def __init__(self, reason: str, *, by_account: bool = False) -> None:
        super().__init__(reason)
        self.by_account = by_account


class SmsBusyError(SmsError):
    """The SMS was not sent, and may be sent after ``retry_after`` seconds, if they are known."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class SmsUnknownError(SmsError):
    """The response was lost, so the SMS may have been sent. Do not send it again."""


class Provider(Protocol):
    """What an adapter of a provider does. Numbers are in E.164."""

    def send(self, number: str, text: str, message_id: str) -> Accepted:
        """Send an SMS. Raises as the function ``send``."""

    def find_lost(self, number: str, text_hash: str, since: datetime) -> Accepted | None:
        """Return an SMS that was sent at ``since`` or later and whose response was lost, or None.

        ``text_hash`` is ``hash_of`` its text. Raises SmsBusyError if the provider does not tell.
        """

    def delivery(self, provider_id: str) -> Delivery:
        """Return whether an SMS has arrived. Raises SmsBusyError if the provider does not tell."""


def is_on() -> bool:
    """Whether the operator has set up SMS."""
    return settings().sms != "off"


def send(number: str, text: str, *, message_id: str, origin: str) -> Accepted:
    """Send an SMS to a number in E.164.

    ``origin`` is the workspace that causes it, or ``PLATFORM``. ``message_id`` is the same at each
    attempt.

    Raises:
        InTestWorkspaceError: a test workspace causes the SMS.
        SmsRefusedError: the SMS was refused.
        SmsBusyError: the SMS was not sent, and may be sent later.
        SmsUnknownError: the SMS may have been sent.
        NotConfiguredError: SMS are off.
    """
    refuse_from_test(origin)
    return provider().send(number, text, message_id)


def provider() -> Provider:
    """Return the operator's provider. Raises NotConfiguredError if SMS are off."""
    match settings().sms:  # Load only the provider in use.
        case "smsru":
            from chalicelib.gateways.sms.smsru import SmsRu

            return SmsRu()
        case "twilio":
            from chalicelib.gateways.sms.twilio import Twilio

            return Twilio()
        case "file":
            from chalicelib.gateways.sms.folder import Folder

            return Folder()
    raise NotConfiguredError("SMS are switched off. The operator can set SMS.", key="sms")


def hash_of(text: str) -> str:
    """Return the hash by which a text is recognized that is not stored."""
    return hashlib.sha256(text.encode()).hexdigest()


def key() -> str:
    """Return the operator's key at the provider.

    Raises:
        SmsBusyError: the secret with the key cannot be read.
        SmsRefusedError: there is no key.
    """
    if value := _key():
        return value
    raise SmsRefusedError("there is no key of the SMS provider", by_account=True)


def _key() -> str:
    current = settings()
    try:
        return current.sms_key or value_of(current.sms_key_secret)
    except UnreadableSecretError as error:
        msg = f"the key of the SMS provider cannot be read: {error}"
        raise SmsBusyError(msg) from None
