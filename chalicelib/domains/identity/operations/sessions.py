"""Sign in to the console, sign out, and change one's own password."""

from datetime import datetime, timedelta
from secrets import token_urlsafe
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, UnauthorizedError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire, optional
from chalicelib.domains.identity.flows import confirmation, devices, second_factor, sign_in_proofs
from chalicelib.domains.identity.flows.connection_changes import stage_endings_of_account
from chalicelib.domains.identity.operations.accounts import MAX_PASSWORD, Password, stage_password
from chalicelib.domains.identity.rules import passwords
from chalicelib.domains.identity.store import accounts, console_sessions
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import limits
from chalicelib.lib.contact_fields import Email
from chalicelib.lib.localized import Language

ATTEMPTS_WINDOW = timedelta(minutes=15)
MAX_BROWSER = 200
MAX_DEVICE = 500
MAX_CODE = 30

Browser = Annotated[str, AfterValidator(lambda text: text[:MAX_BROWSER])]
RememberedCookie = Annotated[str, StringConstraints(max_length=sign_in_proofs.MAX_COOKIE)]


class SignIn(Wire):
    """Credentials of a sign-in."""

    email: Email = Field(description="E-mail address of the account.")
    password: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PASSWORD)] = Field(
        description="Password of the account."
    )
    browser: Browser = Field(default="", description="The browser's User-Agent header.")
    language: Language | None = optional(
        "Language that the person chose on the page: ru or en. An account that has one keeps it."
    )
    page_language: Language | None = optional(
        "Language of the page: ru or en. Messages use it while the account has no language."
    )
    device: Annotated[str, StringConstraints(max_length=MAX_DEVICE)] = Field(
        default="", description="The browser's device cookie."
    )
    remembered: RememberedCookie = Field(
        default="", description="The cookie of a browser that needs no codes."
    )


# For one account, and one device or one visitor without a device.
ATTEMPTS = Limit(
    "sign-in", "attempts to sign in to an account within 15 minutes", 10, ATTEMPTS_WINDOW
)
# For one device, or one visitor without a device, and all accounts. The limit is high, because an
# office may share an IP address. A list of stolen passwords is longer.
ATTEMPTS_FROM_ONE_PLACE = Limit(
    "sign-in-place", "attempts to sign in within 15 minutes", 100, ATTEMPTS_WINDOW
)
# For one e-mail address, even if no account has it. Attempts from devices of the account count
# apart from attempts of other visitors.
FAILURES = Limit(
    "sign-in-failures",
    "failed attempts to sign in to an account within an hour",
    50,
    timedelta(hours=1),
    share=ATTEMPTS,
)
PASSWORD_CHANGES = Limit(
    "password-change", "attempts to change the password within 15 minutes", 10, ATTEMPTS_WINDOW
)


class SignedIn(Wire):
    """A new session."""

    account_id: Id = Field(description="Account id.")
    token: str | None = Field(description="The session's token, for its cookie.")


class CodeAwaited(Wire):
    """A right password of an account that also needs a code of its second factor."""

    proof: str = Field(description="Value to send with the code within ten minutes.")


class SignInCode(Wire):
    """The code of a sign-in, after the password."""

    proof: Annotated[str, StringConstraints(max_length=sign_in_proofs.MAX_LENGTH)] = Field(
        description="Value that came after the password."
    )
    code: Annotated[str, StringConstraints(max_length=MAX_CODE)] = Field(
        description="Code of the app, or a recovery code."
    )
    browser: Browser = Field(default="", description="The browser's User-Agent header.")
    remember: bool = Field(default=False, description="Whether to remember the browser.")
    remembered: RememberedCookie = Field(
        default="", description="The cookie of a browser that needs no codes."
    )


class SignedInByCode(SignedIn):
    """A new session, and the browser's cookie if it is to be remembered."""

    remembered: str | None = Field(description="The browser's new cookie, or null.")


class SessionRef(Wire):
    """Reference to a session."""

    id: Id = Field(description="Session id.")


class SessionOut(SessionRef):
    """A session of the account."""

    browser: str = Field(description="The browser's User-Agent header at sign-in.")
    created_at: Timestamp = Field(description="When it started.")
    seen_at: Timestamp = Field(description="When it was last used, to ten minutes.")
    current: bool = Field(description="Whether it is the session of this call.")


