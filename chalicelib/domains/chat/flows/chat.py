"""Accept a visitor's message: check it, reserve its cost, and store it in the dialog.

Keep the order of the checks: it prevents a caller without access from learning about a bot, its
sessions or its balance. ``domains.chat.flows.chat_answer`` produces the answer.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from time import perf_counter
from typing import NamedTuple, cast

from chalicelib.core import clock, idempotency_keys
from chalicelib.core.errors import (
    AppError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Hold, Prices, Terms
from chalicelib.domains.billing.rules.spending import InsufficientBalanceError, SpendingError
from chalicelib.domains.bots.flows import bots
from chalicelib.domains.bots.rules.channels import TEST, Channel
from chalicelib.domains.bots.store import bot_keys, bot_metrics, visits
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.chat.flows import chat_leads, chat_prompt, chat_replays
from chalicelib.domains.chat.flows.chat_exchange import Ending, Exchange, message_id
from chalicelib.domains.chat.flows.chat_prompt import Prompt
from chalicelib.domains.chat.flows.chat_replays import Replay
from chalicelib.domains.chat.flows.chat_request import ChatRequest
from chalicelib.domains.chat.flows.dialogs import expiry_job
from chalicelib.domains.chat.store import chat_sessions, messages, open_streams
from chalicelib.domains.chat.store.chat_sessions import SessionBusyError, SessionRow
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.contacts.store import named_contacts
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.metrics import Increments
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib import tokens
from chalicelib.lib.sources import without_query

MESSAGES = Limit("chat", "messages a minute to a bot", 60, timedelta(minutes=1))
"""Messages per minute from one visitor to one bot.

If the rate limiter is unavailable, requests are refused.
"""
MESSAGES_OF_BOT = Limit("chat-bot", "messages a minute to this bot", 600, timedelta(minutes=1))
"""Messages per minute from all visitors to one bot. It applies only behind the edge."""


class Caller(NamedTuple):
    """Sender of a message. ``visitor`` is a hash.

    ``in_console`` is true for a member of the bot's workspace.
    """

    visitor: str
    request_id: str
    idempotency_key: str | None = None
    in_console: bool = False


class _Bot(NamedTuple):
    agent: AgentRow
    workspace: WorkspaceRow

    @property
    def workspace_id(self) -> str:
        return self.workspace.id

    def add_counts(self, channel: str, measures: Mapping[str, int]) -> None:
        """Update counters outside of any transaction. A failure is ignored."""
        counts = Increments(self.workspace_id)
        today = clock.local_day(clock.now(), self.workspace.timezone)
        bot_metrics.count(counts, self.agent.id, channel, today, measures)
        with suppress(UnavailableError):
            counts.write()


def accept_message(args: ChatRequest, caller: Caller) -> Exchange | Replay:
    """Accept a message, or return the stored answer of its idempotency key.

    Raises:
        NotFoundError: there is no such bot, it or its owner is disabled, or it has no such session.
        RateLimitedError: the visitor sends too many messages.
        ForbiddenError: the bot is private, and the key is not one of its keys.
        IdempotencyMismatchError: the idempotency key was used with another message.
        InProgressError: an earlier call with this idempotency key is still being answered.
        MessageTooLongError: the message does not fit the model.
        NotConfiguredError: the provider of the model is not configured.
        SessionBusyError: the session's last answer is still being streamed.
        SpendingError: a limit or the balance is used up.
    """
    began = perf_counter()
    bot = _find_bot(args.agent_id)
    limits.take(MESSAGES, f"visitor:{caller.visitor}#{bot.agent.id}")
    if _behind_edge():
        limits.take(MESSAGES_OF_BOT, bot.agent.id)
        open_streams.begin(caller.visitor, caller.request_id)
    idempotency_record: IdempotencyRecord | None = None
    try:
        if not caller.in_console:
            _check_key(bot, args.api_key)
        session = _find_session(bot, args.session_id)
        idempotency_record = _idempotency_record(args, caller, bot)
        replay = idempotency_record and chat_replays.find_or_mark(
            bot.workspace_id,
            idempotency_record,
            owner=caller.request_id,
            agent_id=bot.agent.id,
            session_token=args.session_id,
            is_anonymous=_is_anonymous(args, bot),
        )
        return (
            replay
            or _CheckedMessage(args, caller, bot, session, idempotency_record, began).accept()
        )
    except BaseException:
        end_stream(caller)
        with suppress(UnavailableError):
            chat_replays.clear(bot.workspace_id, idempotency_record, owner=caller.request_id)
        raise


def end_stream(caller: Caller) -> None:
    """Record the end of a caller's stream, even if it was not read to the end."""
    if _behind_edge():
        with suppress(UnavailableError):
            open_streams.end(caller.visitor, caller.request_id)


