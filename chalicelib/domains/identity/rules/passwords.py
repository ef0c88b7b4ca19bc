"""Hash and check passwords with argon2id, in constant time (RFC 9106)."""

from functools import cache
from secrets import token_urlsafe
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher


@cache
def hasher() -> "PasswordHasher":
    """Return the hasher, with argon2-cffi's defaults (RFC 9106, low-memory profile)."""
    from argon2 import PasswordHasher

    return PasswordHasher()


def hashed(password: str) -> str:
    """Return the hash of a password."""
    return hasher().hash(password)


@cache
def _nobodys() -> str:
    return hashed(token_urlsafe(32))


def matches(password_hash: str | None, password: str) -> bool:
    """Return whether a password matches a hash. Without a hash, the check takes just as long."""
    from argon2.exceptions import InvalidHashError, VerificationError

    nobodys = _nobodys()  # always created, so that the first unknown address takes no longer
    try:
        hasher().verify(password_hash or nobodys, password)
    except (VerificationError, InvalidHashError):
        return False
    return password_hash is not None


def outdated(password_hash: str) -> bool:
    """Return whether a new hash of the password would use other parameters."""
    return hasher().check_needs_rehash(password_hash)
