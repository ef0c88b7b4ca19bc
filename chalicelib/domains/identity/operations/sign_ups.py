"""Let people make an account with their first workspace, and accounts make further workspaces.

The response to a request is the same for all addresses, known or not. A link changes nothing when
it is opened, because scanners of e-mail open links before people do.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import (
    ConflictError,
    ForbiddenError,
    RateLimitedError,
    ValidationError,
)
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import Id, MailedTitle, Timestamp, Wire
from chalicelib.domains.identity.flows import sign_up_links
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.identity.operations.accounts import (
    MemberName,
    Password,
    account_exists,
    stage_account,
    stage_taking,
)
from chalicelib.domains.identity.operations.sessions import MAX_BROWSER, begin_session
from chalicelib.domains.identity.operations.workspaces import (
    TestWorkspaceCreate,
    WorkspaceCreated,
    stage_workspace,
)
from chalicelib.domains.identity.rules import passwords
from chalicelib.domains.identity.rules.consent_texts import CONSENTS, REQUIRED, Consent
from chalicelib.domains.identity.rules.job_kinds import MAIL_SIGN_UP
from chalicelib.domains.identity.store import accounts, consents, sign_ups, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.sign_ups import SignUpRow
from chalicelib.engine import jobs, limits, locks
from chalicelib.lib import mailboxes
from chalicelib.lib.contact_fields import Country, Email
from chalicelib.lib.localized import Language

MAX_WORKSPACES = 3  # that an account owns, test workspaces apart
REQUESTS = Limit("sign-up-requests", "requests to sign up a day", 10, timedelta(days=1))
# E-mails to one mailbox in all its spellings. Anybody can request one.
MAILS = Limit("sign-up-mails", "e-mails an hour with a link to sign up", 1, timedelta(hours=1))
ATTEMPTS = Limit(
    "sign-ups", "attempts to sign up by a link within 15 minutes", 20, timedelta(minutes=15)
)
# Accounts that one mailbox makes with tags after a plus sign and other spellings.
ACCOUNTS = Limit(
    "sign-up-accounts", "accounts by sign-up of one mailbox in 30 days", 3, timedelta(days=30)
)
FURTHER = Limit("new-workspaces", "new workspaces an hour", 10, timedelta(hours=1))

Token = Annotated[str, StringConstraints(max_length=100)]


class SignUpRequest(Wire):
    """A request for a link that makes an account."""

    email: Email = Field(description="E-mail address of the person.")
    language: Language = Field(default="en", description="Language of the mail: ru or en.")


class SignUpRequested(Wire):
    """Result of a request, which is the same for all addresses."""

    expires_in_hours: int = Field(description="Hours for which a mailed link works.")


class SignUpToken(Wire):
    """The token of a link that makes an account."""

    token: Token = Field(description="Token of the link.")


class SignUpShown(Wire):
    """A link that has not expired, as the person who has it sees it."""

    email: str = Field(description="E-mail address of the new account.")
    expires_at: Timestamp = Field(description="When the link stops working.")
    has_account: bool = Field(description="Whether an account has the address by now.")


class WorkspaceAdd(Wire):
    """A further workspace of an account."""

    name: MailedTitle = Field(description="Display name.")
    country: Country = Field(description="ISO 3166 code of the country of the business.")
    timezone: Timezone | None = Field(
        default=None,
        description="IANA name of its time zone. A country with several zones requires it.",
    )


class SignUp(SignUpToken):
    """A new account with its first workspace."""

    name: MemberName = Field(description="Name of the person, as other members see it.")
    password: Password = Field(description="Password, of at least 8 characters.")
    workspace: MailedTitle = Field(description="Name of the workspace.")
    country: Country = Field(description="ISO 3166 code of the country of the business.")
    timezone: Timezone | None = Field(
        default=None,
        description="IANA name of its time zone. A country with several zones requires it.",
    )
    terms: bool = Field(default=False, description="Whether the person agrees to the terms.")
    personal_data: bool = Field(
        default=False, description="Whether the person agrees to the processing of personal data."
    )
    advertising: bool = Field(
        default=False, description="Whether the person agrees to get advertising."
    )
    browser: Annotated[str, StringConstraints(max_length=2_000)] = Field(
        default="", description="The browser's User-Agent header."
    )
    language: Language = Field(default="en", description="Language of the console: ru or en.")


class SignedUp(Wire):
    """An account with its workspace and a new session."""

    account_id: Id = Field(description="Account id.")
    workspace_id: Id = Field(description="Workspace id.")
    slug: str = Field(description="Unique short name of the workspace.")
    token: str | None = Field(description="The session's token, for its cookie.")


@operation(
    title="Request to sign up",
    audience=PUBLIC,
    limit=REQUESTS,
    platform=True,
    audit=False,
    example={"email": "new@example.com"},
)
def request_sign_up(ctx: Context, args: SignUpRequest) -> SignUpRequested:
    """Mail a link that makes an account, or a notice to an address that has one.

    A mailbox gets one e-mail an hour, whatever the spelling of its address.
    """
    sign_up_links.require_open()
    sign_up_links.require_mail()
    # A request takes the same steps whether an account has the address or not. The job that sends
    # the e-mail looks the account up.
    mailbox = mailboxes.mailbox_key(args.email)
    if ctx.unit.run_side_effect_once("count", lambda: _count_mail(mailbox)):
        sign_up_id = ctx.unit.run_side_effect_once("id", new_id)
        workspace_id = ctx.unit.run_side_effect_once("workspace", new_id)
        row = sign_ups.row(
            sign_up_links.token(sign_up_id),
            email=args.email,
            language=args.language,
            workspace_id=workspace_id,
        )
        ctx.unit.create(row)
        ctx.unit.create(jobs.row(MAIL_SIGN_UP, PLATFORM, {"signUpId": sign_up_id}))
    hours = int(sign_ups.LIFE.total_seconds() // 3600)
    return SignUpRequested(expires_in_hours=hours)


def _count_mail(mailbox: str) -> bool:
    try:
        limits.take(MAILS, mailbox)
    except RateLimitedError:
        return False
    return True


@operation(title="Get a link to sign up", audience=PUBLIC, platform=True)
def get_sign_up(ctx: Context, args: SignUpToken) -> SignUpShown:
    """Return a link that has not expired to the person who has it."""
    row = sign_up_links.read(args.token)
    account = accounts.find_by_email(row.email)
    return SignUpShown(
        email=row.email,
        expires_at=row.expires_at,
        has_account=row.used_at is not None or (account is not None and not _is_free(account)),
    )


@operation(
    title="Sign up by a link",
    audience=PUBLIC,
    resolve=lambda args: sign_up_links.read(args.token).workspace_id,
    limit=ATTEMPTS,
    secret="token",  # noqa: S106  the name of the field
)
def sign_up(ctx: Context, args: SignUp) -> SignedUp:
    """Make an account with its first workspace, and start a session.

    A repeated call with the same password starts another session of the same account: the first
    response may not have arrived.
    """
    # The account is read first. If the link has made it meanwhile, the link is read as used.
    account = accounts.find_by_email(sign_up_links.read(args.token).email)
    row = sign_up_links.read(args.token)
    if row.used_at is not None:
        return _sign_in_again(ctx, row, args)
    sign_up_links.require_open()
    _check_consents(args)
    _check_country(args.country)
    account = _stage_account(ctx, row, account, args)
    used = [SignUpRow.used_at.set(clock.now()), SignUpRow.account_id.set(account.id)]
    ctx.unit.update(row, used, sign_ups.is_unused())
    limits.stage(ctx.unit, ACCOUNTS, mailboxes.mailbox_key(row.email))
    agreed: list[Consent] = [name for name in CONSENTS if getattr(args, name)]
    for consent in agreed:
        address_hash = accounts.email_hash(row.email)
        ctx.unit.save(consents.row(account.id, consent, address_hash=address_hash, at=clock.now()))
    workspace = _stage_workspace(
        ctx,
        account,
        WorkspaceAdd(name=args.workspace, country=args.country, timezone=args.timezone),
        workspace_id=row.workspace_id,
    )
    return SignedUp(
        account_id=account.id,
        workspace_id=workspace.workspace_id,
        slug=workspace.slug,
        token=begin_session(ctx, account, args.browser[:MAX_BROWSER]),
    )


def _sign_in_again(ctx: Context, row: SignUpRow, args: SignUp) -> SignedUp:
    # Whoever has the link reads the e-mail of the account, but that is no password.
    account = accounts.get(row.account_id or "")
    is_same = passwords.matches(account.password_hash, args.password)
    if not is_same or account.disabled_at is not None or account.signs_in_by_code:
        raise sign_up_links.gone()
    ctx.unit.require(account, AccountRow.password_hash == account.password_hash)
    return SignedUp(
        account_id=account.id,
        workspace_id=row.workspace_id,
        slug=workspaces.get(row.workspace_id).slug,
        token=begin_session(ctx, account, args.browser[:MAX_BROWSER]),
    )


def _is_free(account: AccountRow) -> bool:
    # Somebody has made the account for the address without reading its e-mail.
    return not account.is_proved and account.disabled_at is None


def _stage_account(
    ctx: Context, row: SignUpRow, account: AccountRow | None, args: SignUp
) -> AccountRow:
    if account is None:
        # If two clicks come at once, the other call starts again, and finds the link used.
        return stage_account(
            ctx.unit,
            row.email,
            password=args.password,
            name=args.name,
            language=args.language,
            proved=True,
            runs_again=True,
        )
    if not _is_free(account):
        raise account_exists(row.email)
    stage_taking(ctx.unit, account, password=args.password, name=args.name)
    return account


def _check_consents(args: SignUp) -> None:
    missing: list[Consent] = [
        name for name in CONSENTS if name in REQUIRED and not getattr(args, name)
    ]
    if missing:
        field = type(args).model_fields[missing[0]].alias or missing[0]
        raise ValidationError.of(field, message="expected true, received false", key="required")


def _check_country(country: str) -> None:
    allowed = settings().sign_up_countries
    if allowed and country not in allowed:
        message = f"expected one of {', '.join(allowed)}, received {country}"
        raise ValidationError.of("country", message=message, key="country")


def _stage_workspace(
    ctx: Context, owner: AccountRow, args: WorkspaceAdd, *, workspace_id: str
) -> WorkspaceCreated:
    # Workspaces of an account are made one after the other.
    ctx.unit.save(locks.lock_row(PLATFORM, what=f"workspaces-of-{owner.id}"))
    if len(workspaces.owned(owner.id)) >= MAX_WORKSPACES:
        msg = f"The account has {MAX_WORKSPACES} workspaces, which is the maximum."
        raise ConflictError(msg, key="too_many_workspaces", details={"maximum": MAX_WORKSPACES})
    values = TestWorkspaceCreate(name=args.name, country=args.country, timezone=args.timezone)
    plan = settings().sign_up_plan
    return stage_workspace(ctx, owner, values, plan, workspace_id=workspace_id, awaits_review=True)


@operation(
    role=Role.ACCOUNT,
    platform=True,
    limit=FURTHER,
    example={"name": "Second", "country": "GB"},
)
def add_workspace(ctx: Context, args: WorkspaceAdd) -> WorkspaceCreated:
    """Create a further workspace of the account of the person who is signed in.

    An account owns at most three, test workspaces apart.
    """
    sign_up_links.require_open()
    account = accounts.get(ctx.principal.account_id)
    if not account.is_proved:
        msg = "Prove the address of your account first: open the link in the e-mail to it."
        raise ForbiddenError(msg, key="address_not_proved")
    _check_country(args.country)
    workspace_id = ctx.unit.run_side_effect_once("workspace", new_id)
    return _stage_workspace(ctx, account, args, workspace_id=workspace_id)
