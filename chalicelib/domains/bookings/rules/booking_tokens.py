"""Sign tokens that permit a visitor one action on one booking, such as its cancellation.

A token is signed for one purpose with a secret that is stored with the booking, so the token of a
calendar file cannot cancel it. The secret is deleted when the client is erased, and all tokens of
the booking become invalid.
"""

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from typing import NamedTuple

from ulid import ULID

SECRET_BYTES = 16
_ID_BYTES = 16
_SIGNATURE_BYTES = 16
SHORT_LENGTH = 11  # base64 characters of the code of a short URL: 64 bits
LENGTH = 64  # characters: base64 of two ids and a signature


class Purpose(StrEnum):
    CANCEL = "cancel"
    CALENDAR = "calendar"
    # Book what a visitor has requested. Only an e-mail to the requester's address contains it. Its
    # second id is the id of the request.
    BOOK = "book"
    # Show the booking, move it and cancel it. Only e-mails to its client, with their calendar file,
    # and the page that confirms the booking contain this token.
    MANAGE = "manage"
    # As ``MANAGE``, but a cancellation refunds nothing. Callers with a key get this token, because
    # no key may move money.
    SHARED = "shared"
    # Show what the booking costs, and pay it. It permits nothing else.
    PAY = "pay"
    # Read the calendar of a resource, or of the whole business. The second id is the id of the
    # resource, or of the workspace. The secret is stored with the link (``schedule.store``).
    FEED = "feed"
    # The code of a short URL in an SMS, which leads to the page of ``MANAGE``.
    SHORT = "short"


class BookingToken(NamedTuple):
    """A parsed token. ``is_for`` verifies its signature with the booking's secret."""

    workspace_id: str
    booking_id: str
    signature: bytes

    def is_for(self, purpose: Purpose, secret: str | None) -> bool:
        if not secret:
            return False
        expected = _signature(
            self.workspace_id, booking_id=self.booking_id, purpose=purpose, secret=secret
        )
        return hmac.compare_digest(self.signature, expected)


def new_secret() -> str:
    """Return a random secret for a new booking, in hexadecimal."""
    return secrets.token_hex(SECRET_BYTES)


def token(workspace_id: str, *, booking_id: str, purpose: Purpose, secret: str) -> str:
    """Return the token of a booking for a purpose."""
    signature = _signature(workspace_id, booking_id=booking_id, purpose=purpose, secret=secret)
    ids = ULID.from_str(workspace_id).bytes + ULID.from_str(booking_id).bytes
    return urlsafe_b64encode(ids + signature).decode()


def read(text: str) -> BookingToken | None:
    """Return a parsed token, or None if the string has another format."""
    if len(text) != LENGTH:
        return None
    try:
        raw = urlsafe_b64decode(text.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error):
        return None
    if len(raw) != 2 * _ID_BYTES + _SIGNATURE_BYTES or urlsafe_b64encode(raw).decode() != text:
        return None
    workspace, booking = (str(ULID.from_bytes(raw[n : n + _ID_BYTES])) for n in (0, _ID_BYTES))
    return BookingToken(workspace, booking, raw[2 * _ID_BYTES :])


def short_code(workspace_id: str, *, booking_id: str, secret: str) -> str:
    """Return the code of a booking's short URL. Without its stored row, it names no booking."""
    signature = _signature(
        workspace_id, booking_id=booking_id, purpose=Purpose.SHORT, secret=secret
    )
    return urlsafe_b64encode(signature).decode()[:SHORT_LENGTH]


def is_short_code(text: str) -> bool:
    """Whether a text has the form of the code of a short URL."""
    return re.fullmatch(rf"[\w-]{{{SHORT_LENGTH}}}", text, re.ASCII) is not None


def _signature(workspace_id: str, *, booking_id: str, purpose: Purpose, secret: str) -> bytes:
    signed = f"{purpose}\0{workspace_id}\0{booking_id}".encode()
    return hmac.digest(bytes.fromhex(secret), signed, hashlib.sha256)[:_SIGNATURE_BYTES]
