"""Limit how many e-mails of each class an address gets.

Anyone can type another user's address. So e-mails that a stranger causes share no budget with
e-mails of a business that the recipient deals with, or of the recipient's own account. Nor can one
business use up what others may send to an address.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Literal

from chalicelib.core.limits import Limit
from chalicelib.core.plans import CLIENT_MAILS_A_DAY

MailClass = Literal[
    "stranger",
    "link",
    "business",
    "client",
    "reminder",
    "client_reminder",
    "stranger_reminder",
    "account",
    "confirmed",
    "member",
    "advertising",
]
"""Why an e-mail is sent: who has caused it, and what is proved.

- ``stranger``: somebody who has proved nothing has typed the address, such as a visitor who books.
- ``link``: a stranger has requested the link that proves the address and books.
- ``business``: a member, an API key or an app of the workspace made or changed something, or a
  payment did.
- ``client``: a client who has proved the address or paid made or changed something.
- ``reminder``: a booking begins soon that the business has made, or that is paid.
- ``client_reminder``, ``stranger_reminder``: a booking begins soon that a visitor has made, with or
  without a proof.
- ``account``: an invitation, the proof of an address, a new password.
- ``confirmed``: something was done with a code of the account, or with its password.
- ``member``: a message that a member of a workspace has chosen to get. The windows of
  ``store.windows`` limit these.
- ``advertising``: a client who has agreed to advertising is asked to book again.
"""
_DAY = timedelta(days=1)
# Links to one address that one visitor may cause.
LINKS_FOR_ADDRESS = Limit("link-mails-share", "links by e-mail per day to an address", 2, _DAY)
# E-mails to one address from all workspaces together.
BUDGETS: Mapping[MailClass, Limit] = {
    "stranger": Limit("client-mails", "e-mails per day to an address", 3, _DAY),
    "link": Limit(
        "link-mails", "links by e-mail per day to an address", 4, _DAY, share=LINKS_FOR_ADDRESS
    ),
    "business": (
        _BUSINESS := Limit(
            "business-mails", "e-mails of businesses per day to an address", 20, _DAY
        )
    ),
    "client": _BUSINESS,
    "reminder": (_REMINDERS := Limit("reminder-mails", "reminders per day to an address", 5, _DAY)),
    "client_reminder": _REMINDERS,
    "stranger_reminder": _REMINDERS,
    "account": Limit("account-mails", "e-mails per hour about an account", 5, timedelta(hours=1)),
    "confirmed": Limit("confirmed-mails", "e-mails per day about what was done", 50, _DAY),
    "advertising": Limit(
        "advertising-mails", "e-mails that advertise per week to an address", 2, timedelta(days=7)
    ),
}
# E-mails that advertise of one workspace to one address.
ADVERTISING_OF_WORKSPACE = Limit(
    "workspace-advertising-share",
    "e-mails that advertise per week of a workspace to an address",
    1,
    timedelta(days=7),
)
BY_STRANGERS = frozenset({"stranger", "stranger_reminder", "link"})
# Classes of e-mail that visitors cause, with a proof or without, except links.
BY_VISITORS = (BY_STRANGERS - {"link"}) | {"client", "client_reminder"}
# The parts of a plan's e-mail that strangers may cause, and that links add: a half, a quarter.
_STRANGERS_PART, _LINKS_PART = 2, 4
# E-mails that advertise have a part beside the plan's e-mail, so that they take nothing from it.
_ADVERTISING_PART = 4
_BUSINESS_PART = 4  # the part of a plan's e-mail that only the business itself may cause: a quarter
# One visitor causes at most this part of what all strangers of a workspace may cause.
_VISITOR_PART = 5
_LEAST_FOR_VISITOR = 3


def reserve(mail_class: MailClass, budget: Limit) -> Limit | None:
    """Return what a workspace may send to an address whatever others have sent, or None."""
    if mail_class in BY_STRANGERS or mail_class == "advertising":
        return None
    # Half of the budget, which these e-mails take as well. Strangers and advertising have none.
    return replace(budget, name=f"{budget.name}-own", max_requests=budget.max_requests // 2)


def workspace_limits(plan: str, mail_class: MailClass) -> list[Limit]:
    """Return the limits on a workspace's e-mails of a class to clients.

    E-mails that strangers cause may use up half of what the plan includes, and e-mails of all
    visitors three quarters. Links have a part of their own, so that nothing else uses them up, and
    so has advertising, so that it uses up nothing else. A
    limit of strangers or visitors has the share of a visitor.
    """
    max_mails = CLIENT_MAILS_A_DAY[plan]
    total = Limit("workspace-client-mails", "e-mails per day to clients", max_mails, _DAY)
    if mail_class in {"account", "confirmed"}:
        return []
    if mail_class == "link":
        what = "links by e-mail per day that visitors cause"
        return [
            _of_strangers("workspace-link-mails", what=what, max_mails=max_mails // _LINKS_PART)
        ]
    if mail_class == "advertising":
        what, part = "e-mails that advertise per day", max_mails // _ADVERTISING_PART
        return [Limit("workspace-advertising-mails", what, part, _DAY)]
    if mail_class not in BY_VISITORS:
        return [total]
    what, part = "e-mails per day that visitors cause", max_mails - max_mails // _BUSINESS_PART
    most = max(_LEAST_FOR_VISITOR, part // 2)
    share = Limit("workspace-visitor-mails-share", what, most, _DAY)
    visitors = Limit("workspace-visitor-mails", what, part, _DAY, share=share)
    if mail_class not in BY_STRANGERS:
        return [total, visitors]
    what, part = f"{what} without a proof", max_mails // _STRANGERS_PART
    strangers = _of_strangers("workspace-stranger-mails", what=what, max_mails=part)
    return [total, visitors, strangers]


def _of_strangers(name: str, *, what: str, max_mails: int) -> Limit:
    part = max(_LEAST_FOR_VISITOR, max_mails // _VISITOR_PART)
    return Limit(name, what, max_mails, _DAY, share=Limit(f"{name}-share", what, part, _DAY))
