"""Compute the codes of a second factor: time-based one-time passwords (RFC 6238)."""

import base64
import hmac
from datetime import datetime

RECOVERY_CODES = 8
STEP_SECONDS = 30
DIGITS = 6
DRIFT_STEPS = 1  # that a phone's clock may be early or late (RFC 6238, 5.2)
# All codes follow from a seed that only the holder of the stage's master key can compute, so the
# database has no secret.
_SECRET_BYTES = 20
_RECOVERY_BYTES = 10


def app_secret(seed: str) -> str:
    """Return the secret that the user types into an authenticator app, in base32."""
    return base64.b32encode(_part(seed, purpose="app")[:_SECRET_BYTES]).decode()


def matching_step(seed: str, *, code: str, last_step: int, now: datetime) -> int | None:
    """Return the time step of a code, or None. It is after ``last_step``: a code counts once."""
    from cryptography.hazmat.primitives.hashes import SHA1
    from cryptography.hazmat.primitives.twofactor.totp import TOTP

    # SHA-1 is the only algorithm that all apps support. HMAC does not need a collision-free hash.
    totp = TOTP(_part(seed, purpose="app")[:_SECRET_BYTES], DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303  as above  # nosec B303
    current = int(now.timestamp()) // STEP_SECONDS
    for step in range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1):
        expected = totp.generate(step * STEP_SECONDS)
        if step > last_step and hmac.compare_digest(expected, code.encode()):
            return step
    return None


def recovery_codes(seed: str) -> list[str]:
    """Return the recovery codes, such as ``k3wq-7hde-2mvn-x5ra``."""
    return [_recovery_code(seed, number) for number in range(RECOVERY_CODES)]


def matching_recovery_code(seed: str, *, code: str, used: int) -> int | None:
    """Return the number of a recovery code, or None. ``used`` has the bits of the used ones."""
    for number, expected in enumerate(recovery_codes(seed)):
        if not used >> number & 1 and hmac.compare_digest(expected.encode(), code.encode()):
            return number
    return None


def _recovery_code(seed: str, number: int) -> str:
    digest = _part(seed, purpose=f"recovery {number}")[:_RECOVERY_BYTES]
    letters = base64.b32encode(digest).decode().lower()
    return "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def _part(seed: str, *, purpose: str) -> bytes:
    return hmac.digest(seed.encode(), purpose.encode(), "sha256")
