"""Manage accounts, which sign in, own workspaces and create keys."""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.wire.schema import (
    RECEIVED,
    Id,
    NoInput,
    Patch,
    Timestamp,
    Wire,
    optional,
    refuse_link,
)
from chalicelib.domains.identity.flows import emails
from chalicelib.domains.identity.flows.connection_changes import (
    stage_endings,
    stage_endings_of_account,
)
from chalicelib.domains.identity.flows.memberships import stage_revocations
from chalicelib.domains.identity.rules import passwords
from chalicelib.domains.identity.rules.job_kinds import MAIL_PASSWORD_SET, MAIL_PROOF
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import mail
from chalicelib.lib.contact_fields import Email, PersonName
from chalicelib.lib.localized import Language

MIN_PASSWORD = 8
MAX_PASSWORD = 1000


def _check_length(password: str) -> str:
    # The error contains only the length, because it must never repeat a password.
    count = len(password)
    if not MIN_PASSWORD <= count <= MAX_PASSWORD:
        is_short = count < MIN_PASSWORD
        bound = f"at least {MIN_PASSWORD}" if is_short else f"at most {MAX_PASSWORD}"
        message = f"expected {bound} characters, received {count}"
        raise PydanticCustomError(
            "password_too_short" if is_short else "password_too_long",
            "{message}",
            {"message": message, RECEIVED: True},
        )
    return password


Password = Annotated[
    str,
    AfterValidator(_check_length),
    WithJsonSchema({"type": "string", "minLength": MIN_PASSWORD, "maxLength": MAX_PASSWORD}),
]


# The name of a member, which goes into e-mail.
MemberName = Annotated[PersonName, AfterValidator(refuse_link)]


class AccountCreate(Wire):
    """A new account."""

    email: Email = Field(description="E-mail address; one account has it.")
    password: Password = Field(description="Password, of at least 8 characters.")
    role: Literal["user", "admin"] = Field(default="user", description="admin edits the blog.")
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = Field(
        default="", description="Name; the e-mail address up to the @ if empty."
    )


class AccountOut(Wire):
    """An account."""

    account_id: Id = Field(description="Account id.")
    email: str = Field(description="E-mail address.")
    role: str = Field(description="user or admin.")


class AccountRef(Wire):
    """Reference to an account."""

    email: Email = Field(description="E-mail address of the account.")


class PasswordSet(AccountRef):
    """A new password."""

    password: Password = Field(description="Password, of at least 8 characters.")


class PasswordSetResult(Wire):
    """Result of setting a password."""

    account_id: Id = Field(description="Account id.")
    password_set_at: Timestamp = Field(description="When it was set. Earlier sessions have ended.")


class AccountDisabled(Wire):
    """Account that can no longer sign in."""

    account_id: Id = Field(description="Account id.")
    disabled_at: Timestamp = Field(description="When it was disabled.")
    revoked_keys: int = Field(description="API keys of the account that were revoked with it.")
    ended_connections: int = Field(description="Connected apps of the account that were ended.")


class OwnAccount(Wire):
    """Account of the person who is signed in."""

    id: Id = Field(description="Account id.")
    email: str = Field(description="E-mail address.")
    name: str = Field(description="Name that other members see.")
    role: str = Field(description="user, or admin, who edits the blog.")
    language: Language | None = Field(description="Language of the console: ru or en, or null.")
    created_at: Timestamp = Field(description="When it was created.")


class AccountPatch(Patch):
    """Changes to the caller's own account."""

    name: MemberName = optional("Name, as other members see it.")
    language: Language = optional("Language of the console and of messages: ru or en.")


class OwnAccountResult(Wire):
    """The caller's own account."""

    account: OwnAccount = Field(description="The account.")


@operation(title="Get one's own account", role=Role.ACCOUNT)
def get_account(ctx: Context, args: NoInput) -> OwnAccountResult:
    """Return the account of the person who is signed in."""
    account = accounts.get(ctx.principal.account_id)
    return OwnAccountResult(account=_to_own_account(account))


