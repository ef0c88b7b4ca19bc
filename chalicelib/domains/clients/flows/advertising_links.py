"""Withdraw what a client has agreed to, also by the link in each e-mail that advertises (ADR 140).

The link names a workspace and a client. It is signed, so it needs no session, and it can do nothing
else. It never ends: who gets such an e-mail may withdraw at any time.
"""

import base64
import hmac
from typing import NamedTuple

from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.master_key import master_key

PATH = "/unsubscribe/advertising/{token}"
OPERATION = "withdraw_advertising_consent"  # in the audit log: the console's operation
BY_LINK = "visitor"  # the author of a withdrawal by the link
_SIGNATURE_BYTES = 16


class Recipient(NamedTuple):
    """A client who gets e-mail that advertises."""

    workspace_id: str
    client_id: str


def link(recipient: Recipient) -> str:
    """Return the URL of the page that withdraws a client's consent, or raise as ``master_key``."""
    subject = ".".join(recipient)
    return settings().public_url + PATH.format(token=f"{subject}.{_signature(subject)}")


def parse(text: str) -> Recipient | None:
    """Return what the token of a link names, or None if it is not genuine."""
    subject, _, signature = text.rpartition(".")
    # The comparison takes constant time, so that a signature cannot be guessed byte by byte.
    if not hmac.compare_digest(_signature(subject).encode(), signature.encode()):
        return None
    return Recipient(*subject.split("."))


def workspace_name(recipient: Recipient) -> str:
    """Return the name of the workspace, or raise NotFoundError."""
    return workspaces.get(recipient.workspace_id).name


def withdraw(recipient: Recipient) -> None:
    """Withdraw a client's consent. Nothing changes if it is withdrawn or erased already."""
    event = AuditEvent(OPERATION, BY_LINK, resources=(f"client:{recipient.client_id}",))

    def stage(unit: UnitOfWork) -> None:
        advertising_consents.stage_withdrawal(
            unit, client_id=recipient.client_id, by=BY_LINK, source="link"
        )

    run_unit(recipient.workspace_id, event, stage)


def _signature(subject: str) -> str:
    digest = hmac.digest(master_key(), f"advertising:{subject}".encode(), "sha256")
    # An HMAC may be truncated to half of its length (RFC 2104, 5).
    return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode().rstrip("=")
