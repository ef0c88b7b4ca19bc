"""Accept a visitor's message.

The message is checked, its cost reserved, and its text stored.

Accept a visitor's message: check it, reserve its cost, and store it in the dialog.

Keep the order of the checks: it prevents a caller without access from learning about a bot, its
sessions or its balance. ``domains.chat.flows.chat_answer`` produces the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from chalicelib.core import clock, deadline, idempotency_keys
from chalicelib.core.errors import (
    AppError,
    ForbiddenError,
    NotFoundError,
    RateLimitedError,
    UnavailableError,
)
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.domains.billing.flows import charging, funds
from chalicelib.domains.billing.flows.charging import Hold, Prices, Terms
from chalicelib.domains.billing.flows.funds import Funds
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.billing.rules.spending import InsufficientBalanceError, SpendingError
from chalicelib.domains.bots.flows import bots
from chalicelib.domains.bots.rules import TEST_CHANNEL, Channel
from chalicelib.domains.bots.store import bot_keys, bot_metrics, visits
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.chat.flows import chat_exchange, chat_prompt, chat_request
from chalicelib.domains.chat.flows.chat_exchange import Ending, Exchange, message_id
from chalicelib.domains.chat.flows.chat_prompt import Prompt
from chalicelib.domains.chat.flows.chat_request import ACTIONS, SOURCES, Caller, ChatRequest, Replay
from chalicelib.domains.chat.flows.dialogs import expiry_job
from chalicelib.domains.chat.flows.tool_calls import Tool, ToolContext
from chalicelib.domains.chat.store import chat_sessions, messages, open_streams
from chalicelib.domains.chat.store.chat_sessions import SessionBusyError, SessionRow
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.chat.store.open_streams import OpenStreamsRow
from chalicelib.domains.contacts.store import clients
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.metrics import Increments
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib import extracts, tokens
from chalicelib.lib.sources import drop_query

MAX_MESSAGES = 300
"""Maximum number of visitor messages in a dialog."""


class Bot(NamedTuple):
    """A bot and its workspace."""

    agent: AgentRow
    workspace: WorkspaceRow

    @property
    def workspace_id(self) -> str:
        """Id of the workspace."""
        return self.workspace.id

    def add_counts(self, channel: str, measures: Mapping[str, int]) -> None:
        """Update counters outside of any transaction, and ignore failures."""
        counts = Increments(self.workspace_id)
        today = clock.local_day(clock.now(), self.workspace.timezone)
        bot_metrics.count(counts, self.agent.id, channel, today, measures)
        # Statistics must not fail an answer.
        with suppress(UnavailableError):
            counts.write()


def find_dialog(bot: Bot, session: SessionRow | None) -> DialogRow | None:
    """Return the dialog to continue, or None if the message begins it.

    A session that a replay began has no dialog yet.
    """
    return DIALOGS.find(bot.workspace_id, session.dialog_id) if session else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CheckedMessage:
    """A message that has passed the checks, and the rows that the checks read.

    ``session`` and ``dialog`` are those to continue. ``is_anonymous`` is whether the call has
    neither a session nor a bot key. ``count_message`` stages the count of a visitor's message, or
    raises RateLimitedError; it is None for callers who have proved who they are.
    """

    args: ChatRequest
    caller: Caller
    bot: Bot
    session: SessionRow | None
    dialog: DialogRow | None
    prompt: Prompt
    funds: Funds
    count_message: Callable[[UnitOfWork], object] | None
    idempotency_record: IdempotencyRecord | None
    is_anonymous: bool
    began: float

    @property
    def _unproved(self) -> tuple[str, ...]:
        """The visitor as subjects of shares, if nothing is proved."""
        return () if self.count_message is None else self.caller.share_subjects

    @property
    def _channel(self) -> Channel:
        """Return the channel of the dialog.

        It is set by the first message.
        """
        if self.dialog is not None:
            return cast("Channel", self.dialog.channel)
        channel = self.args.channel or "api"
        return "api" if channel == TEST_CHANNEL and not self.caller.in_console else channel

    def store(self) -> Exchange:
        """Hold the money for an answer, and store the message.

        Raises:
            SessionBusyError: the session's last answer is still being streamed.
            RateLimitedError: the visitor or the dialog has too many messages.
            SpendingError: a limit or the balance is used up.
        """
        session, dialog = self.session, self.dialog
        if session is not None and session.is_held:
            raise SessionBusyError
        if dialog is not None and dialog.last_number >= 2 * MAX_MESSAGES:
            msg = (
                f"This dialog has {MAX_MESSAGES} messages, which is the maximum. To start "
                "another dialog, omit sessionId."
            )
            raise RateLimitedError(msg)
        if self.count_message is not None:
            # A call over the limit must not hold money first.
            self.count_message(UnitOfWork(self.bot.workspace_id))  # only raises its error
        number = int(dialog.last_number) + 2 if dialog else 2
        dialog_id = session.dialog_id if session else new_id()
        channel = self._channel
        try:
            hold, tools = self._reserve_with_tools(message_id(dialog_id, number))
        except SpendingError as error:
            short = isinstance(error, InsufficientBalanceError)
            name = bot_metrics.REJECTED_BALANCE if short else bot_metrics.REJECTED_LIMIT
            self.bot.add_counts(channel, {name: 1})
            if error.used_up is not None:
                funds.emit_limit_reached(self.bot.workspace_id, self.bot.agent.id, error.used_up)
            raise
        token = self.args.session_id or chat_sessions.new_token()
        message_contacts = chat_exchange.contacts_in(self.args, self.bot.workspace.country)
        exchange = Exchange(
            hold=hold,
            spec=self.prompt.spec,
            messages=self.prompt.messages,
            message_without_tools=self.prompt.message_without_tools,
            tools=tools,
            tool_context=ToolContext(
                workspace=self.bot.workspace,
                agent=self.bot.agent,
                dialog_id=dialog_id,
                number=number,
                visitor_texts=self.prompt.visitor_texts,
                contacts={*message_contacts, *((dialog.named_contacts if dialog else None) or ())},
                offered_slots=self.prompt.actions.offered_slots,
            ),
            max_output=self.prompt.max_output,
            link_hosts=self.prompt.link_hosts,
            workspace=self.bot.workspace,
            dialog_id=dialog_id,
            number=number,
            sources=_sources(self.prompt) if self.args.shows(SOURCES) else [],
            last_reply=dialog.replies[-1]["id"] if dialog and dialog.replies else None,
            session_token=token,
            session_hash=tokens.digest(token),
            returns_session=session is None and not self.is_anonymous,
            channel=channel,
            idempotency_record=self.idempotency_record,
            began=self.began,
        )
        try:
            self._store(exchange, message_contacts)
        except BaseException:
            with suppress(AppError):  # Otherwise the job releases the hold.
                exchange.close(Ending("", "error", None))
            raise
        return exchange

    def _reserve_with_tools(self, answer_id: str) -> tuple[Hold, Sequence[Tool]]:
        """Hold the money for an answer with tools, or without them if the money is short."""
        prompt = self.prompt
        if prompt.tools:
            with suppress(SpendingError):
                return self._reserve(answer_id, prompt.planned), prompt.tools
        return self._reserve(answer_id, TokenUsage(prompt.input_tokens, prompt.max_output)), ()

    def _reserve(self, answer_id: str, planned: TokenUsage) -> Hold:
        (agent, workspace), spec = self.bot, self.prompt.spec
        terms = Terms(
            account_id=workspace.owner_id,
            workspace_id=workspace.id,
            agent_id=agent.id,
            zone=workspace.timezone,
            prices=Prices(spec.input_price, spec.output_price),
            model=spec.name,
            spenders=self._unproved,
        )
        session, holder = self.session, self.caller.request_id

        def stage(unit: UnitOfWork) -> None:
            if session is not None:
                chat_sessions.stage_lock(unit, session, holder)
            if self.count_message is not None:
                self.count_message(unit)

        return charging.reserve(
            terms,
            holder,
            planned.input_tokens,
            planned.output_tokens,
            stage,
            message_id=answer_id,
            read=self.funds,
        )

    def _store(self, exchange: Exchange, message_contacts: Sequence[str]) -> None:
        """Store the message and its empty answer, and create the dialog's lead if it has a contact.

        Raises:
            SessionBusyError: another answer has begun in the dialog in the meantime.
        """
        text, workspace = self.args.message, self.bot.workspace
        contact = chat_exchange.contact_of(self.args, workspace.country, exchange.channel)
        unused = [self.dialog]  # The first attempt writes what was read before, or conflicts.

        def stage(unit: UnitOfWork) -> None:
            now = clock.now()
            stored_dialog = unused.pop() if unused else find_dialog(self.bot, self.session)
            dialog = stored_dialog or self._new_dialog(exchange)
            number = dialog.record_message(text, now)
            dialog.named_contacts = clients.merge_contacts(dialog.named_contacts, message_contacts)
            if number + 1 != exchange.number:
                raise SessionBusyError
            counts, today = Increments(unit.tenant), clock.local_day(now, workspace.timezone)
            measures = {bot_metrics.MESSAGES: 1, bot_metrics.DIALOGS: int(stored_dialog is None)}
            if contact and chat_exchange.stage_lead(
                unit, workspace, dialog, contact, text, now, self._unproved
            ):
                measures[bot_metrics.LEADS] = 1
                if dialog.visit_id is not None:
                    visits.reach(
                        unit,
                        counts,
                        dialog.agent_id,
                        dialog.visit_id,
                        "lead",
                        visit=visits.find(unit.tenant, dialog.agent_id, dialog.visit_id),
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
                input_tokens=exchange.input_tokens,
                sources=exchange.sources,
            )
            if stored_dialog is None:
                unit.create(dialog)
                unit.create(expiry_job(unit.tenant, dialog))
            else:
                unit.save(dialog)
            if self.session is None:
                unit.create(self._new_session(exchange))
            else:
                # A slow request may have lost its lock to another one by now.
                is_holder = SessionRow.holder == self.caller.request_id
                unit.require(self.session, is_holder, on_conflict=SessionBusyError())

        run_unit(workspace.id, contact and self._event(), stage)

    def _new_dialog(self, exchange: Exchange) -> DialogRow:
        return DIALOGS.row(
            DIALOGS.partition(self.bot.workspace_id),
            exchange.dialog_id,
            agent_id=self.bot.agent.id,
            channel=exchange.channel,
            page_url=drop_query(self.args.page_url),
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


def _sources(prompt: Prompt) -> list[dict[str, str]]:
    """Return titles and URLs of the pages among the facts that fit the question best."""
    pages = [source for source in prompt.sources if source.url]
    texts = [f"{page.title} {page.text}" for page in pages]
    fitting = [pages[index] for index in extracts.most_relevant(prompt.visitor_texts[-1], texts)]
    urls = {source.url: source.title for source in fitting}
    return [{"title": title, "url": url} for url, title in urls.items() if url]


MESSAGES = Limit("chat", "messages per minute to a bot", 60, timedelta(minutes=1))
"""Messages per minute from one visitor to one bot.

