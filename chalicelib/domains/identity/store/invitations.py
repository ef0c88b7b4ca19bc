"""Invitations to a workspace, stored under the hashes of their tokens."""

from datetime import timedelta
from typing import Any, Literal

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib import tokens

LIFE = timedelta(days=7)
# Time between the end of an invitation and its removal. The clock decides, not the TTL.
KEPT_AFTER = timedelta(days=1)
SORT_KEY = "invitation"
InvitationState = Literal["open", "expired", "used", "revoked"]


class InvitationRow(IdentityRow):
    """An invitation for one e-mail address. It works once, and while its inviter may invite."""

    invitation_id = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    resource_id = UnicodeAttribute(null=True)  # the member of the staff that the account becomes
    inviter_id = UnicodeAttribute()
    inviter_term = UnicodeAttribute(null=True)  # of the inviter's membership in which it was made
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute()
    used_at = UTCDateTimeAttribute(null=True)
    revoked_at = UTCDateTimeAttribute(null=True)
    mail = UnicodeAttribute(null=True)  # ``waiting``, ``sent`` or ``withheld``, or None without one
    mail_reason = UnicodeAttribute(null=True)  # why it waits or is withheld

    @property
    def state(self) -> InvitationState:
        if self.used_at is not None:
            return "used"
        if self.revoked_at is not None:
            return "revoked"
        return "open" if clock.now() < self.expires_at else "expired"


class InvitationLookupRow(IdentityRow):
    """Reference to an invitation that is neither used nor revoked, under its workspace."""

    record_pk = UnicodeAttribute()


def row(token: str, **attributes: Any) -> InvitationRow:  # noqa: ANN401  the row's attributes
    """Return the row of a new invitation, which expires after ``LIFE``. The caller stages it."""
    expires_at = attributes["created_at"] + LIFE
    return InvitationRow(
        _partition(token),
        SORT_KEY,
        expires_at=expires_at,
        # Time-to-live removes the row later, so that its page can still say that it has expired.
        expires=expires_at + KEPT_AFTER,
        **attributes,
    )


def lookup(invitation: InvitationRow) -> InvitationLookupRow:
    """Return the look-up row of an invitation, under its workspace."""
    return InvitationLookupRow(
        _workspace_partition(invitation.workspace_id),
        invitation.invitation_id,
        record_pk=invitation.pk,
        expires=invitation.expires,
    )


def is_unused() -> Condition:
    """Return the condition under which an invitation is neither used nor revoked at commit."""
    unused: Condition = (
        InvitationRow.pk.exists()
        & InvitationRow.used_at.does_not_exist()
        & InvitationRow.revoked_at.does_not_exist()
    )
    return unused


def find(token: str) -> InvitationRow | None:
    """Return the invitation with this token, whatever its state, in one consistent read."""
    return InvitationRow.find(_partition(token), SORT_KEY)


def at(place: str) -> InvitationRow | None:
    """Return the invitation whose token has this digest, whatever its state."""
    return InvitationRow.find(f"INVITATION#{place}", SORT_KEY)


def note_mail(invitation: InvitationRow, state: str, reason: str | None) -> None:
    """Record what became of the e-mail of an invitation that is still stored."""
    why = InvitationRow.mail_reason
    actions: list[Action] = [InvitationRow.mail.set(state)]
    actions.append(why.set(reason) if reason else why.remove())
    update_if(invitation, actions, InvitationRow.pk.exists())


def find_by_id(workspace_id: str, *, invitation_id: str) -> InvitationRow | None:
    """Return an invitation by its id, or None if it is unknown, used or revoked."""
    place = InvitationLookupRow.find(_workspace_partition(workspace_id), invitation_id)
    return InvitationRow.find(place.record_pk, SORT_KEY) if place else None


def open_ones(workspace_id: str) -> list[InvitationRow]:
    """Return the open invitations of a workspace, newest first."""
    places = InvitationLookupRow.partition(_workspace_partition(workspace_id))
    rows = fetch(Key(InvitationRow, place.record_pk, SORT_KEY) for place in places)
    open_rows = [row for row in rows if isinstance(row, InvitationRow) and row.state == "open"]
    return sorted(open_rows, key=lambda row: row.invitation_id, reverse=True)


def _partition(token: str) -> str:
    return f"INVITATION#{tokens.digest(token)}"


def _workspace_partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#INVITATION"
