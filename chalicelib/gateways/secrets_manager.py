"""Values of secrets in Secrets Manager, read while the service runs."""

from datetime import datetime, timedelta
from functools import cache
from threading import Lock
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core import clock

KEPT = timedelta(minutes=5)  # A new value is in use after this time.
_CONFIG = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2})


class UnreadableSecretError(Exception):
    """A secret cannot be read. The message is AWS's error code or the kind of failure."""


class SecretValue:
    """The value of a secret, "" without one. A call raises UnreadableSecretError on failure."""

    def __init__(self, arn: str) -> None:
        self._arn = arn
        self._client: Any = None
        self._value = ""
        self._expires: datetime | None = None
        self._reading = Lock()

    def __call__(self) -> str:
        # The lock lets only one of several threads request the secret.
        with self._reading:
            now = clock.now()
            if self._expires is None or now >= self._expires:
                self._value = self._read()
                self._expires = now + KEPT
            return self._value

    def _read(self) -> str:
        try:
            if self._client is None:
                session = botocore.session.get_session()
                self._client = session.create_client("secretsmanager", config=_CONFIG)
            answer = self._client.get_secret_value(SecretId=self._arn)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            # AWS reports a secret without a value like a missing one.
            if code == "ResourceNotFoundException":
                return ""
            raise UnreadableSecretError(code) from None
        except BotoCoreError as error:
            raise UnreadableSecretError(type(error).__name__) from None
        return str(answer.get("SecretString", "")).strip()


def value_of(arn: str) -> str:
    """Return the value of a secret, or "" without an ARN or a value.

    Raises UnreadableSecretError.
    """
    return _kept(arn)() if arn else ""


@cache
def _kept(arn: str) -> SecretValue:
    return SecretValue(arn)