class SessionList(Wire):
    """Live sessions."""

    sessions: list[SessionOut] = Field(description="Live sessions, latest first.")


class SessionEnded(SessionRef):
    """A session that has ended."""


class SignedOut(Wire):
    """An account whose sessions have all ended."""

    account_id: Id = Field(description="Account id.")


class PasswordChange(Wire):
    """A new password, with the current one as proof."""

    current: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PASSWORD)] = Field(
        description="The current password."
    )
    password: Password = Field(description="The new password, of at least 8 characters.")
    end_connections: bool = Field(
        default=False, description="Whether to disconnect the account's apps in all workspaces."
    )


@operation(title="Sign in", audience=PUBLIC, platform=True, secret="token")  # noqa: S106  the name of the field
def sign_in(ctx: Context, args: SignIn) -> SignedIn | CodeAwaited:
    """Start a session, or ask for a code of the second factor.

    A wrong address, a wrong password and a disabled account fail alike.
    """
    account = accounts.find_by_email(args.email)
    attempt_counts = ctx.unit.run_side_effect_once(
        "count", lambda: _count_attempt(ctx, args, account)
    )
    # Checked on each attempt: the password may have been changed since the last one.
    is_correct = passwords.matches(account.password_hash if account else None, args.password)
    if account is None or not is_correct or account.disabled_at is not None:
        raise UnauthorizedError(
            "The e-mail address or the password is wrong. Check both, and try again.",
            key="wrong_credentials",
        )
    changes = []
    if passwords.outdated(account.password_hash):
        renewed = ctx.unit.run_side_effect_once("hash", lambda: passwords.hashed(args.password))
        changes.append(AccountRow.password_hash.set(renewed))
    if args.language is not None and account.language is None:
        changes.append(AccountRow.language.set(args.language))
    if args.page_language not in {None, account.page_language}:
        changes.append(AccountRow.page_language.set(args.page_language))
    same = AccountRow.password_hash == account.password_hash
    if changes:
        ctx.unit.update(account, changes, condition=same)
    else:
        ctx.unit.require(account, same)
    ctx.unit.after_commit(lambda: limits.give_back(FAILURES, *attempt_counts))
    if account.signs_in_by_code and not sign_in_proofs.is_remembered(args.remembered, account):
        return CodeAwaited(proof=sign_in_proofs.after_password(account))
    return SignedIn(account_id=account.id, token=begin_session(ctx, account, args.browser))


@operation(
    title="Sign in by a code",
    audience=PUBLIC,
    platform=True,
    secret="token",  # noqa: S106  the name of the field
)
def sign_in_by_code(ctx: Context, args: SignInCode) -> SignedInByCode:
    """Start a session of an account whose password was right, by a code of its second factor."""
    account = sign_in_proofs.account_of(args.proof)
    # A new password begins new counts. Whoever has guessed here does not lock the owner's sessions.
    guesser = f"{account.id}#sign-in#{int(account.session_epoch)}"
    second_factor.stage_code(ctx.unit, account, args.code, subject=guesser)
    cookie = sign_in_proofs.remember(args.remembered, account) if args.remember else None
    token = begin_session(ctx, account, args.browser, is_confirmed=True)
    return SignedInByCode(account_id=account.id, token=token, remembered=cookie)


def _count_attempt(ctx: Context, args: SignIn, account: AccountRow | None) -> tuple[str, datetime]:
    # An attempt counts as failed until it has succeeded, so that attempts at the same moment cannot
    # exceed the limit together. A new password begins new counts, because it raises the epoch. The
    # subjects contain a hash of the address, not the address.
    # Without an account the cookie is checked, too: reading the master key takes time.
    device = devices.id_for(args.device, account_id=account.id if account else "")
    caller = f"device:{device}" if device else ctx.principal.rate_limit_key
    epoch = int(account.session_epoch) if account else 0
    subject = f"{accounts.email_hash(args.email)}#{epoch}"
    callers = (caller,) if device else ctx.principal.share_subjects
    limits.take_share(ATTEMPTS, [f"{each}#{subject}" for each in callers], shared=FAILURES)
    limits.take_share(ATTEMPTS_FROM_ONE_PLACE, callers)
    failures, now = subject + ("#devices" if device else ""), clock.now()
    limits.take(FAILURES, failures)
    return failures, now


