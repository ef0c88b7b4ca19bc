"""One-click unsubscription from e-mails (RFC 8058).

The link in an e-mail names a workspace, an account and a kind of messages. It is signed, so it
needs no session, and it can do nothing else.
"""

import base64
import hmac
from typing import NamedTuple

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.notifications.flows import member_choices
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways.master_key import master_key

OPERATION = "set_notifications"  # in the audit log: the name of the console's operation
_SIGNATURE_BYTES = 16


class Subscription(NamedTuple):
    """The e-mails of a kind to a member."""

    workspace_id: str
    account_id: str
    kind: str


def token(workspace_id: str, *, account_id: str, kind: str) -> str:
    """Return the token that ends the e-mails of a kind to a member, or raise as ``master_key``."""
    subject = f"{workspace_id}.{account_id}.{kind}"
    return f"{subject}.{_signature(subject)}"


def parse(text: str) -> Subscription | None:
    """Return what a token names, or None if it is not genuine."""
    subject, _, signature = text.rpartition(".")
    # The comparison takes constant time, so that a signature cannot be guessed byte by byte.
    if not hmac.compare_digest(_signature(subject).encode(), signature.encode()):
        return None
    parts = subject.split(".")
    return Subscription(*parts) if parts[2] in MESSAGE_KINDS else None


def workspace_name(subscription: Subscription) -> str:
    """Return the name of the workspace, or raise NotFoundError."""
    return workspaces.get(subscription.workspace_id).name


def unsubscribe(subscription: Subscription) -> None:
    """End the e-mails of a kind to a member. A former member gets no e-mails in any case."""
    workspace_id, account_id, kind = subscription
    event = AuditEvent(OPERATION, account_id, resources=(f"account:{account_id}",))

    def stage(unit: UnitOfWork) -> None:
        member_choices.stage_change(
            unit,
            workspace_id,
            account_id=account_id,
            change=lambda own_choices: own_choices.choose(kind, "mail", is_on=False),
        )

    try:
        run_unit(workspace_id, event, stage)
    except ForbiddenError:
        return


def _signature(subject: str) -> str:
    digest = hmac.digest(master_key(), f"unsubscribe:{subject}".encode(), "sha256")
    # An HMAC may be truncated to half of its length (RFC 2104, 5).
    return base64.urlsafe_b64encode(digest[:_SIGNATURE_BYTES]).decode().rstrip("=")
