"""The master key, from which the service computes secrets that it does not store.

Another key changes every computed secret.
"""

import base64
import hmac
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

from chalicelib.core.errors import NotConfiguredError, UnavailableError
from chalicelib.core.settings import settings
from chalicelib.gateways.local_secret import local_secret
from chalicelib.gateways.secrets_manager import SecretValue, UnreadableSecretError

log = logging.getLogger(__name__)


def master_key() -> bytes:
    """Return the master key.

    Raises:
        NotConfiguredError: the service runs on AWS without a secret, or the secret has no value.
        UnavailableError: the key cannot be read.
    """
    return _source()()


def derived_token(purpose: str) -> str:
    """Return the token of a purpose, of 43 letters, digits, ``-`` and ``_``.

    Only the holder of the key can compute it. Raises the errors of ``master_key``.
    """
    digest = hmac.digest(master_key(), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


@cache
def _source() -> Callable[[], bytes]:
    # The setting takes precedence over the secret.
    current = settings()
    if current.master_key or not current.master_key_secret:
        return LocalKey()
    return StoredKey(current.master_key_secret)


class LocalKey:
    """The key in the setting ``MASTER_KEY``, or in a file next to the objects of a local stack."""

    def __call__(self) -> bytes:
        current = settings()
        if current.master_key:
            return current.master_key.encode()
        kind, _, folder = current.object_store.partition("://")
        if kind != "file":
            raise _missing("MASTER_KEY_SECRET: expected the ARN of a secret. Deploy the stage.")
        try:
            return local_secret(Path(folder) / ".master-key")
        except OSError as error:
            raise UnavailableError from error


class StoredKey:
    def __init__(self, arn: str) -> None:
        self._secret = SecretValue(arn)

    def __call__(self) -> bytes:
        try:
            value = self._secret()
        except UnreadableSecretError as error:
            log.error("the master key cannot be read", extra={"cause": str(error)})  # noqa: TRY400  the cause says all
            raise UnavailableError from None
        if not value:
            raise _missing("The secret in MASTER_KEY_SECRET has no value. Restore its value.")
        return value.encode()


def _missing(cause: str) -> NotConfiguredError:
    # A line of the level ``error`` raises the alarm.
    log.error("the master key is missing", extra={"cause": cause})
    return NotConfiguredError(
        "The master key of this deployment is missing. The operator must restore it.",
        key="master_key",
    )
