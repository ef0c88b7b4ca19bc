"""Passwords of accounts: argon2id hashes (RFC 9106), checked in constant time."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher


@cache
def hasher() -> "PasswordHasher":
    """Return the hasher, with argon2-cffi's defaults (RFC 9106, low-memory profile)."""
    from argon2 import PasswordHasher  # noqa: PLC0415  only sign-in and new passwords need it

    return PasswordHasher()


def hashed(password: str) -> str:
    """Return what is stored of a password."""
    return hasher().hash(password)
