"""Read the API key of the model provider from a setting or from a secret."""

import logging
from collections.abc import Callable

from chalicelib.core.settings import settings
from chalicelib.gateways.llm import ModelError
from chalicelib.gateways.secrets_manager import SecretValue, UnreadableSecretError

ApiKey = Callable[[], str]  # Returns the current key; "" if the provider needs none.

log = logging.getLogger(__name__)


def api_key() -> ApiKey:
    """Return the source of the key. The setting takes precedence over the secret."""
    current = settings()
    if current.llm_api_key or not current.llm_api_key_secret:
        return lambda: current.llm_api_key
    return SecretKey(current.llm_api_key_secret)


class SecretKey:
    """The key in a secret of Secrets Manager. A secret without a value means that no key is set."""

    def __init__(self, arn: str) -> None:
        self._secret = SecretValue(arn)

    def __call__(self) -> str:
        """Return the key. Without it, a ModelError is raised, and logged to raise the alarm."""
        try:
            return self._secret()
        except UnreadableSecretError as error:
            cause = {"cause": str(error)}
            log.error("the API key of the model provider cannot be read", extra=cause)  # noqa: TRY400  the cause says all
            # The original error may contain the ARN of the secret, so it is not attached.
            raise ModelError("unavailable", f"The API key cannot be read: {error}.") from None
