"""Commands of the operator that end what reports of bounces and complaints have led to."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.mails.rules.mail_reputation import Pause
from chalicelib.domains.mails.store import mail_rates, suppressions
from chalicelib.lib.contact_fields import Email


class MailResume(Wire):
    """A workspace whose e-mail to visitors is sent again."""

    workspace_id: Id = Field(description="Workspace id.")


class MailPause(Wire):
    """A workspace whose e-mail to clients is to be paused."""

    workspace_id: Id = Field(description="Workspace id.")
    reason: Pause = Field(default="complaints", description="bounces or complaints.")


class MailPaused(Wire):
    """Result of pausing e-mail."""

    was_paused: bool = Field(description="Whether all mails to clients were paused before.")


class MailResumed(Wire):
    """Result of resuming e-mail."""

    was_paused: bool = Field(description="Whether the mails were paused.")


class MailAllow(Wire):
    """An address that receives e-mail again."""

    email: Email = Field(description="E-mail address.")


class MailAllowed(Wire):
    """Result of allowing e-mail to an address."""

    was_suppressed: bool = Field(description="Whether the address was suppressed.")


@operation(
    title="Pause mails to clients",
    audience=OPERATOR,
    resolve=lambda args: workspaces.get(args.workspace_id).id,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID"},
)
def pause_mail(ctx: Context, args: MailPause) -> MailPaused:
    """Send no e-mail of a workspace to clients until it is resumed: no confirmations either.

    What strangers cause is paused by itself. Pause the others only if the reputation of the whole
    stage is at risk, and tell the owner.
    """
    return MailPaused(was_paused=not mail_rates.stage_pause(ctx.unit, args.reason))


@operation(
    title="Resume mails to visitors",
    audience=OPERATOR,
    resolve=lambda args: workspaces.get(args.workspace_id).id,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID"},
)
def resume_mail(ctx: Context, args: MailResume) -> MailResumed:
    """Send a workspace's e-mail to visitors again, after bounces or complaints have paused them.

    Bounces and complaints are counted from zero again. Find out first where the addresses came
    from: e-mail is paused again if the rates stay high.
    """
    return MailResumed(was_paused=mail_rates.stage_resumption(ctx.unit))


@operation(
    title="Allow mails to an address",
    audience=OPERATOR,
    platform=True,
    idempotent=True,
    example={"email": "ada@example.com"},
)
def allow_mail(ctx: Context, args: MailAllow) -> MailAllowed:
    """Send e-mail to an address again that is suppressed after a bounce or a complaint.

    After a complaint, do so only at the wish of the person.
    """
    row = suppressions.find(args.email)
    if row is not None:
        ctx.unit.delete(row)
    return MailAllowed(was_suppressed=row is not None)
