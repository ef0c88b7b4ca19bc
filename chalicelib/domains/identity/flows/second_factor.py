"""Check codes of an account's second factor, and count the wrong ones."""

from collections.abc import Callable
from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.core.errors import ValidationError
from chalicelib.core.limits import Limit
from chalicelib.domains.identity.rules import one_time_codes
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways.master_key import derived_token

FIELD = "secondFactor"
ATTEMPTS = Limit(
    "second-factor", "wrong codes or passwords within 15 minutes", 10, timedelta(minutes=15)
)


def derive_seed(account_id: str, *, salt: str) -> str:
    """Return the seed of an account's codes. Raises the errors of ``master_key``."""
    return derived_token(f"second-factor\0{account_id}\0{salt}")


def is_right(unit: UnitOfWork, subject: str, check: Callable[[], bool]) -> bool:
    """Return the result of a check, which counts if it is wrong, or raise RateLimitedError."""

    # The attempt is counted before the check, so that guesses at the same moment cannot exceed the
    # limit together.
    def count() -> datetime:
        limits.take(ATTEMPTS, subject)
        return clock.now()

    counted_at = unit.run_side_effect_once("attempt", count)
    if not check():
        return False
    unit.run_side_effect_once(
        "right attempt", lambda: limits.give_back(ATTEMPTS, subject, counted_at)
    )
    return True


def stage_code(unit: UnitOfWork, account: AccountRow, code: str, *, subject: str) -> None:
    """Stage the use of a code of an account's second factor, which counts once.

    Raises ValidationError, or RateLimitedError if ``subject`` has sent too many wrong codes.
    """
    if not code:
        raise ValidationError.of(
            FIELD,
            message="expected a code of your authenticator app, or a recovery code, received none",
            key="required",
        )
    if not is_right(unit, subject, lambda: _stage_use(unit, account, code)):
        raise ValidationError.of(
            FIELD,
            message="expected the code that your app shows now, received a wrong or a used one",
            key="incorrect",
        )


def _stage_use(unit: UnitOfWork, account: AccountRow, code: str) -> bool:
    typed_code = "".join(code.split()).lower()
    code_seed = derive_seed(account.id, salt=account.factor_salt)
    last_step, used = int(account.factor_step or 0), int(account.factor_used or 0)
    step = one_time_codes.matching_step(
        code_seed, code=typed_code, last_step=last_step, now=clock.now()
    )
    if step is not None:
        accounts.stage_factor_use(unit, account, step=step, used=used)
        return True
    number = one_time_codes.matching_recovery_code(code_seed, code=typed_code, used=used)
    if number is None:
        return False
    accounts.stage_factor_use(unit, account, step=last_step, used=used | 1 << number)
    return True