@operation(platform=True, role=Role.ACCOUNT)
def list_sessions(ctx: Context, args: NoInput) -> SessionList:
    """List the sessions of the account."""
    caller = _session(ctx)
    rows = console_sessions.read_live(accounts.get(caller.account_id))
    return SessionList(
        sessions=[
            SessionOut.from_row(
                row.attribute_values,
                id=row.session_id,
                current=row.session_id == caller.session_id,
            )
            for row in rows
        ]
    )


@operation(idempotent=True, platform=True, role=Role.ACCOUNT, example={"id": "SIGN_IN_ID"})
def end_session(ctx: Context, args: SessionRef) -> SessionEnded:
    """End a session of the account: the current one or another."""
    account = accounts.get(_session(ctx).account_id)
    for row in console_sessions.read_live(account):
        if row.session_id == args.id:
            ctx.unit.delete(row)
            ctx.unit.delete(console_sessions.lookup(row))
            ctx.unit.mention(f"account:{account.id}")
            return SessionEnded(id=row.session_id)
    raise NotFoundError("This account has no open session with this id.", key="session")


@operation(title="Sign out everywhere", idempotent=True, platform=True, role=Role.ACCOUNT)
def sign_out_everywhere(ctx: Context, args: NoInput) -> SignedOut:
    """End every session of the account, including the current one, and disconnect its apps."""
    account = accounts.get(_session(ctx).account_id)
    stage_endings_of_account(ctx.unit, account.id)
    ctx.unit.update(account, [AccountRow.session_epoch.add(1)])
    ctx.unit.mention(f"account:{account.id}")
    return SignedOut(account_id=account.id)


@operation(
    title="Change one's own password",
    role=Role.ACCOUNT,
    limit=PASSWORD_CHANGES,
    platform=True,
    secret="token",  # noqa: S106  the name of the field
)
def change_password(ctx: Context, args: PasswordChange) -> SignedIn:
    """Change the account's password, end its sessions, and start a new session for the caller.

    ``endConnections`` disconnects the account's apps, too. If the form is sent twice at the same
    time, both calls succeed.
    """
    caller = _session(ctx)
    account = accounts.get(caller.account_id)
    own_sessions = [
        s for s in console_sessions.read_live(account) if s.session_id == caller.session_id
    ]
    browser = own_sessions[0].browser if own_sessions else ""
    if not passwords.matches(account.password_hash, args.current):  # as in ``sign_in``
        if own_sessions or not passwords.matches(account.password_hash, args.password):
            raise ValidationError.of(
                "current",
                message="expected the current password, received another one",
                key="incorrect",
            )
        # The form was sent twice. The first call ended the session after this call began. The
        # browser may receive only this response, so this response starts a session, too.
        ctx.unit.require(account, AccountRow.password_hash == account.password_hash)
        return SignedIn(account_id=account.id, token=begin_session(ctx, account, browser))
    epoch = int(account.session_epoch)
    stage_password(ctx.unit, account, args.password)
    account.session_epoch = epoch + 1
    if args.end_connections:
        stage_endings_of_account(ctx.unit, account.id)
    return SignedIn(account_id=account.id, token=begin_session(ctx, account, browser))


def _session(ctx: Context) -> SessionPrincipal:
    if not isinstance(ctx.principal, SessionPrincipal):
        raise TypeError("only sessions can use this operation")
    return ctx.principal


def begin_session(
    ctx: Context, account: AccountRow, browser: str, *, is_confirmed: bool = False
) -> str:
    """Stage a new session, confirmed by a code just now or not. Return its 256-bit token."""
    token = ctx.unit.run_side_effect_once("token", lambda: token_urlsafe(32))
    row = console_sessions.row(token, account, new_id(), browser=browser)
    if is_confirmed:
        row.factor_until = clock.now() + confirmation.LASTS
    ctx.unit.create(row)
    ctx.unit.create(console_sessions.lookup(row))
    ctx.unit.mention(f"account:{account.id}")
    return token
