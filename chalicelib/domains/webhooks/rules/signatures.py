"""Signatures of webhooks, and the secrets that they are made with, as in Standard Webhooks.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

No secret is stored. Each secret is computed from the service's master key and the webhook's
version. To rotate a secret, increase the version. During the rotation, sign with both versions.
"""

import base64
import hmac
from collections.abc import Sequence
from datetime import datetime

PREFIX = "whsec_"  # of a secret in the form of Standard Webhooks, before the base64 of the key


def webhook_secret(master_key: bytes, workspace_id: str, *, webhook_id: str, version: int) -> str:
    """Return the secret of one version of a webhook, ``whsec_`` and 32 bytes in base64."""
    purpose = f"webhook:{workspace_id}:{webhook_id}:{version}"
    return PREFIX + base64.b64encode(hmac.digest(master_key, purpose.encode(), "sha256")).decode()


def signed_headers(
    secrets: Sequence[str], webhook_id: str, at: datetime, body: bytes
) -> dict[str, str]:
    """Return the headers that identify and sign a webhook.

    ``secrets`` are newest first, each as ``whsec_`` and base64. While a secret is rotated, the old
    one is among them, so that receivers with either secret accept the webhook. ``webhook_id`` is
    the same at every attempt to deliver an event, and contains no full stop. ``at`` is the time of
    this attempt with its zone, since receivers refuse old times, and ``body`` the exact bytes of
    the request.
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
