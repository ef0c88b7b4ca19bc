"""Hold the money for a message that has passed the checks, and store it in its dialog."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, cast

from chalicelib.core import clock
from chalicelib.core.errors import AppError, RateLimitedError, UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.domains.billing.flows import charging, funds
from chalicelib.domains.billing.flows.charging import Hold, Prices, Terms
from chalicelib.domains.billing.flows.funds import Funds
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.billing.rules.spending_windows import (
    InsufficientBalanceError,
    SpendingError,
)
from chalicelib.domains.bots.rules.channels import TEST_CHANNEL, Channel
from chalicelib.domains.bots.store import bot_metrics, visits
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.flows import chat_leads
from chalicelib.domains.chat.flows.chat_prompt import Prompt
from chalicelib.domains.chat.flows.chat_request import SOURCES, Caller, ChatRequest
from chalicelib.domains.chat.flows.dialog_removal import expiry_job
from chalicelib.domains.chat.flows.exchange import Ending, Exchange, message_id
from chalicelib.domains.chat.flows.tool_calls import Tool, ToolContext
from chalicelib.domains.chat.store import chat_sessions, messages
from chalicelib.domains.chat.store.chat_sessions import SessionBusyError, SessionRow
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.clients.store import contact_lookups
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import limits
from chalicelib.engine.metrics import Increments
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib import extracts, tokens
from chalicelib.lib.sources import drop_query

MAX_MESSAGES = 300  # of the visitor in a dialog


class Bot(NamedTuple):
    agent: AgentRow
    workspace: WorkspaceRow

    @property
    def workspace_id(self) -> str:
        return self.workspace.id

    def add_counts(self, channel: str, measures: Mapping[str, int]) -> None:
        """Update counters outside of any transaction, and ignore failures."""
        counts = Increments(self.workspace_id)
        today = clock.local_day(clock.now(), self.workspace.timezone)
        bot_metrics.count(counts, self.agent.id, channel=channel, day=today, measures=measures)
        # Statistics must not fail an answer.
        with suppress(UnavailableError):
            counts.write()


def find_dialog(bot: Bot, session: SessionRow | None) -> DialogRow | None:
    """Return the dialog to continue, or None if the message begins it."""
    # A session that a replay began has no dialog yet.
    return DIALOGS.find(bot.workspace_id, record_id=session.dialog_id) if session else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CheckedMessage:
    """A message that has passed the checks, and the rows that the checks read."""

    args: ChatRequest
    caller: Caller
    bot: Bot
    session: SessionRow | None  # to continue, like ``dialog``
    dialog: DialogRow | None
    prompt: Prompt
    funds: Funds
    # Limits on a visitor's messages. Callers who have proved who they are have none.
    counters: Sequence[tuple[Limit, str]]
    rows: Rows  # with the rows of the counters
    idempotency_record: IdempotencyRecord | None
    is_anonymous: bool  # neither a session nor a bot key
    began: float

    @property
    def _unproved(self) -> tuple[str, ...]:
        return self.caller.share_subjects if self.counters else ()

    @property
    def _channel(self) -> Channel:
        if self.dialog is not None:
            return cast("Channel", self.dialog.channel)
        # The first message sets the channel of the dialog.
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
            raise RateLimitedError(msg, key="dialog_messages")
        # A call over the limit must not hold money first.
        limits.require_room(self.counters, self.rows)
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
                funds.emit_limit_reached(
                    self.bot.workspace_id, agent_id=self.bot.agent.id, window=error.used_up
                )
            raise
        token = self.args.session_id or chat_sessions.new_token()
        message_contacts = chat_leads.contacts_in(self.args, self.bot.workspace.country)
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
            for limit, subject in self.counters:
                limits.stage(unit, limit, subject)

        return charging.reserve(
            terms,
            holder,
            planned.input_tokens,
            max_output_tokens=planned.output_tokens,
            stage=stage,
            message_id=answer_id,
            read=self.funds,
        )

    def _store(self, exchange: Exchange, message_contacts: Sequence[str]) -> None:
        text, workspace = self.args.message, self.bot.workspace
        contact = chat_leads.find_contact(self.args, workspace.country, channel=exchange.channel)
        unused = [self.dialog]  # The first attempt writes what was read before, or conflicts.

        def stage(unit: UnitOfWork) -> None:
            now = clock.now()
            stored_dialog = unused.pop() if unused else find_dialog(self.bot, self.session)
            dialog = stored_dialog or self._new_dialog(exchange)
            number = dialog.record_message(text, now)
            dialog.named_contacts = contact_lookups.merge_contacts(
                dialog.named_contacts, message_contacts
            )
            if number + 1 != exchange.number:
                raise SessionBusyError
            counts, today = Increments(unit.tenant), clock.local_day(now, workspace.timezone)
            measures = {bot_metrics.MESSAGES: 1, bot_metrics.DIALOGS: int(stored_dialog is None)}
            if contact and chat_leads.stage_lead(
                unit,
                workspace,
                dialog,
                contact,
                text,
                now,
                self._unproved,
                chat_leads.consent_in(self.args),
            ):
                measures[bot_metrics.LEADS] = 1
                if dialog.visit_id is not None:
                    visits.reach(
                        unit,
                        counts,
                        dialog.agent_id,
                        visit_id=dialog.visit_id,
                        stage="lead",
                        visit=visits.find(
                            unit.tenant, agent_id=dialog.agent_id, visit_id=dialog.visit_id
                        ),
                        today=today,
                        page_url=dialog.page_url,
                    )
            bot_metrics.count(
                counts, dialog.agent_id, channel=dialog.channel, day=today, measures=measures
            )
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
            token=exchange.session_token,
            agent_id=self.bot.agent.id,
            dialog_id=exchange.dialog_id,
            holder=self.caller.request_id,
        )

    def _event(self) -> AuditEvent:
        return AuditEvent(
            "chat", f"visitor:{self.caller.visitor}", request_id=self.caller.request_id
        )


def _sources(prompt: Prompt) -> list[dict[str, str]]:
    pages = [source for source in prompt.sources if source.url]
    texts = [f"{page.title} {page.text}" for page in pages]
    fitting = [pages[index] for index in extracts.most_relevant(prompt.visitor_texts[-1], texts)]
    urls = {source.url: source.title for source in fitting}
    return [{"title": title, "url": url} for url, title in urls.items() if url]
