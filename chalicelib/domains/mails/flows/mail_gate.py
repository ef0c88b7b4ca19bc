"""The gate that every e-mail passes: it is sent now, later or never.

Addresses that bounced or complained get no e-mail. A pause of a workspace's e-mails applies to what
strangers cause, or if the operator has paused them, to all e-mails to clients (ADR 93). An e-mail
is counted once, in the transaction that admits it, however often its job runs. One that was sent is
not sent again, unless the response of the mail server was lost. Beyond its budget, an e-mail that a
stranger causes is withheld, and another one waits for the next window (ADR 73). Strangers have
shares of what they may cause together (ADR 76).
"""

import logging
from collections.abc import Callable, Sequence
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
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.mails.rules import mail_budgets
from chalicelib.domains.mails.rules.mail_budgets import (
    ADVERTISING_OF_WORKSPACE,
    BUDGETS,
    LINKS_FOR_ADDRESS,
    MailClass,
)
from chalicelib.domains.mails.rules.mail_reputation import cause_of
from chalicelib.domains.mails.store import kept_messages, mail_log, mail_rates, suppressions
from chalicelib.domains.mails.store.mail_log import Reason
from chalicelib.engine import limits
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail, MailDelayedError, MailRefusedError
from chalicelib.lib import mailboxes

Forecast = Literal["sent", "waiting", "none"]
"""What will become of an e-mail: it is sent or has been, it waits, or it is not sent."""
WITHHELD: frozenset[MailClass] = frozenset({"stranger", "link"})
"""Classes of e-mail that never wait. A stranger could otherwise fill the queue."""


def is_suppressed(address: str, rows: Rows | None = None) -> bool:
    """Return whether an address gets no e-mail, because one bounced or was complained of."""
    return suppressions.find(address, rows) is not None


def is_paused(workspace_id: str, mail_class: MailClass, rows: Rows | None = None) -> bool:
    """Return whether a workspace's e-mails of a class are paused."""
    return mail_rates.find_pause(workspace_id, cause_of(mail_class), rows) is not None


def is_blocked(
    address: str, *, workspace_id: str, mail_class: MailClass, rows: Rows | None = None
) -> bool:
    """Return whether an address gets no e-mail of a class now, whatever the budgets have left."""
    if not mail.is_on() or not mail.takes(address):
        return True
    return is_suppressed(address, rows) or is_paused(workspace_id, mail_class, rows)


class Outlook(NamedTuple):
    """An e-mail that may be sent to an address, for a forecast that counts nothing.

    ``address`` is None if there is nobody to write to. ``shares`` are the subjects of the shares of
    the stranger who causes the e-mail.
    """

    address: str | None
    workspace_id: str
    plan: str
    mail_class: MailClass
    shares: Sequence[str] = ()

    def keys(self) -> list[Key]:
        """Return the keys of the rows that ``forecast`` looks at."""
        if self.address is None:
            return []
        suppression = suppressions.key_of(self.address)
        return [
            *([suppression] if suppression else ()),
            *mail_rates.pause_keys(self.workspace_id, cause_of(self.mail_class)),
            *(limits.key(limit, subject) for limit, subject in self._limits()),
        ]

    def forecast(self, rows: Rows) -> Forecast:
        """Return what will become of the e-mail, if it is sent now."""
        rows.read(self.keys())
        if self.address is not None and is_test(self.workspace_id):
            return "sent"
        if self.address is None or is_blocked(
            self.address, workspace_id=self.workspace_id, mail_class=self.mail_class, rows=rows
        ):
            return "none"
        has_room = [limits.has_room(*counter, rows) for counter in self._limits()]
        if mail_budgets.reserve(self.mail_class, BUDGETS[self.mail_class]):
            reserved, by_address, *others = has_room
            has_room = [reserved or by_address, *others]
        if all(has_room):
            return "sent"
        return "none" if self.mail_class in WITHHELD else "waiting"

    def _limits(self) -> list[tuple[Limit, str]]:
        """Return the limits that the e-mail counts for. A reserve comes first."""
        mailbox = mailboxes.mailbox_key(self.address or "")
        reserve = mail_budgets.reserve(self.mail_class, BUDGETS[self.mail_class])
        reserves = [(reserve, f"{mailbox}#{self.workspace_id}")] if reserve else []
        counters = _counters(self.workspace_id, self.mail_class, mailbox, self.plan, self.shares)
        return [*reserves, *((counter.limit, counter.subject) for counter in counters)]


def promise(  # noqa: PLR0913  what decides on an e-mail
    unit: UnitOfWork,
    address: str,
    mail_class: MailClass,
    *,
    mail_id: str,
    plan: str,
    shares: Sequence[str],
    refused: Callable[[RateLimitedError], RateLimitedError] | None = None,
) -> None:
    """Stage the admission of an e-mail in the response that promises it, for its job to send.

    The caller has asked ``is_blocked``. At commit, ``RateLimitedError``, or what ``refused`` makes
    of it, is raised if a budget is used up.
    """
    mail_log.stage_admission(unit, mail_id)
    mailbox = mailboxes.mailbox_key(address)
    for limit, subject, _ in _counters(unit.tenant, mail_class, mailbox, plan, shares):
        limits.stage(unit, limit, subject, refused=refused)


