"""Ask a user for a code or the password where a thief of the session could reach money or stay."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import UnauthorizedError, ValidationError
from chalicelib.core.principals import PLATFORM, SessionPrincipal
from chalicelib.domains.identity.flows import second_factor
from chalicelib.domains.identity.rules import passwords
from chalicelib.domains.identity.rules.job_kinds import MAIL_CONFIRMED
from chalicelib.domains.identity.store import accounts, console_sessions
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.console_sessions import ConsoleSessionRow
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import mail

PASSWORD_FIELD = "currentPassword"  # noqa: S105  the name of a field
LASTS = timedelta(seconds=60)  # for which a code or a password counts in its session


def confirmed(
    *,
    when: Callable[[Any], bool] = lambda _: True,
    is_fresh: bool = False,
    is_mailed: bool = True,
) -> Callable[[Context, Any, str], None]:
    """Return the check of an operation that a user must confirm, to declare as ``confirm``.

    ``when`` returns whether an input needs it. A code of a minute ago does not count for
    ``is_fresh``. Unless ``is_mailed`` is false, an e-mail tells the account of each call.
    """

    def check(ctx: Context, args: Any, operation: str) -> None:  # noqa: ANN401  the input
        caller = ctx.principal
        # A key needs no code, because whoever made it has given one.
        if not isinstance(caller, SessionPrincipal) or not when(args):
            return
        # The proof is committed before the operation, whose transaction may write the account, too.
        # If the operation fails, its form can be sent again within the minute.
        account = ctx.unit.run_side_effect_once(
            "confirmation",
            lambda: run_unit(PLATFORM, None, lambda unit: _stage_proof(unit, caller, is_fresh)),
        )
        if is_mailed:
            stage_mail(ctx.unit, account, operation, workspace_id=caller.workspace_id)

    return check


def _stage_proof(unit: UnitOfWork, caller: SessionPrincipal, is_fresh: bool) -> AccountRow:  # noqa: FBT001  private
    account, session = accounts.get(caller.account_id), None
    if caller.session_id:
        session = console_sessions.find_by_id(account.id, session_id=caller.session_id)
        if session is None or not session.lives(account):
            raise UnauthorizedError("This session has ended. Sign in again.", key="session_ended")
        if session.is_confirmed and not is_fresh:
            return account
    if account.factor_salt is not None:
        second_factor.stage_code(unit, account, caller.code, subject=account.id)
    elif not caller.password:
        raise ValidationError.of(
            PASSWORD_FIELD, message="expected your password, received none", key="required"
        )
    elif not second_factor.is_right(
        unit, account.id, lambda: passwords.matches(account.password_hash, caller.password)
    ):
        raise ValidationError.of(
            PASSWORD_FIELD, message="expected your password, received another one", key="incorrect"
        )
    else:
        unit.require(account, AccountRow.password_hash == account.password_hash)
    if session is not None:
        lasts = ConsoleSessionRow.factor_until.set(clock.now() + LASTS)
        unit.update(session, [lasts], ConsoleSessionRow.pk.exists())
    return account


def stage_mail(unit: UnitOfWork, account: AccountRow, operation: str, *, workspace_id: str) -> None:
    """Stage the e-mail that tells an account of a confirmed operation, if mail is set up."""
    if mail.is_on():
        payload = {
            "accountId": account.id,
            "operation": operation,
            "workspaceId": workspace_id,
            "at": iso(clock.now()),
        }
        unit.create(jobs.row(MAIL_CONFIRMED, PLATFORM, payload))
        unit.outbox.is_confirmed = True
