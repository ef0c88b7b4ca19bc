"""Rates of bounces and complaints, by who has caused the e-mails, and the pauses that follow."""

from datetime import timedelta
from typing import Literal, NamedTuple

from chalicelib.domains.mails.rules.mail_budgets import BY_STRANGERS, MailClass

Measure = Literal["sent", "bounced", "complained"]
Suppression = Literal["bounce", "complaint"]
Pause = Literal["bounces", "complaints"]
# Who has caused an e-mail, or that it advertises.
Cause = Literal["stranger", "business", "advertising"]
# High rates of what strangers have caused pause what strangers cause, and those of advertising
# pause advertising. Everything else is paused by the operator only.
PAUSED_BY_RATES: tuple[Cause, ...] = ("stranger", "advertising")
FIRST_PAUSE, LONGEST_PAUSE = timedelta(days=1), timedelta(days=7)
# E-mails below which bounces pause nothing. One of a few e-mails would be a high rate.
LEAST_SENT = 50
MOST_BOUNCED = 0.05  # From 5 % of the e-mails on, AWS reviews the account of the whole service.
# Complaints below which nothing is paused. One is above the limit of any 1,000 e-mails or fewer.
LEAST_COMPLAINTS = 2
# From 0.1 % of the e-mails on, AWS reviews the account of the whole service.
MOST_COMPLAINED = 0.001


def cause_of(mail_class: MailClass) -> Cause:
    """Return who has caused an e-mail of a class."""
    if mail_class == "advertising":
        return "advertising"
    return "stranger" if mail_class in BY_STRANGERS else "business"


def next_pause(last: timedelta | None) -> timedelta:
    """Return the length of a pause after the last one, or of the first. It doubles up to a week."""
    return FIRST_PAUSE if last is None else min(2 * last, LONGEST_PAUSE)


class Counts(NamedTuple):
    """E-mails of a workspace with one cause."""

    sent: int
    bounced: int
    complained: int

    @property
    def pause(self) -> Pause | None:
        """Why the rates are too high, or None."""
        if self.complained >= LEAST_COMPLAINTS and self.complained > self.sent * MOST_COMPLAINED:
            return "complaints"
        if self.sent >= LEAST_SENT and self.bounced > self.sent * MOST_BOUNCED:
            return "bounces"
        return None
