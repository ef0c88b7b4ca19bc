"""Switch a second factor on and off, and say whether signing in needs it."""

from secrets import token_urlsafe
from typing import Annotated
from urllib.parse import quote

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ValidationError
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import NoInput, Wire, optional
from chalicelib.domains.identity.flows.confirmation import confirmed, stage_mail
from chalicelib.domains.identity.flows.second_factor import FIELD, derive_seed
from chalicelib.domains.identity.operations.accounts import AccountRef
from chalicelib.domains.identity.rules import one_time_codes as second_factor
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow

Salt = Annotated[str, StringConstraints(min_length=16, max_length=64)]
Code = Annotated[str, StringConstraints(strip_whitespace=True, min_length=6, max_length=30)]


class NewSecondFactor(Wire):
    """A second factor to add to an authenticator app."""

    salt: str = Field(description="Value to send with the first code.")
    secret: str = Field(description="Secret for the app, in base32.")
    url: str = Field(description="otpauth URL, which opens an app on a phone.")


class SecondFactorStart(Wire):
    """The request of a secret."""

    salt: Salt | None = optional("Value of a secret that was returned before, to return it again.")


class SecondFactorSet(Wire):
    """The first code of a new second factor."""

    salt: Salt = Field(description="Value that came with the secret.")
    second_factor: Code = Field(description="Code that the app shows.")
    is_asked: bool = Field(default=True, description="Whether signing in asks for a code.")


class RecoveryCodes(Wire):
    """Codes for the time when the phone is lost."""

    recovery_codes: list[str] = Field(description="Codes that each work once.")


class SignInFactor(Wire):
    """Whether signing in needs a code."""

    is_asked: bool = Field(description="Whether signing in asks for a code.")


class SecondFactorState(Wire):
    """Whether the account has a second factor."""

    is_on: bool = Field(description="Whether codes are asked for.")


@operation(title="Prepare one's own second factor", role=Role.ACCOUNT, reads=True)
def prepare_second_factor(ctx: Context, args: SecondFactorStart) -> NewSecondFactor:
    """Return a new secret for an authenticator app, which is stored once a code proves it."""
    account = accounts.get(ctx.principal.account_id)
    salt = args.salt or token_urlsafe(16)
    secret = second_factor.app_secret(derive_seed(account.id, salt=salt))
    product_name = settings().product_name
    label, issuer = quote(f"{product_name}:{account.email}"), quote(product_name)
    url = f"otpauth://totp/{label}?secret={secret}&issuer={issuer}"
    return NewSecondFactor(salt=salt, secret=secret, url=url)


@operation(
    title="Switch one's own second factor on",
    role=Role.ACCOUNT,
    platform=True,
    confirm=confirmed(is_fresh=True),
)
def set_second_factor(ctx: Context, args: SecondFactorSet) -> RecoveryCodes:
    """Require codes from now on, and return the recovery codes, which are shown once."""
    account = accounts.get(ctx.principal.account_id)
    if account.factor_salt is not None:
        raise ConflictError(
            "A second factor is on already. Switch it off first.", key="second_factor_on"
        )
    code_seed = derive_seed(account.id, salt=args.salt)
    step = second_factor.matching_step(
        code_seed, code=args.second_factor, last_step=0, now=clock.now()
    )
    if step is None:
        raise ValidationError.of(
            FIELD,
            message="expected the code that the app shows now, received another one",
            key="incorrect",
        )
    accounts.stage_second_factor(ctx.unit, account, args.salt, step=step, at_sign_in=args.is_asked)
    ctx.unit.mention(f"account:{account.id}")
    return RecoveryCodes(recovery_codes=second_factor.recovery_codes(code_seed))


@operation(
    title="Ask for codes when signing in",
    role=Role.ACCOUNT,
    platform=True,
    idempotent=True,
    confirm=confirmed(is_fresh=True),
    example={"isAsked": True},
)
def set_sign_in_factor(ctx: Context, args: SignInFactor) -> SignInFactor:
    """Ask for a code of the second factor at each sign-in, or only before what a thief wants."""
    account = accounts.get(ctx.principal.account_id)
    ctx.unit.update(account, [AccountRow.sign_in_factor.set(args.is_asked)])
    ctx.unit.mention(f"account:{account.id}")
    return args


@operation(title="Forget remembered browsers", role=Role.ACCOUNT, platform=True, idempotent=True)
def forget_browsers(ctx: Context, args: NoInput) -> SecondFactorState:
    """Ask for a code at the next sign-in in every browser that was remembered."""
    account = accounts.get(ctx.principal.account_id)
    ctx.unit.update(account, [AccountRow.factor_epoch.set(int(account.factor_epoch or 0) + 1)])
    ctx.unit.mention(f"account:{account.id}")
    return SecondFactorState(is_on=account.factor_salt is not None)


@operation(audience=OPERATOR, example={"email": "OWNER_EMAIL"})
def remove_second_factor(ctx: Context, args: AccountRef) -> SecondFactorState:
    """Require no codes of an account any more, whose user has lost phone and recovery codes."""
    account = accounts.require_by_email(args.email)
    if account.factor_salt is not None:
        accounts.stage_factor_end(ctx.unit, account)
        stage_mail(
            ctx.unit, account, "remove_second_factor", workspace_id=ctx.principal.workspace_id
        )
    ctx.unit.mention(f"account:{account.id}")
    return SecondFactorState(is_on=False)


@operation(
    title="Switch one's own second factor off",
    role=Role.ACCOUNT,
    platform=True,
    confirm=confirmed(is_fresh=True),
)
def end_second_factor(ctx: Context, args: NoInput) -> SecondFactorState:
    """Require no codes any more, if the caller proves by a code to have the second factor."""
    account = accounts.get(ctx.principal.account_id)
    if account.factor_salt is not None:
        accounts.stage_factor_end(ctx.unit, account)
    ctx.unit.mention(f"account:{account.id}")
    return SecondFactorState(is_on=False)
