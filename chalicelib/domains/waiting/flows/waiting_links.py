"""Sign the link by which one who waits sees the offer, and leaves the line.

It names a workspace and one who waits. It needs no session, and can do nothing else.
"""

import base64
import hmac
from typing import NamedTuple

from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.gateways.master_key import master_key

PAGE = "/booking/waiting/{token}"
MAX_TOKEN = 100
_SIGNATURE_BYTES = 16


class WaitingLink(NamedTuple):
    """What the token of a link names."""

    workspace_id: str
    waiting_id: str


def token(link: WaitingLink) -> str:
    """Return the token of one who waits, or raise as ``master_key``."""
    subject = ".".join(link)
    return f"{subject}.{_signature(subject)}"


def url(link: WaitingLink) -> str:
    """Return the URL of the page for one who waits, or raise as ``master_key``."""
    return settings().public_url + PAGE.format(token=token(link))


def parse(text: str) -> WaitingLink:
    """Return what a token names, or raise NotFoundError if it is not genuine."""
    subject, _, signature = text.rpartition(".")
    # The comparison takes constant time, so that a signature cannot be guessed byte by byte.
    if not hmac.compare_digest(_signature(subject).encode(), signature.encode()):
        raise not_found()
    return WaitingLink(*subject.split("."))


def not_found() -> NotFoundError:
    """Return the error for a link that is not genuine, or of a line that has ended."""
    return NotFoundError("Nobody waits with this link. The waiting may have ended.", key="waiting")


def _signature(subject: str) -> str:
    digest = hmac.digest(master_key(), f"waiting:{subject}".encode(), "sha256")
    # An HMAC may be truncated to half of its length (RFC 2104, 5).
    return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode().rstrip("=")
