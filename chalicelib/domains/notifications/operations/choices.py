"""The messages that a member wants about a workspace, by mail and by Telegram.

A member of any role may change the own choices, so the change is declared as one of an account
(``platform``), like the change of the member's Telegram chat.
"""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ForbiddenError
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OWN_ACCOUNT
from chalicelib.core.plans import CLIENT_MAILS_A_DAY
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.wire.schema import NoInput, Timestamp, Wire, optional
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.mails.rules.mail_reputation import Pause, Suppression
from chalicelib.domains.mails.store import mail_log, mail_rates, suppressions
from chalicelib.domains.notifications.flows import member_choices
from chalicelib.domains.notifications.store.choices import Choices
from chalicelib.gateways import mail
from chalicelib.lib.localized import Language


def _kind(name: str) -> str:
    if name in MESSAGE_KINDS:
        return name
    known_kinds = ", ".join(MESSAGE_KINDS)
    raise PydanticCustomError("unknown_kind", "expected one of {known}", {"known": known_kinds})


class NotificationChoice(Wire):
    """The channels of messages of a kind."""

    kind: Annotated[str, AfterValidator(_kind)] = Field(description="Kind of messages.")
    mail: bool = Field(description="Whether they are sent by mail.")
    telegram: bool = Field(description="Whether they are sent by Telegram.")


class WithheldMails(Wire):
    """E-mail messages to clients about their bookings that were not sent today (UTC), by reason."""

    by_address: int = Field(description="The address had all its mails of this class today.")
    by_plan: int = Field(description="The workspace had sent all mails that its plan includes.")
    by_share: int = Field(description="One visitor had caused a fifth of what visitors may cause.")
    by_bounce: int = Field(description="Earlier mails to the address came back.")
    by_pause: int = Field(description="The workspace's mails of this class were paused.")
    unsupported: int = Field(description="Addresses that SES does not take: not ASCII before @.")
    too_late: int = Field(description="The mail had waited for a day or until the booking's start.")
    refused: int = Field(description="The mail server refused the mail for good.")


# The model is not built at import, which would cost a cold start.
_NO_MAILS = WithheldMails.model_construct(
    _fields_set=None, **dict.fromkeys(WithheldMails.__pydantic_fields__, 0)
)


class Notifications(Wire):
    """The caller's choices in the workspace."""

    # What is about all clients is not for the staff.
    HIDDEN_FROM_STAFF = {  # noqa: RUF012  declared in ``Wire``
        "visitor_mail_paused": None,
        "visitor_mail_paused_until": None,
        "client_mail_paused": False,
        "withheld": _NO_MAILS,
        "client_mails_a_day": 0,
    }

    language: Language = Field(description="Language of the messages: ru or en.")
    choices: list[NotificationChoice] = Field(description="Kinds of messages that one can get.")
    has_mail: bool = Field(description="Whether the operator has set up mail.")
    mail_suppressed: Suppression | None = Field(
        description="Why the caller's address gets no mail: bounce, complaint, or null."
    )
    visitor_mail_paused: Pause | None = Field(
        description="Why mails that visitors cause are paused: bounces, complaints, or null."
    )
    visitor_mail_paused_until: Timestamp | None = Field(
        description="When that pause ends; null if the operator ends it."
    )
    client_mail_paused: bool = Field(
        description="Whether the operator has paused all mails to clients."
    )
    withheld: WithheldMails = Field(
        description="E-mail messages to clients that were withheld today."
    )
    client_mails_a_day: int = Field(
        description="E-mail messages to clients a day that the plan includes."
    )


class NotificationsChange(Wire):
    """New choices. What is omitted stays as it is."""

    language: Language | None = optional("Language of the messages: ru or en.")
    choices: list[NotificationChoice] = Field(
        default_factory=list, max_length=100, description="Kinds to change."
    )


@operation(title="Get one's own notifications", role=Role.MEMBER, own=OWN_ACCOUNT)
def get_notifications(ctx: Context, args: NoInput) -> Notifications:
    """Return the messages about the workspace that the caller gets.

    Until a choice, the owner gets all kinds by mail but new chats. Managers get failed refunds and
    half of a spending limit, and members who are linked to the staff get their own bookings.
    """
    return _to_wire(
        ctx, member_choices.read_choices(_workspace(ctx), account_id=ctx.principal.account_id)
    )


@operation(
    title="Change one's own notifications",
    platform=True,
    idempotent=True,
    role=Role.MEMBER,
    own=OWN_ACCOUNT,
    example={"language": "ru"},
)
def set_notifications(ctx: Context, args: NotificationsChange) -> Notifications:
    """Choose the messages about the workspace that the caller gets, and their language."""
    workspace_id = _workspace(ctx)

    def change(own_choices: Choices) -> None:
        own_choices.language = args.language or own_choices.language
        for choice in args.choices:
            own_choices.choose(choice.kind, "mail", is_on=choice.mail)
            own_choices.choose(choice.kind, "telegram", is_on=choice.telegram)

    own_choices = member_choices.stage_change(
        ctx.unit, workspace_id, account_id=ctx.principal.account_id, change=change
    )
    return _to_wire(ctx, own_choices)


def _to_wire(ctx: Context, own_choices: Choices) -> Notifications:
    workspace_id = _workspace(ctx)
    pause = mail_rates.find_pause(workspace_id, "stranger")
    withheld = mail_log.withheld(workspace_id, clock.now().date())
    choices_out = [
        NotificationChoice(
            kind=kind,
            mail=own_choices.wants(kind, "mail"),
            telegram=own_choices.wants(kind, "telegram"),
        )
        for kind in MESSAGE_KINDS
        if own_choices.may_get(kind)
    ]
    return Notifications(
        language=own_choices.language,
        choices=choices_out,
        has_mail=mail.is_on(),
        mail_suppressed=suppressions.reason(accounts.get(ctx.principal.account_id).email),
        visitor_mail_paused=pause and pause.reason,
        visitor_mail_paused_until=pause and pause.until,
        client_mail_paused=pause is not None and pause.until is None,
        withheld=WithheldMails(**withheld._asdict()),
        client_mails_a_day=CLIENT_MAILS_A_DAY[workspaces.get(workspace_id).plan],
    )


def _workspace(ctx: Context) -> str:
    workspace_id = ctx.principal.workspace_id
    if workspace_id == PLATFORM:
        raise ForbiddenError("Choose a workspace first.", key="no_workspace")
    return workspace_id
