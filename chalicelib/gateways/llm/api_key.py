"""The API key of the model provider: a setting, or a secret that is read while the service runs."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.gateways.llm import ModelError

KEPT = timedelta(minutes=5)
"""How long a key is used before it is read again. A new key is in use after this time."""
_CONFIG = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 2})

ApiKey = Callable[[], str]
"""Returns the current key; "" if the provider needs none."""

log = logging.getLogger(__name__)


def api_key() -> ApiKey:
    """Return the source of the key. The setting takes precedence over the secret."""
    current = settings()
    if current.llm_api_key or not current.llm_api_key_secret:
        return lambda: current.llm_api_key
    return SecretKey(current.llm_api_key_secret)


class SecretKey:
    """The key in a secret of Secrets Manager. A secret without a value means that there is none."""

    def __init__(self, arn: str) -> None:
        self._arn = arn
        self._client: Any = None
        self._key = ""
        self._expires: datetime | None = None
        self._reading = Lock()

    def __call__(self) -> str:
        """Return the key.

        Raises:
            ModelError: the secret cannot be read.
        """
        with self._reading:
            now = clock.now()
            if self._expires is None or now >= self._expires:
                self._key = self._read()
                self._expires = now + KEPT
            return self._key

    def _read(self) -> str:
        try:
            if self._client is None:
                session = botocore.session.get_session()
                self._client = session.create_client("secretsmanager", config=_CONFIG)
            answer = self._client.get_secret_value(SecretId=self._arn)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            if code == "ResourceNotFoundException":
                return ""
            raise _unreadable(str(code)) from None
        except BotoCoreError as error:
            raise _unreadable(type(error).__name__) from None
        return str(answer.get("SecretString", "")).strip()


def _unreadable(cause: str) -> ModelError:
    """Log the failure as an error, which raises the alarm. Return the error for the caller."""
    log.error("the API key of the model provider cannot be read", extra={"cause": cause})
    return ModelError("unavailable", f"The API key cannot be read: {cause}.")
