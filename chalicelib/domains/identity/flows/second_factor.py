"""Require the second factor of an account, if its user has switched the factor on."""

from datetime import timedelta
from typing import Annotated

from pydantic import StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ValidationError
from chalicelib.core.limits import Limit
from chalicelib.domains.identity.rules import one_time_codes
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import limits
from chalicelib.gateways.master_key import derived_token

FIELD = "secondFactor"
FactorCode = Annotated[str, StringConstraints(strip_whitespace=True, max_length=30)]
"""A code of an authenticator app, or a recovery code. It may be empty."""
ATTEMPTS = Limit(
    "second-factor", "attempts to enter a code within 15 minutes", 10, timedelta(minutes=15)
)


def derive_seed(account_id: str, salt: str) -> str:
    """Return the seed of an account's codes.

    Raises the errors of ``master_key``.
    """
    return derived_token(f"second-factor\0{account_id}\0{salt}")


def require_code(ctx: Context, code: str | None, *, ends: bool = False) -> None:
    """Stage the use of a code of the account.

    An account without a second factor needs no code. ``ends`` switches the factor off.

    Raises:
        ValidationError: the code is missing, wrong or used.
        RateLimitedError: too many attempts.
    """
    account = accounts.read_by_id([ctx.principal.account_id]).get(ctx.principal.account_id)
    if account is None or account.factor_salt is None:
        return
    if not code:
        raise ValidationError.of(
            FIELD, "expected a code of your authenticator app, or a recovery code, received none"
        )
    limits.take(ATTEMPTS, account.id)
    typed_code = "".join(code.split()).lower()
    code_seed = derive_seed(account.id, account.factor_salt)
    last_step, used = int(account.factor_step or 0), int(account.factor_used or 0)
    step = one_time_codes.matching_step(code_seed, typed_code, last_step, clock.now())
    if step is not None:
        accounts.stage_factor_use(ctx.unit, account, step, used, ends=ends)
        return
    number = one_time_codes.matching_recovery_code(code_seed, typed_code, used)
    if number is None:
        raise ValidationError.of(
            FIELD, "expected the code that your app shows now, received a wrong or a used one"
        )
    accounts.stage_factor_use(ctx.unit, account, last_step, used | 1 << number, ends=ends)
