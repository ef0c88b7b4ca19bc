"""Tokens that visitors hold: each opens one thing of one booking, such as its cancellation.

A token names its workspace and booking, and is signed for one purpose with a secret that the
booking keeps: the address of a calendar file cannot cancel, and without its secret, which goes when
a client is erased, a booking has no token at all.
"""

import binascii
import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from enum import StrEnum
from typing import NamedTuple

from ulid import ULID

SECRET_BYTES = 16
_ID_BYTES = 16
_SIGNATURE_BYTES = 16
LENGTH = 64
"""Characters of a token: base64 of two ids and a signature."""


class Purpose(StrEnum):
    """What a token opens."""

    CANCEL = "cancel"
    CALENDAR = "calendar"


class BookingToken(NamedTuple):
    """A token as it was read; that it is genuine, only the booking's secret can tell."""

    workspace_id: str
    booking_id: str
    signature: bytes

    def is_for(self, purpose: Purpose, secret: str | None) -> bool:
        """Whether the token was made for a purpose with a booking's secret."""
        if not secret:
            return False
        expected = _signature(self.workspace_id, self.booking_id, purpose, secret)
        return hmac.compare_digest(self.signature, expected)


def new_secret() -> str:
    """Return the secret of a new booking."""
    return secrets.token_hex(SECRET_BYTES)


def token(workspace_id: str, booking_id: str, purpose: Purpose, secret: str) -> str:
    """Return the token of a booking for a purpose."""
    signature = _signature(workspace_id, booking_id, purpose, secret)
    ids = ULID.from_str(workspace_id).bytes + ULID.from_str(booking_id).bytes
    return urlsafe_b64encode(ids + signature).decode()


def read(text: str) -> BookingToken | None:
    """Return what a token names, or None if it is not one."""
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


def _signature(workspace_id: str, booking_id: str, purpose: Purpose, secret: str) -> bytes:
    signed = f"{purpose}\0{workspace_id}\0{booking_id}".encode()
    return hmac.digest(bytes.fromhex(secret), signed, hashlib.sha256)[:_SIGNATURE_BYTES]