_ANY = 1_000_000
LONGEST_WAIT = timedelta(days=1)  # An e-mail that could not be sent for this long is withheld.

log = logging.getLogger(__name__)


class _Counter(NamedTuple):
    limit: Limit
    subject: str
    reason: Reason


class Verdict(NamedTuple):
    """What happens to an e-mail."""

    state: Literal["admitted", "sent", "waiting", "withheld"]
    reason: Reason | None = None  # why it waits or is withheld
    retry_at: datetime | None = None  # set if it waits


def deliver(  # noqa: PLR0913  what decides on an e-mail
    message: Mail,
    mail_class: MailClass,
    until: datetime,
    *,
    note: Callable[[Verdict], object] = lambda _: None,
    account: AccountRow | None = None,
    shares: Sequence[str] = (),
) -> None:
    """Send the e-mail of a job, if the gate admits it. That of a test workspace is kept instead.

    ``note`` gets what happens to the e-mail. ``admit`` explains the other arguments.

    Raises:
        Postponed: the e-mail waits for its budget.
        MailDelayedError: the mail server is busy. A repeated call does not count the e-mail again.
        UnavailableError: the database is unavailable.
    """
    if is_test(message.origin):
        kept_messages.keep(
            message.origin,
            channel="mail",
            recipient=message.recipient,
            subject=message.content.subject,
            text=None if message.is_secret else message.content.text,
        )
        note(Verdict("sent"))
        return
    workspace_id = message.workspace_id
    verdict = admit(
        message.recipient,
        workspace_id,
        mail_class,
        mail_id=message.id,
        until=until,
        account=account,
        shares=shares,
    )
    if verdict.state == "admitted":
        try:
            mail.send(replace(message, cause=cause_of(mail_class)) if workspace_id else message)
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
                mail_log.note_sent(_tenant(workspace_id), mail_id=message.id)
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
    shares: Sequence[str] = (),
) -> Verdict:
    """Count an e-mail and return whether it may be sent now.

    A repeated call counts nothing. ``workspace_id`` is None for an e-mail that no workspace causes.
    ``mail_id`` is the same at each attempt. From ``until`` on, the e-mail is of no use. ``account``
    is the account that the e-mail is for, except for the e-mail by which its address is proved: it
    gets no other mail until then. ``shares`` are the subjects of the shares of the stranger who
    causes the e-mail.
    """
    stored_mail = (
        mail_log.find(_tenant(workspace_id), mail_id=mail_id) if mail_class in BUDGETS else None
    )
    if stored_mail is not None and stored_mail.state != "admitted":
        return Verdict(stored_mail.state, stored_mail.reason)
    checks: dict[Reason, Callable[[], bool]] = {
        "too_late": lambda: clock.now() >= until,
        "unproved": lambda: account is not None and not account.is_proved,
        "unsupported": lambda: not mail.takes(address),
        "by_bounce": lambda: is_suppressed(address),
        "by_pause": lambda: workspace_id is not None and is_paused(workspace_id, mail_class),
    }
    if reason := next((reason for reason, applies in checks.items() if applies()), None):
        return _withhold(workspace_id, mail_class, mail_id, reason)
    if stored_mail is not None or mail_class not in BUDGETS:
        return Verdict("admitted")
    return _count(address, workspace_id, mail_class, mail_id=mail_id, until=until, shares=shares)


def _counters(
    workspace_id: str | None,
    mail_class: MailClass,
    mailbox: str,
    plan: str | None,
    shares: Sequence[str],
) -> list[_Counter]:
    if workspace_id is not None and is_test(workspace_id):
        return []  # Nobody gets the mail.
    counters = [_Counter(BUDGETS[mail_class], mailbox, "by_address")]
    if mail_class == "link":
        subjects = [f"{share}#{mailbox}" for share in shares]
        of_visitor = limits.visitor_limits(LINKS_FOR_ADDRESS, subjects, BUDGETS["link"])
        counters += [_Counter(limit, subject, "by_address") for limit, subject in of_visitor]
    if workspace_id is None or plan is None:
        return counters
    if mail_class == "advertising":
        subject = f"{mailbox}#{workspace_id}"
        counters.append(_Counter(ADVERTISING_OF_WORKSPACE, subject, "by_address"))
    for limit in mail_budgets.workspace_limits(plan, mail_class):
        counters.append(_Counter(limit, workspace_id, "by_plan"))
        if limit.share is not None:
            subjects = [f"{workspace_id}#{share}" for share in shares]
            of_visitor = limits.visitor_limits(limit.share, subjects, limit)
            counters += [_Counter(share, subject, "by_share") for share, subject in of_visitor]
    return counters


def _count(  # noqa: PLR0913  what decides on an e-mail
    address: str,
    workspace_id: str | None,
    mail_class: MailClass,
    *,
    mail_id: str,
    until: datetime,
    shares: Sequence[str],
) -> Verdict:
    # What the workspace has in reserve counts for the budget, too, but passes if that is used up.
    tenant, mailbox = _tenant(workspace_id), mailboxes.mailbox_key(address)
    budget = BUDGETS[mail_class]
    plan = workspaces.get(workspace_id).plan if workspace_id else None
    limit_counters = _counters(workspace_id, mail_class, mailbox, plan, shares)

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
        if mail_class in WITHHELD:
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