If the rate limiter is unavailable, requests are refused.
"""
MESSAGES_PER_DAY = Limit("chat-day", "messages per day to a bot", 200, timedelta(days=1))
"""Messages per day from one visitor to one bot, counted in the transaction that reserves."""
MESSAGES_OF_BOT = Limit(
    "chat-bot", "messages per minute to this bot", 600, timedelta(minutes=1), share=MESSAGES
)
"""Messages per minute from all visitors to one bot. It applies only behind the edge."""


def accept_message(args: ChatRequest, caller: Caller) -> Exchange | Replay:
    """Accept a message, or return the stored answer of its idempotency key.

    Raises:
        NotFoundError: the bot does not exist, or the bot or its owner is disabled, or it has no
            such session.
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
    workspace_id = AGENTS.found_for_visitor(AGENTS.workspace_of(args.agent_id))
    with deadline.side_by_side() as start:
        count_task = start(
            partial(limits.take, MESSAGES, f"visitor:{caller.visitor}#{args.agent_id}")
        )
        session = start(partial(_find_session, args, workspace_id))
        streams = start(partial(_open_streams, caller.visitor))
        bot = Bot(*bots.switched_on(workspace_id, args.agent_id))
    # A disabled owner hides the bot, so that error comes before the limit's.
    if count_task.exception() is not None:
        bots.require_active_owner(bot.workspace)
    count_task.result()
    message = _Message(args, caller, bot, session, began)
    try:
        return message.accept(streams.result())
    except BaseException:
        # The stream was counted as open, and nobody would end it until it expires.
        end_stream(caller)
        with suppress(UnavailableError):
            chat_request.clear_replay(
                workspace_id, message.idempotency_record, owner=caller.request_id
            )
        raise


