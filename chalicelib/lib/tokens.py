"""Tokens of API keys and of bot keys.

A token is ``svc_live_`` or ``svc_bot_``, a base62 secret and a CRC32. The checksum rejects a
mistyped key without a database read.
"""

import hashlib
import secrets
import string
from zlib import crc32

PREFIX = "svc_live_"
BOT_PREFIX = "svc_bot_"
SECRET_LENGTH = 32
"""Base62 characters: 190.5 bits."""
CHECKSUM_LENGTH = 6

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def generate(prefix: str = PREFIX) -> str:
    """Return a new token."""
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(SECRET_LENGTH))
    return prefix + secret + _checksum(prefix + secret)


def well_formed(token: str, prefix: str = PREFIX) -> bool:
    """Whether a token has the prefix, the length and the right checksum."""
    if not token.startswith(prefix) or len(token) != len(prefix) + SECRET_LENGTH + CHECKSUM_LENGTH:
        return False
    return token.isascii() and token.endswith(_checksum(token[:-CHECKSUM_LENGTH]))


def digest(token: str) -> str:
    """Return the SHA-256 of a token. Only this digest is stored, never the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(text: str) -> str:
    number, digits = crc32(text.encode()), ""
    while number:
        number, rest = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[rest] + digits
    return digits.rjust(CHECKSUM_LENGTH, _ALPHABET[0])
