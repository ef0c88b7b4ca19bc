"""Switch a second factor on and off.

Its codes are required before money or the credentials of a payment provider are changed.
"""

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
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.identity.flows.second_factor import FIELD, derive_seed, require_code
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


class RecoveryCodes(Wire):
    """Codes for the time when the phone is lost."""

    recovery_codes: list[str] = Field(description="Codes that each work once.")


class SecondFactorEnd(Wire):
    """A code that proves the second factor."""

    second_factor: Code = Field(description="Code of the app, or a recovery code.")


class SecondFactorState(Wire):
    """Whether the account has a second factor."""

    is_on: bool = Field(description="Whether codes are asked for.")


@operation(title="Prepare one's own second factor", role=Role.ACCOUNT, reads=True)
def prepare_second_factor(ctx: Context, args: SecondFactorStart) -> NewSecondFactor:
    """Return a new secret for an authenticator app, which is stored once a code proves it."""
    account = accounts.get(ctx.principal.account_id)
    salt = args.salt or token_urlsafe(16)
    secret = second_factor.app_secret(derive_seed(account.id, salt))
    product_name = settings().product_name
    label, issuer = quote(f"{product_name}:{account.email}"), quote(product_name)
    url = f"otpauth://totp/{label}?secret={secret}&issuer={issuer}"
    return NewSecondFactor(salt=salt, secret=secret, url=url)


@operation(title="Switch one's own second factor on", role=Role.ACCOUNT, platform=True)
def set_second_factor(ctx: Context, args: SecondFactorSet) -> RecoveryCodes:
    """Require codes from now on, and return the recovery codes, which are shown once."""
    account = accounts.get(ctx.principal.account_id)
    if account.factor_salt is not None:
        raise ConflictError("A second factor is on already. Switch it off first.")
    code_seed = derive_seed(account.id, args.salt)
    step = second_factor.matching_step(code_seed, args.second_factor, 0, clock.now())
    if step is None:
        raise ValidationError.of(
            FIELD, "expected the code that the app shows now, received another one"
        )
    accounts.stage_second_factor(ctx.unit, account, args.salt, step)
    ctx.unit.mention(f"account:{account.id}")
    return RecoveryCodes(recovery_codes=second_factor.recovery_codes(code_seed))


@operation(audience=OPERATOR)
def remove_second_factor(ctx: Context, args: AccountRef) -> SecondFactorState:
    """Require no codes of an account any more, whose user has lost phone and recovery codes."""
    account = accounts.require_by_email(args.email)
    ctx.unit.update(account, [AccountRow.factor_salt.remove()])
    ctx.unit.mention(f"account:{account.id}")
    return SecondFactorState(is_on=False)


@operation(title="Switch one's own second factor off", role=Role.ACCOUNT, platform=True)
def end_second_factor(ctx: Context, args: SecondFactorEnd) -> SecondFactorState:
    """Require no codes any more, if the caller proves by a code to have the second factor."""
    account = accounts.get(ctx.principal.account_id)
    require_code(ctx, args.second_factor, ends=True)
    ctx.unit.mention(f"account:{account.id}")
    return SecondFactorState(is_on=False)