@operation(
    title="Update one's own account",
    role=Role.ACCOUNT,
    platform=True,
    idempotent=True,
    example={"name": "Ada", "language": "ru"},
)
def update_account(ctx: Context, args: AccountPatch) -> OwnAccountResult:
    """Change the name or the language of the account of the person who is signed in."""
    account = accounts.get(ctx.principal.account_id)
    actions = [getattr(AccountRow, name).set(value) for name, value in args.changes.items()]
    language = AccountRow.language
    same = language == account.language if account.language else language.does_not_exist()
    ctx.unit.update(account, actions, (AccountRow.name == account.name) & same)
    ctx.unit.mention(f"account:{account.id}")
    return OwnAccountResult(account=_to_own_account(account, **args.changes))


def _to_own_account(account: AccountRow, **changes: object) -> OwnAccount:
    attributes = {**account.attribute_values, **changes}
    return OwnAccount.from_row(attributes, id=account.id)


class EmailProof(Wire):
    """The token of the link that was mailed to the account's address."""

    token: Annotated[str, StringConstraints(max_length=100)] = Field(
        description="Token from the link in the e-mail."
    )


@operation(
    title="Prove one's own address",
    role=Role.ACCOUNT,
    platform=True,
    idempotent=True,
    example={"token": "PROOF_TOKEN"},
)
def prove_email(ctx: Context, args: EmailProof) -> OwnAccountResult:
    """Prove the address of the account of the person who is signed in, by the link mailed to it.

    Whoever reads the mail but cannot sign in proves nothing for the person who made the account.
    """
    account = accounts.get(ctx.principal.account_id)
    if not emails.is_genuine(args.token, account):
        raise NotFoundError(
            "This link is for another account. Sign in with the account that received the link.",
            key="link_of_other_account",
        )
    if not account.is_proved:
        accounts.stage_proof(ctx.unit, account)
        ctx.unit.mention(f"account:{account.id}")
        account.email_verified_at = clock.now()
    return OwnAccountResult(account=_to_own_account(account))


@operation(
    title="Request a mail that proves one's own address",
    role=Role.ACCOUNT,
    platform=True,
    idempotent=True,
)
def request_proof(ctx: Context, args: NoInput) -> OwnAccountResult:
    """Mail the link that proves the address, if it was not mailed before.

    An account gets the link once, so that nobody can mail it to the address of another again.
    """
    account = accounts.get(ctx.principal.account_id)
    if not account.is_proved and account.proof_mailed_at is None:
        stage_proof_mail(ctx.unit, account.id)
        ctx.unit.mention(f"account:{account.id}")
    return OwnAccountResult(account=_to_own_account(account))


def stage_proof_mail(unit: UnitOfWork, account_id: str) -> None:
    """Stage the e-mail by which a new account proves its address, if mail is set up."""
    if mail.is_on():
        payload = {"accountId": account_id, "at": iso(clock.now())}
        unit.create(jobs.row(MAIL_PROOF, unit.tenant, payload))


@operation(audience=OPERATOR)
def create_account(ctx: Context, args: AccountCreate) -> AccountOut:
    """Create an account."""
    name = args.name or args.email.partition("@")[0]
    account = stage_account(
        ctx.unit,
        args.email,
        password=args.password,
        name=name,
        role=args.role,
        language=None,
        proved=True,
    )
    return AccountOut(account_id=account.id, email=account.email, role=account.role)


def stage_account(  # noqa: PLR0913  the parts of an account
    unit: UnitOfWork,
    email: str,
    *,
    password: str,
    name: str,
    role: str = "user",
    language: Language | None,
    # Whether its owner has read an e-mail at the address, or is known to the operator.
    proved: bool,
    # Whether the unit starts again if an account with the address is made at the same time.
    runs_again: bool = False,
) -> AccountRow:
    """Stage a new account. Another account with the address fails the unit with a conflict."""
    now = clock.now()
    account = accounts.row(
        new_id(),
        email=email,
        name=name,
        role=role,
        language=language,
        password_hash=unit.run_side_effect_once("hash", lambda: passwords.hashed(password)),
        password_set_at=now,
        created_at=now,
        email_verified_at=now if proved else None,
        awaits_proof=None if proved else True,
    )
    unit.create(account)
    taken = None if runs_again else account_exists(account.email)
    accounts.stage_email_claim(unit, account, taken)
    return account


def account_exists(email: str) -> ConflictError:
    """Return the error for an address that has an account."""
    msg = f"{email} already has an account. Sign in, or use another e-mail address."
    return ConflictError(msg, key="account_exists")


