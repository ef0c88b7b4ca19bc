"""Tokens of API and bot keys and of OAuth connections: a prefix, a base62 secret and a CRC32."""

import hashlib
import hmac
import secrets
import string
from base64 import urlsafe_b64encode
from zlib import crc32

PREFIX = "svc_live_"
TEST_PREFIX = "svc_test_"  # of keys of test workspaces
BOT_PREFIX = "svc_bot_"
# Tokens of a connection have its id in their prefix: ``wsat_<id>_`` for access tokens,
# ``wsrt_<id>_`` for refresh tokens, and ``wsac_<id>_`` for authorization codes.
ACCESS_PREFIX = "wsat_"
REFRESH_PREFIX = "wsrt_"
CODE_PREFIX = "wsac_"
OAUTH_PREFIXES = (ACCESS_PREFIX, REFRESH_PREFIX, CODE_PREFIX)
SECRET_LENGTH = 32  # base62 characters: 190.5 bits
# Base62 characters that begin the secrets of a connection's refresh tokens: 95 bits.
FAMILY_LENGTH = 16
# The checksum rejects a mistyped token without a database read.
CHECKSUM_LENGTH = 6
ID_LENGTH = 26  # characters of a ULID

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def generate(prefix: str = PREFIX) -> str:
    """Return a new token with a random secret."""
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(SECRET_LENGTH))
    return prefix + secret + _checksum(prefix + secret)


def generate_for(owner_id: str, *, prefix: str) -> str:
    """Return a new token whose prefix contains the id of its owner."""
    return generate(f"{prefix}{owner_id}_")


def successor(token: str, key: bytes) -> str:
    """Return the refresh token that replaces a well-formed one, and follows from it and the key."""
    # Only the holder of the key can compute the successor.
    digest = hmac.digest(key, f"oauth-refresh:{token}".encode(), "sha256")
    length = SECRET_LENGTH - FAMILY_LENGTH
    head = token[: -length - CHECKSUM_LENGTH]
    body = head + _base62(int.from_bytes(digest), length=length)[-length:]
    return body + _checksum(body)


def well_formed(token: str, *, prefix: str = PREFIX) -> bool:
    """Whether a token has the prefix, the length and the right checksum."""
    if not token.startswith(prefix) or len(token) != len(prefix) + SECRET_LENGTH + CHECKSUM_LENGTH:
        return False
    return token.isascii() and token.endswith(_checksum(token[:-CHECKSUM_LENGTH]))


def owner_id(token: str, *, prefix: str) -> str | None:
    """Return the id that a token contains, or None if the token is malformed."""
    owner = token[len(prefix) : len(prefix) + ID_LENGTH]
    return owner if owner.isalnum() and well_formed(token, prefix=f"{prefix}{owner}_") else None


def family(token: str) -> str:
    """Return the secret that a well-formed refresh token shares with others of its connection."""
    secret = token[-SECRET_LENGTH - CHECKSUM_LENGTH :]
    return secret[:FAMILY_LENGTH]


def digest(token: str) -> str:
    """Return the SHA-256 of a token, which is stored instead of the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def short_digest(text: str) -> str:
    """Return the SHA-256 of a token or an identifier in base64url, as 43 characters."""
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _checksum(text: str) -> str:
    return _base62(crc32(text.encode()), length=CHECKSUM_LENGTH)


def _base62(number: int, *, length: int) -> str:
    digits = ""
    while number:
        number, remainder = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[remainder] + digits
    return digits.rjust(length, _ALPHABET[0])
