"""Accept a visitor's message, once it is checked and its cost reserved.

Keep the order of the checks: it prevents a caller without access from learning about a bot, its
sessions or its balance. ``domains.chat.flows.stream_answer`` produces the answer.
"""

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Any

from chalicelib.core import deadline, idempotency_keys
from chalicelib.core.errors import ForbiddenError, NotFoundError, UnavailableError
from chalicelib.core.limits import Limit
from chalicelib.core.settings import settings
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.domains.billing.flows import funds
from chalicelib.domains.billing.flows.funds import Funds
from chalicelib.domains.bots.flows import active_bot
from chalicelib.domains.bots.store import bot_keys
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.flows import chat_facts, chat_prompt, replays
from chalicelib.domains.chat.flows.chat_prompt import Prompt
from chalicelib.domains.chat.flows.chat_request import ACTIONS, Caller, ChatRequest
from chalicelib.domains.chat.flows.checked_message import Bot, CheckedMessage, find_dialog
from chalicelib.domains.chat.flows.exchange import Exchange
from chalicelib.domains.chat.flows.replays import Replay
from chalicelib.domains.chat.store import chat_sessions, open_streams
from chalicelib.domains.chat.store.chat_sessions import SessionRow
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.chat.store.open_streams import OpenStreamsRow
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import limits
from chalicelib.engine.reading import Rows
from chalicelib.gateways.llm.facts import Facts
from chalicelib.lib import tokens

# From one visitor to one bot. If the rate limiter is unavailable, requests are refused.
MESSAGES = Limit("chat", "messages per minute to a bot", 60, timedelta(minutes=1))
# From one visitor to one bot, counted in the transaction that reserves.
MESSAGES_PER_DAY = Limit("chat-day", "messages per day to a bot", 200, timedelta(days=1))
# From all visitors to one bot. It applies only behind the edge.
MESSAGES_OF_BOT = Limit(
    "chat-bot", "messages per minute to this bot", 600, timedelta(minutes=1), share=MESSAGES
)


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
    with deadline.side_by_side() as start:
        counted = start(partial(limits.take, MESSAGES, f"visitor:{caller.visitor}#{args.agent_id}"))
        workspace_id = AGENTS.found_for_visitor(AGENTS.workspace_of(args.agent_id))
    if counted.exception() is not None:
        # A bot that is off, or whose owner is disabled, is hidden also from who is refused.
        active_bot.active_bot(workspace_id, agent_id=args.agent_id)
    counted.result()
    with deadline.side_by_side() as start:
        # The facts need neither the bot's row nor the session, and take two waves or three.
        facts = start(
            partial(chat_facts.find, workspace_id, agent_id=args.agent_id, question=args.message)
        )
        return _accept(args, caller, workspace_id, facts, began)


def _accept(
    args: ChatRequest, caller: Caller, workspace_id: str, facts: Future[Facts], began: float
) -> Exchange | Replay:
    with deadline.side_by_side() as start:
        session = start(partial(_find_session, args, workspace_id))
        streams = start(partial(_open_streams, caller.visitor))
        bot = Bot(*active_bot.switched_on(workspace_id, agent_id=args.agent_id))
    message = _Message(args, caller, bot, session, facts, began)
    try:
        return message.accept(streams.result())
    except BaseException:
        # The stream was counted as open, and nobody would end it until it expires.
        end_stream(caller)
        with suppress(UnavailableError):
            replays.clear_replay(workspace_id, message.idempotency_record, owner=caller.request_id)
        raise


def end_stream(caller: Caller) -> None:
    """Record the end of a caller's stream, even if it was not read to the end."""
    if _behind_edge():
        with suppress(UnavailableError):
            open_streams.end(caller.visitor, request_id=caller.request_id)


def _open_streams(visitor: str) -> OpenStreamsRow | None:
    return open_streams.find(visitor) if _behind_edge() else None


def _behind_edge() -> bool:
    # Without the edge, many visitors may share one address.
    return bool(settings().edge_secret)


def _find_session(args: ChatRequest, workspace_id: str) -> SessionRow | None:
    if args.session_id is None:
        return None
    session = chat_sessions.find(workspace_id, agent_id=args.agent_id, token=args.session_id)
    if session is None:
        msg = "This bot has no session with this sessionId. To start a new dialog, omit sessionId."
        raise NotFoundError(msg, key="dialog")
    return session