def _behind_edge() -> bool:
    """Return whether requests carry the visitors' own IP addresses.

    Without the edge, many visitors may share one address.
    """
    return bool(settings().edge_secret)


def _find_bot(agent_id: str) -> _Bot:
    workspace_id = AGENTS.found_for_visitor(AGENTS.workspace_of(agent_id))
    return _Bot(*bots.active_bot(workspace_id, agent_id))


def _check_key(bot: _Bot, token: str | None) -> None:
    """Require a valid key if the bot is private.

    Raises:
        ForbiddenError: the key is missing, or it is not a key of this bot.
    """
    if bot.agent.is_private and not (token and bot_keys.is_key_of(bot.agent.id, token)):
        raise ForbiddenError("This bot is private: send one of its keys as apiKey.")


def _find_session(bot: _Bot, token: str | None) -> SessionRow | None:
    if token is None:
        return None
    session = chat_sessions.find(bot.workspace_id, bot.agent.id, token)
    if session is None:
        msg = "This bot has no such session. Leave sessionId out to begin a new dialog."
        raise NotFoundError(msg)
    return session


def _idempotency_record(args: ChatRequest, caller: Caller, bot: _Bot) -> IdempotencyRecord | None:
    """Return the idempotency record for the answer, or None if the call has no key.

    A key is scoped to the session, or else to the bot key, or else to the visitor. Therefore two
    visitors with the same key never share a record.

    Raises:
        ValidationError: the key is empty or too long.
    """
    if caller.idempotency_key is None:
        return None
    key = idempotency_keys.check(caller.idempotency_key, idempotency_keys.HEADER)
    if args.session_id is not None:
        holder = f"session:{tokens.digest(args.session_id)}"
    elif _is_anonymous(args, bot):
        holder = f"visitor:{caller.visitor}"
    else:
        holder = f"key:{tokens.digest(args.api_key or '')}"
    arguments = (args.agent_id, args.message, args.session_id)
    return chat_replays.idempotency_record(f"chat#{bot.agent.id}#{holder}", key, arguments)


def _is_anonymous(args: ChatRequest, bot: _Bot) -> bool:
    """Return whether a call has neither a session nor a bot key. Only its IP address is known."""
    has_key = bot.agent.is_private and args.api_key is not None
    return args.session_id is None and not has_key