def stage_taking(unit: UnitOfWork, account: AccountRow, *, password: str, name: str) -> None:
    """Stage that an unproved account becomes that of the person who reads its e-mail.

    Whoever made it has typed the address of another. The password is replaced, and sessions and
    connected apps end.
    """
    hashed = unit.run_side_effect_once("hash", lambda: passwords.hashed(password))
    epoch = int(account.session_epoch)
    accounts.stage_proof(
        unit,
        account,
        AccountRow.name.set(name),
        AccountRow.password_hash.set(hashed),
        AccountRow.password_set_at.set(clock.now()),
        AccountRow.session_epoch.set(epoch + 1),
        AccountRow.factor_salt.remove(),
    )
    account.session_epoch = epoch + 1
    stage_endings_of_account(unit, account.id)


@operation(audience=OPERATOR)
def set_password(ctx: Context, args: PasswordSet) -> PasswordSetResult:
    """Set an account's password, and end its sessions."""
    account = accounts.require_by_email(args.email)
    now = stage_password(ctx.unit, account, args.password, by_owner=False)
    return PasswordSetResult(account_id=account.id, password_set_at=now)


def stage_password(
    unit: UnitOfWork, account: AccountRow, password: str, *, by_owner: bool = True
) -> datetime:
    """Stage a new password, the end of the account's sessions, and an e-mail that says so."""
    now = clock.now()
    password_hash = unit.run_side_effect_once("hash", lambda: passwords.hashed(password))
    same = AccountRow.password_hash == account.password_hash
    # Counts of attempts to sign in start from zero, because their subjects contain the epoch.
    unit.update(
        account,
        [
            AccountRow.password_hash.set(password_hash),
            AccountRow.password_set_at.set(now),
            AccountRow.session_epoch.add(1),
        ],
        # An owner has proved something with the account as it was read.
        (same & AccountRow.disabled_at.does_not_exist()) if by_owner else None,
    )
    if mail.is_on():
        payload = {"accountId": account.id, "setAt": now.isoformat()}
        unit.create(jobs.row(MAIL_PASSWORD_SET, PLATFORM, payload))
    return now


@operation(audience=OPERATOR, idempotent=True, example={"email": "NEWCOMER_EMAIL"})
def disable_account(ctx: Context, args: AccountRef) -> AccountDisabled:
    """Disable an account: its sessions end, its API keys are revoked, its apps are disconnected.

    The account is disabled in the first transaction, so that no key is created afterwards. Then
    each workspace's keys and connected apps are ended in a transaction of their own, because one
    transaction may be too small for all of them. The workspace's audit log shows it. A repeated
    call ends the remaining ones.
    """
    account_id = accounts.require_by_email(args.email).id
    ctx.unit.commit_batch("account", partial(_stage_disabling, account_id=account_id))
    revoked = ended = 0
    for workspace, _ in workspaces.read_by_account(account_id):
        stage = partial(_stage_revocations, account_id=account_id, workspace_id=workspace.id)
        name = f"keys of {workspace.id}"
        counts = ctx.unit.commit_batch(name, stage, audited_in=workspace.id).split()
        revoked, ended = revoked + int(counts[0]), ended + int(counts[1])
    since = accounts.get(account_id).disabled_at
    return AccountDisabled(
        account_id=account_id, disabled_at=since, revoked_keys=revoked, ended_connections=ended
    )


def _stage_disabling(unit: UnitOfWork, account_id: str) -> bytes:
    # An account that is already disabled keeps its time.
    account = accounts.get(account_id)
    if account.disabled_at is None:
        enabled = AccountRow.disabled_at.does_not_exist()
        unit.update(account, [AccountRow.disabled_at.set(clock.now())], condition=enabled)
        unit.mention(f"account:{account_id}")
    return b""


def _stage_revocations(unit: UnitOfWork, account_id: str, *, workspace_id: str) -> bytes:
    keys = api_keys.live(workspace_id, account_id)
    connected = connections.live(workspace_id, account_id)
    stage_revocations(unit, keys)
    stage_endings(unit, connected)
    unit.mention(f"account:{account_id}")
    return f"{len(keys)} {len(connected)}".encode()