@dataclass(slots=True, eq=False, repr=False)
class _Message:
    args: ChatRequest
    caller: Caller
    bot: Bot
    session: Future[SessionRow | None]
    facts: Future[Facts]
    began: float
    idempotency_record: IdempotencyRecord | None = None

    def accept(self, streams: OpenStreamsRow | None) -> Exchange | Replay:
        # The checks run side by side with the reads of what follows. A failure is raised only when
        # all have ended, so that the caller can undo their marks.
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
                    start(
                        partial(
                            open_streams.begin, visitor, request_id=request_id, open_streams=streams
                        )
                    ),
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
                counters=self._counters,
                rows=paying.result()[1],
                idempotency_record=self.idempotency_record,
                is_anonymous=self._is_anonymous,
                began=self.began,
            )
        return checked_message.store()

    @property
    def _unproved(self) -> tuple[str, ...]:
        proved = self.caller.in_console or self.bot.agent.is_private
        # Nothing is shared if more is known: a member, or the key of a private bot.
        return () if proved else self.caller.share_subjects

    @property
    def _counters(self) -> list[tuple[Limit, str]]:
        subjects = [f"{subject}#{self.bot.agent.id}" for subject in self._unproved]
        return limits.visitor_limits(MESSAGES_PER_DAY, subjects)

    def _read_funds(self) -> tuple[Funds, Rows]:
        agent, workspace = self.bot
        rows = Rows()
        visitor = self._unproved
        counters = [limits.key(*counter) for counter in self._counters]
        rows.read(
            [
                accounts.key(workspace.owner_id),
                *funds.keys(
                    workspace.owner_id,
                    workspace_id=workspace.id,
                    agent_id=agent.id,
                    spenders=visitor,
                ),
                *counters,
            ]
        )
        active_bot.require_active_owner(workspace, rows)
        return funds.read(
            workspace.owner_id,
            workspace_id=workspace.id,
            agent_id=agent.id,
            spenders=visitor,
            rows=rows,
        ), rows

    def _check_key(self) -> None:
        agent, token = self.bot.agent, self.args.api_key
        if self.caller.in_console or not agent.is_private:
            return
        if not (token and bot_keys.is_key_of(agent.id, token=token)):
            raise ForbiddenError(
                "This bot is private. Send a key of the bot as apiKey.", key="bot_key_required"
            )

    def _find_replay(self, key: Future[None]) -> Replay | None:
        # Callers without access to the bot or the session mark nothing.
        # Without access, a caller must neither learn of a stored answer nor block its key.
        key.result()
        self.session.result()
        self.idempotency_record = self._idempotency_record()
        if self.idempotency_record is None:
            return None
        return replays.find_or_mark(
            self.bot.workspace_id,
            self.idempotency_record,
            owner=self.caller.request_id,
            agent_id=self.bot.agent.id,
            session_token=self.args.session_id,
            is_anonymous=self._is_anonymous,
        )

    def _idempotency_record(self) -> IdempotencyRecord | None:
        args, caller = self.args, self.caller
        if caller.idempotency_key is None:
            return None
        key = idempotency_keys.check(caller.idempotency_key, name=idempotency_keys.HEADER)
        # The scope is the session, or else the bot key, or else the visitor. Therefore two visitors
        # with the same key never share a record.
        if args.session_id is not None:
            holder = f"session:{tokens.digest(args.session_id)}"
        elif self._is_anonymous:
            holder = f"visitor:{caller.visitor}"
        else:
            holder = f"key:{tokens.digest(args.api_key or '')}"
        arguments = (args.agent_id, args.message, args.session_id)
        return replays.idempotency_record(
            f"chat#{args.agent_id}#{holder}", key=key, arguments=arguments
        )

    @property
    def _is_anonymous(self) -> bool:
        # Only the IP address of an anonymous caller is known.
        has_key = self.bot.agent.is_private and self.args.api_key is not None
        return self.args.session_id is None and not has_key

    def _prompt(self, dialog: Future[DialogRow | None]) -> Prompt:
        agent, workspace = self.bot
        return chat_prompt.fit(
            agent,
            workspace,
            self.args.message,
            session=self.session.result(),
            dialog=dialog,
            found_facts=self.facts,
            can_confirm=self.args.shows(ACTIONS),
        )