def end_stream(caller: Caller) -> None:
    """Record the end of a caller's stream, even if it was not read to the end."""
    if _behind_edge():
        with suppress(UnavailableError):
            open_streams.end(caller.visitor, caller.request_id)


def _open_streams(visitor: str) -> OpenStreamsRow | None:
    """Return the open streams of a visitor behind the edge, or None without the edge."""
    return open_streams.find(visitor) if _behind_edge() else None


def _behind_edge() -> bool:
    """Return whether requests carry the visitors' own IP addresses.

    Without the edge, many visitors may share one address.
    """
    return bool(settings().edge_secret)


def _find_session(args: ChatRequest, workspace_id: str) -> SessionRow | None:
    if args.session_id is None:
        return None
    session = chat_sessions.find(workspace_id, args.agent_id, args.session_id)
    if session is None:
        msg = "This bot has no session with this sessionId. To start a new dialog, omit sessionId."
        raise NotFoundError(msg)
    return session


@dataclass(slots=True, eq=False, repr=False)
class _Message:
    """A message to a bot that is switched on.

    The visitor's limit has admitted it.
    """

    args: ChatRequest
    caller: Caller
    bot: Bot
    session: Future[SessionRow | None]
    began: float
    idempotency_record: IdempotencyRecord | None = None

    def accept(self, streams: OpenStreamsRow | None) -> Exchange | Replay:
        """Check the message, and store it with its hold. ``streams`` is None without the edge.

        The checks run side by side with the reads of what follows. A failure is raised only when
        all have ended, so that the caller can undo their marks.
        """
        agent = self.bot.agent
        visitor, request_id = self.caller.visitor, self.caller.request_id
        with deadline.side_by_side() as start:
            paying = start(self._read_funds)
            checks: list[Future[Any]] = [paying]
            if streams is not None:
                subjects = [f"{subject}#{agent.id}" for subject in self.caller.share_subjects]
                _, *network = limits.visitor_limits(MESSAGES, subjects, MESSAGES_OF_BOT)
                checks += [
                    start(partial(limits.take_each, [*network, (MESSAGES_OF_BOT, agent.id)])),
                    start(partial(open_streams.begin, visitor, request_id, streams)),
                ]
            key = start(self._check_key)
            replay = start(partial(self._find_replay, key))
            dialog = start(lambda: find_dialog(self.bot, self.session.result()))
            prompt = start(partial(self._prompt, dialog))
            for check in (*checks, key, self.session):
                check.result()
            stored_answer = replay.result()
            if stored_answer is not None:
                return stored_answer
            checked_message = CheckedMessage(
                args=self.args,
                caller=self.caller,
                bot=self.bot,
                session=self.session.result(),
                dialog=dialog.result(),
                prompt=prompt.result(),
                funds=paying.result()[0],
                count_message=self._count_message(paying.result()[1]),
                idempotency_record=self.idempotency_record,
                is_anonymous=self._is_anonymous,
                began=self.began,
            )
        return checked_message.store()

    @property
    def _unproved(self) -> tuple[str, ...]:
        """The visitor as subjects of shares.

        Empty if more is known: a member, or the key of a private bot.
        """
        proved = self.caller.in_console or self.bot.agent.is_private
        return () if proved else self.caller.share_subjects

    @property
    def _counters(self) -> list[tuple[Limit, str]]:
        """The limits that count the messages of a visitor in a day, with their subjects."""
        subjects = [f"{subject}#{self.bot.agent.id}" for subject in self._unproved]
        return limits.visitor_limits(MESSAGES_PER_DAY, subjects)

    def _read_funds(self) -> tuple[Funds, Rows]:
        """Return the funds of the bot, and the rows that the same reads returned.

        Raises:
            NotFoundError: the owner is disabled.
        """
        agent, workspace = self.bot
        rows, place = Rows(), (workspace.owner_id, workspace.id, agent.id)
        visitor = self._unproved
        counters = [limits.key(*counter) for counter in self._counters]
        rows.read([accounts.key(workspace.owner_id), *funds.keys(*place, visitor), *counters])
        bots.require_active_owner(workspace, rows)
        return funds.read(*place, visitor, rows), rows

    def _count_message(self, rows: Rows) -> Callable[[UnitOfWork], object] | None:
        """Return what stages the count of a visitor's message, once ``rows`` show that it fits."""
        if not self._unproved:
            return None
        counters = self._counters

        def stage(unit: UnitOfWork) -> None:
            for limit, subject in counters:
                limits.stage(unit, limit, subject, rows)

        return stage

    def _check_key(self) -> None:
        """Require a valid key if the bot is private.

        Raises:
            ForbiddenError: the key is missing, or it is not a key of this bot.
        """
        agent, token = self.bot.agent, self.args.api_key
        if self.caller.in_console or not agent.is_private:
            return
        if not (token and bot_keys.is_key_of(agent.id, token)):
            raise ForbiddenError("This bot is private. Send a key of the bot as apiKey.")

    def _find_replay(self, key: Future[None]) -> Replay | None:
        """Return the stored answer of a call with an idempotency key, or mark the key.

        Callers without access to the bot or the session mark nothing.
        """
        # Without access, a caller must neither learn of a stored answer nor block its key.
        key.result()
        self.session.result()
        self.idempotency_record = self._idempotency_record()
        if self.idempotency_record is None:
            return None
        return chat_request.find_or_mark(
            self.bot.workspace_id,
            self.idempotency_record,
            owner=self.caller.request_id,
            agent_id=self.bot.agent.id,
            session_token=self.args.session_id,
            is_anonymous=self._is_anonymous,
        )

    def _idempotency_record(self) -> IdempotencyRecord | None:
        """Return the idempotency record for the answer, or None if the call has no key.

        A key is scoped to the session, or else to the bot key, or else to the visitor. Therefore
        two visitors with the same key never share a record.

        Raises:
            ValidationError: the key is empty or too long.
        """
        args, caller = self.args, self.caller
        if caller.idempotency_key is None:
            return None
        key = idempotency_keys.check(caller.idempotency_key, idempotency_keys.HEADER)
        if args.session_id is not None:
            holder = f"session:{tokens.digest(args.session_id)}"
        elif self._is_anonymous:
            holder = f"visitor:{caller.visitor}"
        else:
            holder = f"key:{tokens.digest(args.api_key or '')}"
        arguments = (args.agent_id, args.message, args.session_id)
        return chat_request.idempotency_record(f"chat#{args.agent_id}#{holder}", key, arguments)

    @property
    def _is_anonymous(self) -> bool:
        """Whether the call has neither a session nor a bot key.

        Only its IP address is known.
        """
        has_key = self.bot.agent.is_private and self.args.api_key is not None
        return self.args.session_id is None and not has_key

    def _prompt(self, dialog: Future[DialogRow | None]) -> Prompt:
        agent, workspace = self.bot
        return chat_prompt.fit(
            agent,
            workspace,
            self.session.result(),
            dialog,
            self.args.message,
            can_confirm=self.args.shows(ACTIONS),
        )
