"""Sign links that open a page with what an assistant has prepared for a visitor.

A link holds no contacts and writes nothing. Its signature shows that the assistant's tools made the
link, and until when it is valid. The secret belongs to the workspace.
"""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from chalicelib.core.clock import epoch_ms

VALID_FOR = timedelta(minutes=30)
PARAMETER = "prepared"  # query parameter and form field with the token
LINES = "order"  # query parameter: ``id*quantity`` of products, separated by commas
MAX_TOKEN = 60
_SECRET_BYTES = 16


def new_secret() -> str:
    """Return a random secret for the links of a workspace, in hexadecimal."""
    return secrets.token_hex(_SECRET_BYTES)


def booking(service_id: str, resource_id: str | None, start: datetime) -> str:
    """Return what the link to a booking's form is signed for."""
    return f"booking {service_id} {resource_id} {epoch_ms(start)}"


def order(form_id: str, *, lines: str) -> str:
    """Return what the link to an order's form is signed for."""
    return f"order {form_id} {lines}"


def token(secret: str, *, subject: str, ends_at: datetime) -> str:
    """Return the token of a link that is valid until a moment."""
    end = str(epoch_ms(ends_at))
    return f"{end}.{_signature(secret, subject=subject, end=end)}"


def is_signed(secret: str | None, subject: str, text: str | None) -> bool:
    """Whether a token was made for the subject, even if it has expired since."""
    end, _, signature = (text or "").partition(".")
    if not secret or not signature.isascii():
        return False
    return hmac.compare_digest(signature, _signature(secret, subject=subject, end=end))


def is_valid(secret: str | None, subject: str, text: str | None, now: datetime) -> bool:
    """Whether a token was made for the subject and has not expired."""
    end = (text or "").partition(".")[0]
    return is_signed(secret, subject, text) and epoch_ms(now) <= int(end)


def _signature(secret: str, *, subject: str, end: str) -> str:
    return hmac.digest(bytes.fromhex(secret), f"{subject}\0{end}".encode(), hashlib.sha256).hex()[
        :32
    ]
