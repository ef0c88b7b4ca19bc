"""Encrypt secrets of customers with keys derived from the stage's master key.

A sealed secret can be read only with the master key, and only for the purpose for which it was
sealed. A copy of the database therefore reveals no secret.
"""

import binascii
import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from chalicelib.gateways.master_key import master_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class UnsealError(Exception):
    """The master key is not the one of a sealed secret, or the secret was altered."""


def seal(secret: str, *, purpose: str) -> str:
    """Return a secret encrypted with AES-256-GCM, in base64; raise as ``master_key`` does.

    ``purpose`` names the record that the secret belongs to.
    """
    nonce = os.urandom(_NONCE_BYTES)
    encrypted = _cipher().encrypt(nonce, secret.encode(), purpose.encode())
    return b64encode(nonce + encrypted).decode()


def unseal(sealed: str, *, purpose: str) -> str:
    """Return the secret that ``seal`` has encrypted for a purpose.

    Raises:
        UnsealError: the secret was sealed with another master key or for another purpose.
        NotConfiguredError: the master key is missing.
        UnavailableError: the master key cannot be read.
    """
    from cryptography.exceptions import InvalidTag

    try:
        raw = b64decode(sealed, validate=True)
        nonce, encrypted = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
        return _cipher().decrypt(nonce, encrypted, purpose.encode()).decode()
    except (binascii.Error, ValueError, InvalidTag) as error:
        raise UnsealError from error


def _cipher() -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # Tokens of other features are computed with the same master key, so the label must differ.
    return AESGCM(hmac.digest(master_key(), b"sealing\0aes-256-gcm", hashlib.sha256))
