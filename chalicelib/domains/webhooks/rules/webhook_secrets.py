"""Signing secrets of webhooks.

No secret is stored. Each one is computed from the service's master key and the webhook's version.
To rotate a secret, increase the version. During the rotation, sign with both versions.
"""

import base64
import hmac

PREFIX = "whsec_"
"""Prefix of a secret in the form of Standard Webhooks. The base64 of the signing key follows it."""


def webhook_secret(master_key: bytes, workspace_id: str, webhook_id: str, version: int) -> str:
    """Return the secret of one version of a webhook: ``whsec_`` and the base64 of 32 bytes."""
    purpose = f"webhook:{workspace_id}:{webhook_id}:{version}"
    return PREFIX + base64.b64encode(hmac.digest(master_key, purpose.encode(), "sha256")).decode()
