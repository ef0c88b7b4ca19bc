"""New passwords by a link in an e-mail (OWASP, Forgot Password Cheat Sheet)."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import NotConfiguredError, NotFoundError, RateLimitedError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.principals import PLATFORM
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.identity.flows import reset_links
from chalicelib.domains.identity.flows.connection_changes import stage_endings_of_account
from chalicelib.domains.identity.flows.reset_links import OpenReset
from chalicelib.domains.identity.operations.accounts import Password, stage_password
from chalicelib.domains.identity.rules.job_kinds import MAIL_PASSWORD_RESET
from chalicelib.domains.identity.store import accounts, password_resets
from chalicelib.engine import jobs, limits
from chalicelib.gateways import mail
from chalicelib.lib.contact_fields import Email
from chalicelib.lib.localized import Language

WINDOW = timedelta(minutes=15)
REQUESTS = Limit(
    "password-reset-requests", "requests for a new password within 15 minutes", 10, WINDOW
)
RESETS = Limit("password-resets", "attempts to set a new password within 15 minutes", 10, WINDOW)
# E-mails to one address, below the budget of all e-mails about an account: anyone can request one.
MAILS = Limit(
    "password-reset-mails", "e-mails per hour with a link for a new password", 3, timedelta(hours=1)
)


class PasswordResetRequest(Wire):
    """A request for a link that sets a new password."""

    email: Email = Field(description="E-mail address of the account.")
    language: Language = Field(default="en", description="Language of the mail: ru or en.")


class PasswordResetRequested(Wire):
    """Result of a request, which is the same for all addresses."""

    expires_in_minutes: int = Field(description="Minutes for which a mailed link works.")


class PasswordResetToken(Wire):
    """The token of a link that sets a new password."""

    token: str = Field(description="Token of the link.")


class PasswordResetShown(Wire):
    """A link that works, as the person who has it sees it."""

    email: str = Field(description="E-mail address of the account.")
    expires_at: Timestamp = Field(description="When the link stops working.")


class PasswordReset(PasswordResetToken):
    """A new password, with the link as proof."""

    password: Password = Field(description="The new password, of at least 8 characters.")
    end_connections: bool = Field(
        default=False, description="Whether to disconnect the account's apps in all workspaces."
    )


class PasswordResetResult(Wire):
    """Account with a new password."""

    account_id: Id = Field(description="Account id.")


@operation(
    title="Request a new password",
    audience=PUBLIC,
    limit=REQUESTS,
    platform=True,
    audit=False,
    example={"email": "OWNER_EMAIL"},
)
def request_password_reset(ctx: Context, args: PasswordResetRequest) -> PasswordResetRequested:
    """Mail a link that sets a new password, if a proved account has the address.

    An address gets at most three an hour. Earlier links keep working, so that a stranger's requests
    do not end the link that the owner is about to use.
    """
    if not mail.is_on():
        raise NotConfiguredError(
            "E-mail is not set up on this server. Ask the operator to set a new password.",
            key="mail",
        )
    # A request takes the same steps and gets the same response whether the address has an account
    # or not. The job that sends the link looks the account up.
    hashed = accounts.email_hash(args.email)
    if ctx.unit.run_side_effect_once("count", lambda: _count_mail(hashed)):
        reset_id = ctx.unit.run_side_effect_once("id", new_id)
        token = reset_links.token(reset_id)
        ctx.unit.create(password_resets.row(token, address_hash=hashed, language=args.language))
        ctx.unit.create(jobs.row(MAIL_PASSWORD_RESET, PLATFORM, {"resetId": reset_id}))
    minutes = int(password_resets.LIFE.total_seconds() // 60)
    return PasswordResetRequested(expires_in_minutes=minutes)


def _count_mail(email_hash: str) -> bool:
    try:
        limits.take(MAILS, email_hash)
    except RateLimitedError:
        return False
    return True


@operation(title="Get a link for a new password", audience=PUBLIC, platform=True)
def get_password_reset(ctx: Context, args: PasswordResetToken) -> PasswordResetShown:
    """Return a link that works to the person who has it."""
    reset = _read(args.token)
    return PasswordResetShown(email=reset.account.email, expires_at=reset.row.expires_at)


@operation(
    title="Set a new password by a link",
    audience=PUBLIC,
    limit=RESETS,
    platform=True,
)
def reset_password(ctx: Context, args: PasswordReset) -> PasswordResetResult:
    """Set the password of the link's account, and end its sessions. No session begins.

    ``endConnections`` disconnects the account's apps, too.
    """
    row, account = _read(args.token)
    stage_password(ctx.unit, account, args.password)
    if args.end_connections:
        stage_endings_of_account(ctx.unit, account.id)
    ctx.unit.delete(row, if_there=True)
    ctx.unit.mention(f"account:{account.id}")
    return PasswordResetResult(account_id=account.id)


def _read(token: str) -> OpenReset:
    reset = reset_links.working(token)
    # The error is the same for an unknown, an expired and a used link, and after another new
    # password.
    if reset is None:
        raise NotFoundError("This link is no longer valid. Request a new link.", key="link")
    return reset
