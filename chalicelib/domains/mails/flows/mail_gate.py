"""The gate that every e-mail passes: it is sent now, later or never.

Addresses that bounced or complained get no e-mail, and a paused workspace sends none to visitors.
An e-mail is counted once, in the transaction that admits it, however often its job runs. One that
was sent is not sent again, unless the response of the mail server was lost. Beyond its budget, an
e-mail that a stranger causes is withheld, and another one waits for the next window (ADR 73).
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.jobs import Postponed
from chalicelib.core.limits import Limit
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.mails.rules import mail_budgets
from chalicelib.domains.mails.rules.mail_budgets import BUDGETS, MailClass
from chalicelib.domains.mails.store import mail_log, mail_rates, suppressions
from chalicelib.domains.mails.store.mail_log import Reason
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail, MailDelayedError, MailRefusedError


def is_suppressed(address: str) -> bool:
    """Return whether an address gets no e-mail, because one bounced or was complained of."""
    return bool(suppressions.find(address))


def is_paused(workspace_id: str) -> bool:
    """Return whether a workspace's e-mails to visitors are paused until an operator resumes."""
    return mail_rates.pause_reason(workspace_id) is not None


_ANY = 1_000_000
LONGEST_WAIT = timedelta(days=1)
"""An e-mail that could not be sent for this long is withheld."""

log = logging.getLogger(__name__)


class Verdict(NamedTuple):
    """What happens to an e-mail. ``retry_at`` is set if it waits.

    ``reason`` says why it waits or is withheld.
    """

    state: Literal["admitted", "sent", "waiting", "withheld"]
    reason: Reason | None = None
    retry_at: datetime | None = None


def deliver(
    message: Mail,
    mail_class: MailClass,
    until: datetime,
    *,
    note: Callable[[Verdict], object] = lambda _: None,
    account: AccountRow | None = None,
) -> None:
    """Send the e-mail of a job, if the gate admits it. ``note`` gets what happens to the e-mail.

    ``admit`` explains the other arguments.

    Raises:
        Postponed: the e-mail waits for its budget.
        MailDelayedError: the mail server is busy. A repeated call does not count the e-mail again.
        UnavailableError: the database is unavailable.
    """
    workspace_id = message.workspace_id
    verdict = admit(
        message.recipient,
        workspace_id,
        mail_class,
        mail_id=message.id,
        until=until,
        account=account,
    )
    if verdict.state == "admitted":
        try:
            mail.send(message)
        except MailRefusedError:
            verdict = _withhold(workspace_id, mail_class, message.id, "refused")
        except MailDelayedError:
            # The e-mail is admitted already, so the next attempt does not count for the budget
            # again.
            note(Verdict("waiting", "by_server"))
            raise
        else:
            if mail_class in BUDGETS:
                # The mark is written after the mail, because a crash in between must not lose the
                # mail.
                mail_log.note_sent(_tenant(workspace_id), message.id)
            verdict = Verdict("sent")
    note(verdict)
    if verdict.retry_at is not None:
        raise Postponed(verdict.retry_at)


def admit(  # noqa: PLR0913  what decides on an e-mail
    address: str,
    workspace_id: str | None,
    mail_class: MailClass,
    *,
    mail_id: str,
    until: datetime,
    account: AccountRow | None = None,
) -> Verdict:
    """Count an e-mail and return whether it may be sent now. A repeated call counts nothing.

    ``workspace_id`` is None for an e-mail that no workspace causes. ``mail_id`` is the same at each
    attempt. From ``until`` on, the e-mail is of no use. ``account`` is the account that the e-mail
    is for, except for the e-mail by which its address is proved: it gets no other mail until then.

    Raises:
        UnavailableError: the database is unavailable.
    """
    stored_mail = mail_log.find(_tenant(workspace_id), mail_id) if mail_class in BUDGETS else None
    if stored_mail is not None and stored_mail.state != "admitted":
        return Verdict(stored_mail.state, stored_mail.reason)
    checks: dict[Reason, Callable[[], bool]] = {
        "too_late": lambda: clock.now() >= until,
        "unproved": lambda: account is not None and not account.is_proved,
        "unsupported": lambda: not mail.takes(address),
        "by_bounce": lambda: is_suppressed(address),
        "by_pause": lambda: workspace_id is not None and is_paused(workspace_id),
    }
    if reason := next((reason for reason, applies in checks.items() if applies()), None):
        return _withhold(workspace_id, mail_class, mail_id, reason)
    if stored_mail is not None or mail_class not in BUDGETS:
        return Verdict("admitted")
    return _count(address, workspace_id, mail_class, mail_id, until)


def _count(
    address: str, workspace_id: str | None, mail_class: MailClass, mail_id: str, until: datetime
) -> Verdict:
    """Count an e-mail for the budget of its address and the plan.

    What the workspace has in reserve counts for the budget, too, but passes if that is used up.
    """
    tenant, mailbox = _tenant(workspace_id), mail_budgets.budget_key(address)
    budget = BUDGETS[mail_class]
    limit_counters: list[tuple[Limit, str, Reason]] = [(budget, mailbox, "by_address")]
    if workspace_id is not None:
        plan = workspaces.get(workspace_id).plan
        shared = mail_budgets.workspace_limits(plan, mail_class)
        limit_counters += [(limit, workspace_id, "by_plan") for limit in shared]

    def stage(unit: UnitOfWork, reservation: Limit | None = None) -> None:
        mail_log.stage_admission(unit, mail_id)
        for limit, subject, _ in limit_counters:
            is_bound = reservation is None or limit is not budget
            # The condition compares with a very large number, so the counter rises beyond its
            # limit.
            limits.stage(unit, limit if is_bound else replace(limit, max_requests=_ANY), subject)
        if reservation is not None:
            limits.stage(unit, reservation, f"{mailbox}#{tenant}")

    if reservation := mail_budgets.reserve(mail_class, budget):
        with suppress(RateLimitedError):
            run_unit(tenant, None, partial(stage, reservation=reservation))
            return Verdict("admitted")
    try:
        run_unit(tenant, None, stage)
    except RateLimitedError as error:
        reason = next(
            (why for limit, subject, why in limit_counters if _is_used_up(limit, subject)), None
        )
        # A stranger could otherwise fill the queue with e-mails that wait.
        if mail_class == "stranger":
            return _withhold(workspace_id, mail_class, mail_id, reason or "by_address")
        retry_at = clock.now() + timedelta(seconds=int(error.headers["Retry-After"]))
        # The e-mail is of no use after ``until``, so its job must not wait for longer.
        return Verdict("waiting", reason or "by_address", min(retry_at, until))
    return Verdict("admitted")


def _is_used_up(limit: Limit, subject: str) -> bool:
    try:
        limits.check(limit, subject)
    except RateLimitedError:
        return True
    return False


def _withhold(
    workspace_id: str | None, mail_class: MailClass, mail_id: str, reason: Reason
) -> Verdict:
    log.info("a mail is withheld", extra={"mail": mail_id, "reason": reason})
    if mail_class in BUDGETS:
        stage = partial(mail_log.stage_withheld, mail_id=mail_id, reason=reason)
        run_unit(_tenant(workspace_id), None, stage)
    return Verdict("withheld", reason)


def _tenant(workspace_id: str | None) -> str:
    return workspace_id or PLATFORM