@dataclass(frozen=True, slots=True)
class _CheckedMessage:
    """A message whose sender has passed the checks."""

    args: ChatRequest
    caller: Caller
    bot: _Bot
    session: SessionRow | None
    idempotency_record: IdempotencyRecord | None
    began: float

    def _channel(self, dialog: DialogRow | None) -> Channel:
        """Return the channel of the dialog. It is set by the first message."""
        if dialog is not None:
            return cast("Channel", dialog.channel)
        channel = self.args.channel or "api"
        return "api" if channel == TEST and not self.caller.in_console else channel

    def accept(self) -> Exchange:
        prompt = chat_prompt.fit(
            self.bot.agent, self.bot.workspace_id, self.session, self.args.message
        )
        if self.session is not None and self.session.is_held:
            raise SessionBusyError
        dialog = self._dialog()
        number = int(dialog.last_number) + 2 if dialog else 2
        dialog_id = self.session.dialog_id if self.session else new_id()
        channel = self._channel(dialog)
        try:
            hold = self._reserve(prompt, message_id(dialog_id, number))
        except SpendingError as error:
            short = isinstance(error, InsufficientBalanceError)
            name = bot_metrics.REJECTED_BALANCE if short else bot_metrics.REJECTED_LIMIT
            self.bot.add_counts(channel, {name: 1})
            raise
        token = self.args.session_id or chat_sessions.new_token()
        exchange = Exchange(
            hold=hold,
            spec=prompt.spec,
            messages=prompt.messages,
            zone=self.bot.workspace.timezone,
            dialog_id=dialog_id,
            number=number,
            session_token=token,
            session_hash=tokens.digest(token),
            returns_session=self.session is None and not _is_anonymous(self.args, self.bot),
            channel=channel,
            idempotency_record=self.idempotency_record,
            began=self.began,
        )
        try:
            self._store(exchange)
        except BaseException:
            with suppress(AppError):  # Otherwise the job releases the hold.
                exchange.close(Ending("", "error", None))
            raise
        return exchange

    def _dialog(self) -> DialogRow | None:
        """Return the dialog to continue, or None if this message begins it.

        A session that a replay began has no dialog yet.
        """
        if self.session is None:
            return None
        return DIALOGS.find(self.bot.workspace_id, self.session.dialog_id)

    def _reserve(self, prompt: Prompt, answer_id: str) -> Hold:
        (agent, workspace), spec = self.bot, prompt.spec
        terms = Terms(
            account_id=workspace.owner_id,
            workspace_id=workspace.id,
            agent_id=agent.id,
            zone=workspace.timezone,
            prices=Prices(spec.input_price, spec.output_price),
            model=spec.name,
        )
        session, holder = self.session, self.caller.request_id

        def stage(unit: UnitOfWork) -> None:
            if session is not None:
                chat_sessions.stage_lock(unit, session, holder)

        return charging.reserve(
            terms, holder, prompt.input_tokens, prompt.max_output, stage, message_id=answer_id
        )

    def _store(self, exchange: Exchange) -> None:
        """Store the message and its empty answer, and create the dialog's lead if it has a contact.

        Raises:
            SessionBusyError: another answer has begun in the dialog in the meantime.
        """
        text, workspace = self.args.message, self.bot.workspace
        contact = chat_leads.contact_of(self.args, workspace.country, exchange.channel)
        named = chat_leads.contacts_in(self.args, workspace.country)

        def stage(unit: UnitOfWork) -> None:
            now = clock.now()
            stored = self._dialog()
            dialog = stored or self._new_dialog(exchange)
            number = dialog.record_message(text, now)
            dialog.named_contacts = named_contacts.added(dialog.named_contacts, named)
            if number + 1 != exchange.number:
                raise SessionBusyError
            counts, today = Increments(unit.tenant), clock.local_day(now, workspace.timezone)
            measures = {bot_metrics.MESSAGES: 1, bot_metrics.DIALOGS: int(stored is None)}
            if contact and chat_leads.stage(unit, workspace, dialog, contact, text, now):
                measures[bot_metrics.LEADS] = 1
                if dialog.visit_id is not None:
                    visits.reach(
                        unit,
                        counts,
                        dialog.agent_id,
                        dialog.visit_id,
                        "lead",
                        today=today,
                        page_url=dialog.page_url,
                    )
            bot_metrics.count(counts, dialog.agent_id, dialog.channel, today, measures)
            counts.stage(unit)
            messages.stage_exchange(
                unit,
                dialog.id,
                number,
                text,
                channel=dialog.channel,
                session_hash=exchange.session_hash,
                input_tokens=exchange.usage(0, None).input_tokens,
            )
            if stored is None:
                unit.create(dialog)
                unit.create(expiry_job(unit.tenant, dialog))
            else:
                unit.save(dialog)
            if self.session is None:
                unit.create(self._new_session(exchange))
            else:
                held = SessionRow.holder == self.caller.request_id
                unit.require(self.session, held, on_conflict=SessionBusyError())

        run_unit(workspace.id, contact and self._event(), stage)

    def _new_dialog(self, exchange: Exchange) -> DialogRow:
        return DIALOGS.row(
            DIALOGS.partition(self.bot.workspace_id),
            exchange.dialog_id,
            agent_id=self.bot.agent.id,
            channel=exchange.channel,
            page_url=without_query(self.args.page_url),
            visit_id=self.args.visit_id,
            session_hash=exchange.session_hash,
            last_number=0,
            messages_count=0,
        )

    def _new_session(self, exchange: Exchange) -> SessionRow:
        return chat_sessions.new(
            self.bot.workspace_id,
            exchange.session_token,
            agent_id=self.bot.agent.id,
            dialog_id=exchange.dialog_id,
            holder=self.caller.request_id,
        )

    def _event(self) -> AuditEvent:
        """Return the audit event of a lead that a visitor has created."""
        return AuditEvent(
            "chat", f"visitor:{self.caller.visitor}", request_id=self.caller.request_id
        )
