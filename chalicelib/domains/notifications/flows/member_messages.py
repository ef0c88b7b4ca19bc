"""Sends messages to members, each by one channel.

A message has no text of its own: it is made from the live record. A member, an account or a choice
that has ended by then ends the message. If a response is lost, a message may be sent twice.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.notifications.flows import member_choices, telegram_chats, unsubscribing
from chalicelib.domains.notifications.flows.message_records import read_records
from chalicelib.domains.notifications.rules import messages
from chalicelib.domains.notifications.rules.job_kinds import NOTIFY_DIGEST, NOTIFY_MEMBER
from chalicelib.domains.notifications.rules.messages import Message
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS
from chalicelib.domains.notifications.store import choices, telegram_links, windows
from chalicelib.domains.notifications.store.choices import Channel, Choices
from chalicelib.engine import jobs
from chalicelib.engine.listing.registry import listing_of
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail, MailDelayedError
from chalicelib.gateways.messenger_errors import MessengerError
from chalicelib.lib.localized import Language

FIRST_PAUSE = timedelta(minutes=1)  # of a message that is delayed for the first time
LONGEST_DELAY = timedelta(days=1)  # A message that could not be sent for this long is given up.
log = logging.getLogger(__name__)


class _Recipient(NamedTuple):
    workspace: WorkspaceRow
    account: AccountRow
    kind: str
    channel: Channel
    language: Language
    # Set for a plain member and the staff, who get only messages about the own bookings.
    resource_id: str | None
    role: Role

    @property
    def console_url(self) -> str:
        return f"{settings().public_url}/console/w/{self.workspace.slug}"

    @property
    def window(self) -> str:
        return f"W#{self.workspace.id}#NOTIFY-WINDOW#{self.account.id}#{self.channel}#{self.kind}"


@job_handler(NOTIFY_MEMBER)
def send_message(job: Job) -> None:
    """Send a message, unless more than ten of its kind are due to the member in ten minutes."""
    _send_or_postpone(job, _send_message)


@job_handler(NOTIFY_DIGEST)
def send_digest(job: Job) -> None:
    """Send one message with the number of messages that were held back."""
    _send_or_postpone(job, _send_digest)


def _send_or_postpone(job: Job, send: Callable[[Job, _Recipient], None]) -> None:
    recipient, at = _recipient(job), datetime.fromisoformat(job.payload["at"])
    if recipient is None:
        return
    age, log_fields = clock.now() - at, {"kind": job.kind, "job": job.job_id}
    if age > LONGEST_DELAY:
        log.warning("a message to a member was given up", extra=log_fields)
        return
    try:
        send(job, recipient)
    except (MailDelayedError, MessengerError) as error:
        log.info("a message to a member waits", extra={**log_fields, "cause": str(error)})
        # The message waits in a job of the same id, no shorter than the server asks for. Its pauses
        # double, since each is as long as the message has waited.
        # A server may ask for a longer wait than a message is kept.
        requested = timedelta(seconds=min(error.retry_after or 0, LONGEST_DELAY.total_seconds()))
        raise Postponed(clock.now() + max(FIRST_PAUSE, age, requested)) from error


def _send_message(job: Job, recipient: _Recipient) -> None:
    at, told = datetime.fromisoformat(job.payload["at"]), MEMBER_KINDS[recipient.kind]
    event_type = MESSAGE_KINDS[recipient.kind].type
    found = [
        record
        for record_id in job.payload.get("visitIds", [job.payload["recordId"]])
        if (record := read_records(job.workspace_id, event_type=event_type, record_id=record_id))
        is not None
        and not (told.status and record["status"] != told.status)
        and not messages.is_about_nobody(recipient.kind, record)
        and not _is_of_another(recipient, record)
    ]
    if not found:
        return
    about = messages.as_one(found)
    # The window admits a message once, so a repeated job gets the same decision.
    length = windows.length_at(recipient.window, at)
    if not windows.admit(recipient.window, at, job.job_id, length):
        windows.hold_back(recipient.window, at, length)
        _schedule_digest(job, length)
        return
    # A payment has its own currency.
    currency = {"currency": recipient.workspace.currency}
    extra = {"form": _form_title(job.workspace_id, about.get("formId"))}
    values = currency | dict(about) | extra
    if recipient.role is Role.STAFF:
        values = messages.for_staff(values, recipient.resource_id or "")
    message = messages.message(recipient.language, recipient.kind, values)
    _send(recipient, message, job.job_id)


def _is_of_another(recipient: _Recipient, record: dict[str, Any]) -> bool:
    # The members of the staff before and after the last move of the booking.
    resources = {record.get("resourceId"), record.get("formerResourceId")} - {None}
    if recipient.role is Role.STAFF and not resources & {recipient.resource_id}:
        return True
    return bool(resources) and recipient.resource_id not in {None, *resources}


def _schedule_digest(job: Job, length: timedelta) -> None:
    at = datetime.fromisoformat(job.payload["at"])
    window_end = windows.end(at, length)
    payload = {**job.payload, "at": iso(at), "seconds": int(length.total_seconds())}
    name_parts = (job.payload[name] for name in ("accountId", "channel", "kind"))
    moment = f"{window_end:%Y%m%dT%H%M}" + ("" if length == windows.SHORT else "L")
    job_id = "-".join((job.workspace_id, *name_parts, moment))
    jobs.schedule(jobs.row(NOTIFY_DIGEST, job.workspace_id, payload, window_end, job_id=job_id))


def _send_digest(job: Job, recipient: _Recipient) -> None:
    at = datetime.fromisoformat(job.payload["at"])
    length = timedelta(seconds=job.payload["seconds"])
    count, total = windows.held_back(recipient.window, at, length)
    if count > 0:
        _send(
            recipient,
            messages.digest(
                recipient.language,
                recipient.kind,
                count,
                is_for_staff=recipient.role is Role.STAFF,
            ),
            f"{job.job_id}-{total}",
        )
        # The count is written after the message: a crash in between repeats the digest, with the
        # same id.
        windows.record_reported(recipient.window, at, length, total)


def _recipient(job: Job) -> _Recipient | None:
    account_id, kind = job.payload["accountId"], job.payload["kind"]
    channel: Channel = job.payload["channel"]
    account = accounts.get(account_id)
    membership = workspaces.membership(account_id, workspace_id=job.workspace_id)
    if membership is None or account.disabled_at is not None or kind not in MESSAGE_KINDS:
        return None
    workspace = workspaces.get(job.workspace_id)
    choices_row = choices.find(job.workspace_id, account_id=account_id)
    own_choices = Choices(membership, workspace.country, account.mail_language, choices_row)
    if not own_choices.wants(kind, channel):
        return None
    role = Role(membership.role)
    resource_id = None if role.includes(Role.MANAGER) else membership.resource_id
    return _Recipient(workspace, account, kind, channel, own_choices.language, resource_id, role)


def _send(recipient: _Recipient, message: Message, message_id: str) -> None:
    match recipient.channel:
        case "mail":
            _send_mail(recipient, message, message_id)
        case "telegram":
            link = telegram_links.find(recipient.workspace.id, account_id=recipient.account.id)
            if link is not None:
                text = messages.to_text(
                    message, recipient.workspace.name, console_url=recipient.console_url
                )
                telegram_chats.deliver(recipient.workspace.id, chat_id=int(link.chat_id), text=text)


def _send_mail(recipient: _Recipient, message: Message, message_id: str) -> None:
    if not mail.is_on():
        return
    workspace, account = recipient.workspace, recipient.account
    token = unsubscribing.token(workspace.id, account_id=account.id, kind=recipient.kind)
    unsubscribe = f"{settings().public_url}/unsubscribe/{token}"
    content = messages.mail(
        recipient.language,
        message,
        workspace=workspace.name,
        unsubscribe_url=unsubscribe,
        console_url=recipient.console_url,
    )
    message_mail = Mail(
        id=message_id,
        recipient=account.email,
        content=content,
        origin=workspace.id,
        sender_name=workspace.name,
        unsubscribe_url=unsubscribe,
    )
    mail_gate.deliver(message_mail, "member", clock.now() + LONGEST_DELAY, account=account)


def _form_title(workspace_id: str, form_id: Any) -> str | None:  # noqa: ANN401  a value of the record
    form = listing_of("FORM").find(workspace_id, record_id=form_id) if form_id else None
    return form.title if form else None


@job_handler(MEMBERSHIP_ENDED)
def remove_telegram_link(job: Job) -> None:
    """Remove the chat and the choices of a former member. It may run more than once."""
    account_id, ended_at = job.payload["accountId"], job.payload["endedAt"]
    telegram_chats.end_link(
        job.workspace_id, account_id=account_id, ended_at=datetime.fromisoformat(ended_at)
    )
    member_choices.remove(job.workspace_id, account_id=account_id)
