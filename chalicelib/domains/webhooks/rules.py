"""Sign requests of webhooks, and schedule further attempts.

Signatures follow the specification Standard Webhooks:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

No secret is stored. Each secret is computed from the service's master key and the webhook's
version.
To rotate a secret, increase the version. During the rotation, sign with both versions.
"""

import base64
import hmac
import random
from collections.abc import Sequence
from datetime import datetime, timedelta

PAUSES = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
"""Pauses after failed attempts, as Standard Webhooks recommends. After the last attempt, a delivery
has failed."""
MAX_FAILURES = 10
"""Maximum number of failures in a row before a webhook is switched off after ``MAX_FAILING``."""
MAX_FAILING = timedelta(hours=72)
"""Maximum time in which every attempt fails. A webhook is then switched off."""
_JITTER = 0.2


def next_attempt(attempts: int, now: datetime, retry_after: timedelta | None) -> datetime | None:
    """Return when to send again after failed attempts, or None after the last one.

    ``retry_after`` is the receiver's wish, at most 24 hours. A pause is up to a fifth longer than
    stated, so that deliveries that failed together are not repeated together.
    """
    if attempts > len(PAUSES):
        return None
    pause = PAUSES[attempts - 1] * (1 + random.uniform(0, _JITTER))  # noqa: S311  no secret
    return now + max(pause, retry_after or timedelta(0))


def is_to_be_switched_off(failures: int, failing_since: datetime | None, now: datetime) -> bool:
    """Whether a webhook has failed too often for too long."""
    if failing_since is None or failures < MAX_FAILURES:
        return False
    return now - failing_since >= MAX_FAILING


PREFIX = "whsec_"
"""Prefix of a secret in the form of Standard Webhooks. The base64 of the signing key follows it."""


def webhook_secret(master_key: bytes, workspace_id: str, webhook_id: str, version: int) -> str:
    """Return the secret of one version of a webhook, ``whsec_`` and 32 bytes in base64."""
    purpose = f"webhook:{workspace_id}:{webhook_id}:{version}"
    return PREFIX + base64.b64encode(hmac.digest(master_key, purpose.encode(), "sha256")).decode()


def signed_headers(
    secrets: Sequence[str], webhook_id: str, at: datetime, body: bytes
) -> dict[str, str]:
    """Return the headers that identify and sign a webhook.

    Args:
        secrets: current secrets of the receiver, newest first, each as ``whsec_`` and base64.
            While a secret is rotated, the old one is among them, so that receivers with either
            secret accept the webhook.
        webhook_id: the same at every attempt to deliver an event. Contains no full stop.
        at: the time of this attempt, with its time zone. Receivers refuse old times.
        body: the exact bytes of the request.
    """
    timestamp = str(int(at.timestamp()))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(secret, signed) for secret in secrets),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
