"""Stream the answer to a message as events.

Two threads assist the thread that sends events:

- The reader (``chat-model``) reads the model's output into a bounded queue. So the sending thread
  can send pings while no output arrives, and can cancel the model at any time.
- The keeper (``chat-keeper``) writes checkpoints and renews the session's lock. A slow visitor does
  not delay checkpoints, and a slow checkpoint does not delay the visitor.

Output tokens are counted as they arrive, including reasoning. The provider's usage arrives last and
replaces the count, so the reader continues for some seconds after the visitor has disconnected.

The calls to a model for one answer, and the tool calls between them.
"""

import logging
import queue
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock, Thread
from time import monotonic, perf_counter
from typing import Any, NamedTuple

from chalicelib.core import deadline
from chalicelib.core.errors import AppError, UnavailableError
from chalicelib.core.text import cut_bytes, is_visible
from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, TokenUsage
from chalicelib.domains.chat.flows import chat_prompt, tool_calls
from chalicelib.domains.chat.flows.chat_exchange import Ending, Exchange
from chalicelib.domains.chat.rules.call_budget import (
    MAX_CALLS,
    MAX_TOOL_CALLS,
    RESULT_TOKENS,
    TOOL_PREAMBLE,
    CallBudget,
    EndReason,
    ErrorCode,
)
from chalicelib.domains.chat.rules.links import REMOVED, LinkFilter, hosts_in
from chalicelib.domains.chat.store import proposals
from chalicelib.domains.chat.store.messages import MAX_ANSWER_BYTES, MessageStatus
from chalicelib.domains.chat.store.proposals import ProposalRow
from chalicelib.domains.sites.store import sites
from chalicelib.gateways import llm
from chalicelib.gateways.llm import (
    ModelError,
    ProviderUsage,
    Reasoning,
    Stop,
    StopReason,
    TextDelta,
    observed_limits,
)
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import (
    Message,
    TokenCounter,
    ToolCall,
    ToolResult,
    count_input,
    count_tokens,
)

MODEL_SECONDS = 270.0
"""Maximum duration of an answer, in seconds. The Lambda function's timeout is 360."""
TOOLS_UNTIL = 45.0
"""Seconds after which the model receives no more tools, so that it ends its answer."""
TOOL_SECONDS = 5.0
"""Maximum duration of one tool call, in seconds. The result of a slower one is an error."""
MAX_STORED_ARGUMENTS = 1_000
"""Maximum size, in bytes, of a call's arguments that are stored with the answer."""
MAX_STORED_NAME = 64
TOO_MANY = "Too many calls in one answer. Answer with what you know."


log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, repr=False)
class _Call:
    """One call to the model: its text, and the tool calls that it requests.

    Tool calls of a final call are ignored.
    """

    text: list[str] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    extra: Mapping[str, Any] | None = None
    is_final: bool = False


class Proposed(NamedTuple):
    """A proposal that a tool call has made, to show to the visitor."""

    proposal: ProposalRow


class ModelCalls:
    """The calls of one answer. One thread reads ``events``; others may call ``usage``.

    ``acknowledge`` stores the usage so far. It is called after a call that tools follow, and before
    the next call, with its input. So a crash charges for every call that has ended.
    ``is_wanted`` is whether another call may begin.
    """

    def __init__(
        self,
        exchange: Exchange,
        cancellation: Cancellation,
        *,
        acknowledge: Callable[[], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._exchange = exchange
        self._cancellation = cancellation
        self._acknowledge = acknowledge
        self._is_wanted = is_wanted
        self._began = monotonic()
        hold = exchange.hold
        self._budget = CallBudget(hold.prices, hold.amount, hold.granted)
        self._specs = [tool.spec for tool in exchange.tools]
        self._context = exchange.tool_context
        self._messages = list(exchange.messages)
        self._context_tokens = exchange.spec.context_tokens
        self._dropped = 0  # Messages of the history that are not sent.
        self._tool_calls = 0
        self._shown = 0
        self.tool_calls: list[dict[str, Any]] = []
        self._text_counter, self._reasoning_counter = TokenCounter(), TokenCounter()
        self._shown_counter = TokenCounter()
        self._removed = 0  # Tokens of the links that were removed from calls that have ended.
        self._usage = _Usage(TokenUsage(0, 0), exchange.input_tokens)
        self.is_complete = False
        self.stop_reason: StopReason = "other"
        """Why the last call ended."""
        self.provider_usage: TokenUsage | None = None
        """The usage of all calls as the provider reported it; None if it reported none."""

    @property
    def has_acted(self) -> bool:
        """Whether the answer has a proposal, or a request for an employee."""
        return bool(self._context.proposed) or self._context.has_requested_person

    @property
    def has_ended_one(self) -> bool:
        """Whether a call has ended, so that the answer costs something even without text."""
        return any(self._usage.ended)

    def usage(self, output_tokens: int) -> TokenUsage:
        """Return the usage of the calls that have ended and, as an estimate, of the current one.

        ``output_tokens`` is the number of tokens of text and reasoning of all calls. The tokens of
        removed links are added to this number.
        """
        return self._usage.total(output_tokens + self._removed)

    def events(self) -> Iterator[TextDelta | Reasoning | Proposed]:
        """Yield text, reasoning and proposals of all calls. Texts of two calls have a line between.

        Raises:
            ModelError: a call failed.
            UnavailableError: the usage of a call that has ended could not be stored.
        """
        has_text = False
        for number in range(MAX_CALLS):
            call = _Call()
            with closing(self._shown_events(number, call)) as events:
                for event in events:
                    if isinstance(event, TextDelta):
                        begins = has_text and not call.text
                        has_text = True
                        call.text.append(event.text)
                        yield TextDelta("\n\n" + event.text) if begins else event
                    else:
                        yield event
            if self._usage.reported is None:
                raise ModelError("garbage", "The stream ended without usage.")
            if call.is_final or not call.tool_calls:
                self.is_complete = True
                return
            if not self._is_wanted():
                return
            self._carry_out(call)
            proposed = self._context.proposed
            yield from map(Proposed, proposed[self._shown :])
            self._shown = len(proposed)

    def _shown_events(
        self, number: int, call: _Call
    ) -> Generator[TextDelta | Reasoning, None, None]:
        """Yield text and reasoning of a call.

        Links to unknown hosts lose their addresses.
        """
        links = LinkFilter(self._may_link, REMOVED[self._context.language])
        problem: ModelError | None = None
        with closing(self._stream(number, call)) as events:
            try:
                for event in events:
                    if not isinstance(event, TextDelta):
                        yield event
                    elif text := links.add(event.text):
                        self._shown_counter.add(text)
                        yield TextDelta(text)
            except ModelError as error:
                problem = error
        text = links.end()
        self._shown_counter.add(text)
        self._removed = max(0, self._text_counter.tokens - self._shown_counter.tokens)
        if text:
            yield TextDelta(text)
        if problem is not None:
            raise problem

    def _may_link(self, host: str) -> bool:
        """Whether the answer may link to a host.

        Few answers have a link that needs the sites.
        """
        return host in self._exchange.link_hosts or host in self._site_hosts

    @cached_property
    def _site_hosts(self) -> set[str]:
        """Hosts of the workspace's sites, or an empty set if the sites cannot be read."""
        try:
            return hosts_in(sites.find_urls(self._context.workspace.id))
        except UnavailableError:
            log.warning(
                "links to sites were removed, because the sites were not read", exc_info=True
            )
            return set()

    def _stream(self, number: int, call: _Call) -> Generator[TextDelta | Reasoning, None, None]:
        """Send the messages, and send them again as the provider accepts them if it refuses."""
        model, refused_tools, refused_length = self._exchange.spec.provider_id, False, False
        while True:
            try:
                yield from self._request(number, call)
            except ModelError as error:
                if not (error.before_first_token and self._adapt_to(error)):
                    raise
                refused_tools |= error.kind == "no_tools"
                refused_length |= error.kind == "too_long"
                used = count_input(self._messages, self._specs)
                self._usage = self._usage._replace(input_tokens=used)
            else:
                # A refusal counts for other bots only if a smaller request was accepted.
                if refused_tools and not number:
                    observed_limits.remember_refused(model, "tools")
                if refused_length:
                    observed_limits.remember_context(model, self._accepted_context())
                return

    def _adapt_to(self, error: ModelError) -> bool:
        """Leave out what the provider has refused.

        Return whether another request may succeed.
        """
        if error.kind == "no_tools" and self._specs:
            self._drop_tools()
            return True
        if error.kind != "too_long":
            return False
        reported = max(error.context_tokens or self._context_tokens, chat_prompt.MIN_CONTEXT)
        is_smaller = reported < self._context_tokens
        self._context_tokens = min(reported, self._context_tokens)
        turns = (len(self._exchange.messages) - self._dropped) // 2 - 1
        dropped = 2 * (turns - turns // 2)
        self._dropped += dropped
        del self._messages[1 : 1 + dropped]
        return is_smaller or dropped > 0

    def _accepted_context(self) -> int:
        """Return the context to assume after a refusal, either the reported or the accepted one."""
        if self._context_tokens < self._exchange.spec.context_tokens:
            return self._context_tokens
        accepted = self._count(self._messages) + self._exchange.max_output
        return max(accepted, chat_prompt.LEAST_ASSUMED_CONTEXT)

    def _drop_tools(self) -> None:
        """Send no tools, and a system message that promises none."""
        self._specs = []
        self._messages[0] = self._exchange.message_without_tools

    def _request(self, number: int, call: _Call) -> Generator[TextDelta | Reasoning, None, None]:
        """Send the messages, and yield text and reasoning.

        ``call`` receives the tool calls.
        """
        exchange, needed = self._exchange, self._count(self._messages)
        room = self._context_tokens - needed
        output = self._output_with_tools(number, needed, room - RESULT_TOKENS)
        call.is_final = final = output is None
        if final and not number and self._specs:
            self._drop_tools()
        if output is None:
            output = min(room, self._budget.final_output(self._usage.ended, needed))
        response = llm.chat_model_for(exchange.spec).stream(
            self._messages,
            model=exchange.spec.provider_id,
            max_output_tokens=max(LEAST_OUTPUT, min(output, exchange.max_output)),
            seconds=max(0.0, MODEL_SECONDS - (monotonic() - self._began)),
            tools=self._specs,
            final=final,
            cancellation=self._cancellation,
        )
        with closing(response) as events:
            for event in events:
                match event:
                    case TextDelta(text) if text:
                        self._text_counter.add(text)
                        yield event
                    case Reasoning(text):
                        self._reasoning_counter.add(text)
                        yield event
                    case ToolCall():
                        call.tool_calls.append(event)
                    case Stop(reason, extra):
                        self.stop_reason, call.extra = reason, extra
                    case ProviderUsage(tokens_in, tokens_out, is_estimated):
                        reported = TokenUsage(tokens_in, tokens_out)
                        self._usage = self._usage._replace(reported=reported)
                        if not is_estimated:
                            prior_usage = self.provider_usage or TokenUsage(0, 0)
                            self.provider_usage = _sum(prior_usage, reported)

    def _output_with_tools(self, number: int, needed: int, room: int) -> int | None:
        """Return the output tokens of a call that may use tools, or None if it must not.

        ``room`` is what the context leaves for the output.
        """
        if (
            not self._specs
            or number == MAX_CALLS - 1
            or self._tool_calls >= MAX_TOOL_CALLS
            or monotonic() - self._began > TOOLS_UNTIL
            or room < LEAST_OUTPUT
        ):
            return None
        output = self._budget.output_with_tools(self._usage.ended, needed, RESULT_TOKENS)
        return None if output is None else min(output, room)

    def _count(self, messages: Sequence[Message]) -> int:
        """Return an upper bound of the input tokens of a call with these messages."""
        count = chat_prompt.counter(self._exchange.spec.provider)
        return count(messages, self._specs) + (TOOL_PREAMBLE if self._specs else 0)

    def _carry_out(self, call: _Call) -> None:
        """Carry out the tool calls of a call that has ended, and prepare the next one."""
        output_tokens = self._text_counter.tokens + self._reasoning_counter.tokens
        self._usage = _Usage(self._usage.total(output_tokens), 0, output_tokens)
        self._acknowledge()
        request = Message("assistant", "".join(call.text), tuple(call.tool_calls), extra=call.extra)
        results: list[ToolResult] = []
        offered_slots = self._context.offered_slots
        for tool_call in call.tool_calls:
            answer = Message("tool", "", results=tuple(results))
            needed = self._count([*self._messages, request, answer]) + RESULT_TOKENS
            output = self._budget.final_output(self._usage.ended, needed)
            output = min(output, self._context_tokens - needed)
            if self._tool_calls >= MAX_TOOL_CALLS or output < LEAST_OUTPUT:
                results.append(ToolResult(tool_call.id, tool_call.name, TOO_MANY, is_error=True))
                continue
            self._tool_calls += 1
            with deadline.within(TOOL_SECONDS):
                result = tool_calls.carry_out(tool_call, self._exchange.tools, self._context)
            results.append(result)
            self.tool_calls.append(_to_stored_call(tool_call, result))
        if self._context.offered_slots is not offered_slots:
            self._keep_offered()
        self._messages += [request, Message("tool", "", results=tuple(results))]
        self._usage = self._usage._replace(input_tokens=count_input(self._messages, self._specs))
        self._acknowledge()

    def _keep_offered(self) -> None:
        """Store the free times that the bot has named, which saves the bot another search."""
        context = self._context
        try:
            proposals.keep_offered(context.workspace.id, context.dialog_id, context.offered_slots)
        except AppError:
            log.warning("offered times were not stored", exc_info=True)


def _to_stored_call(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    """Return a call as the dialog shows it to the owner."""
    arguments = cut_bytes(call.arguments, MAX_STORED_ARGUMENTS)
    name = cut_bytes(call.name, MAX_STORED_NAME)
    return {"name": name, "arguments": arguments, "isError": result.is_error}


class _Usage(NamedTuple):
    """The usage of several calls. The reading thread replaces it, and other threads read it.

    ``ended`` is the usage of the calls that have ended, and ``counted_before`` are their tokens of
    text and reasoning. ``input_tokens`` estimates the input of the current call. ``reported`` is
    the usage that the provider has reported.
    """

    ended: TokenUsage
    input_tokens: int
    counted_before: int = 0
    reported: TokenUsage | None = None

    def total(self, output_tokens: int) -> TokenUsage:
        """Return the usage of all calls with ``output_tokens`` tokens of text and reasoning."""
        output = max(0, output_tokens - self.counted_before)
        return _sum(self.ended, self.reported or TokenUsage(self.input_tokens, output))


def _sum(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    return TokenUsage(
        one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens
    )


GRACE_SECONDS = 5.0
"""Additional seconds to wait for a model whose adapter did not enforce its timeout."""
PING_SECONDS = 15.0
USAGE_SECONDS = 10.0
"""Maximum time to read the model's usage after the visitor has disconnected, in seconds."""
CHECKPOINT_SECONDS = 2.0
"""Maximum time between two checkpoints, in seconds."""
CHECKPOINT_TOKENS = 200
"""Maximum output tokens between two checkpoints. A crash loses at most this much output."""
FIRST_PAUSE = 0.25
"""Seconds between the first checkpoint and the second.

Each later pause is twice the previous one, up to ``CHECKPOINT_SECONDS``.
"""
RENEWAL_SECONDS = 5.0
"""Interval between renewals of the session's lock, in seconds. The lock expires after 20."""
QUEUED_PIECES = 64
JOIN_SECONDS = 10.0
"""Maximum time to wait for a thread to end, in seconds.

The reader ends soon, because cancelling the model closes its socket.
"""


class Start(NamedTuple):
    """First event, with the session id, and the id of a member's latest reply."""

    session_id: str
    last_reply: str | None = None


class Chunk(NamedTuple):
    """A piece of the answer."""

    content: str


class Shown(NamedTuple):
    """A proposal, for the visitor to confirm."""

    proposal: ProposalRow


class Ping(NamedTuple):
    """A keep-alive event, sent while no output arrives."""


class Done(NamedTuple):
    """End of an answer, with its usage and sources.

    ``is_truncated`` is whether the answer reached its maximum length.
    """

    usage: TokenUsage
    sources: Sequence[Mapping[str, str]] = ()
    is_truncated: bool = False


class Failed(NamedTuple):
    """End of a failed answer.

    ``usage`` is the usage of an empty answer that was charged.
    """

    code: ErrorCode
    usage: TokenUsage | None = None


ChatEvent = Start | Chunk | Shown | Ping | Done | Failed


class Answer:
    """The events of an answer.

    The caller must always close it, even if no event was read. Closing settles or releases the
    hold.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._events = self._run()
        self._begun = False

    def __iter__(self) -> Iterator[ChatEvent]:
        """Return the answer itself."""
        return self

    def __next__(self) -> ChatEvent:
        """Return the next event."""
        self._begun = True
        return next(self._events)

    def close(self) -> None:
        """End the answer, as if the visitor had disconnected."""
        if not self._begun:
            self._begun = True
            _close(self._exchange, Ending("", "partial", None))
        self._events.close()

    def _run(self) -> Generator[ChatEvent, None, None]:
        exchange = self._exchange
        stream = _ModelStream(exchange)
        try:
            yield Start(exchange.session_token, exchange.last_reply)
            stream.begin()
            yield from stream.events()
        except BaseException as problem:
            if isinstance(problem, GeneratorExit):
                stream.read_usage()
            else:
                log.exception(
                    "an answer was aborted", extra={"requestId": exchange.hold.request_id}
                )
            _close(exchange, stream.end())
            raise
        ending = stream.end()
        _close(exchange, ending)
        if ending.error is not None or ending.usage is None:
            yield failed(ending.error or "provider_failed", ending.usage)
        else:
            yield Done(ending.usage, exchange.sources, ending.reason == "truncated")


def failed(code: ErrorCode, usage: TokenUsage | None) -> Failed:
    """Return the end of a failed answer.

    Only an empty answer shows its usage.
    """
    return Failed(code, usage if code == "empty_answer" else None)


def _close(exchange: Exchange, ending: Ending) -> None:
    """Settle or release the hold of an exchange.

    If this fails, the hold's job does it later.
    """
    about = {"requestId": exchange.hold.request_id, "agentId": exchange.hold.agent_id}
    try:
        settled = exchange.close(ending)
    except Exception:
        log.exception("an answer was not settled; its job will settle it", extra=about)
        return
    tokens = ending.usage._asdict() if ending.usage else {}
    log.info(
        "answered",
        extra={
            **about,
            "status": ending.status,
            "reason": ending.reason,
            "cost": settled.cost,
            **tokens,
        },
    )


class _ModelStream:
    """The output of a model, read by a separate thread."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._cancellation = Cancellation()
        self._calls = ModelCalls(
            exchange,
            self._cancellation,
            acknowledge=self._checkpoint,
            is_wanted=self._is_wanted,
        )
        self._checkpointing = Lock()
        self._pieces: list[str] = []
        self._size = 0
        self._text_counter, self._reasoning_counter = TokenCounter(), TokenCounter()
        self._sent_pieces = 0
        self._sent_counter = TokenCounter()  # Tokens of the sent pieces.
        self._checkpointed = 0  # Tokens at the last checkpoint.
        self._checkpoint_due = Event()
        self._queue: queue.Queue[str | Shown | None] = queue.Queue(QUEUED_PIECES)
        self._problem: BaseException | None = None
        self._timed_out = False
        self._is_too_large = False
        self._first_token_ms: int | None = None
        self._visitor_left = Event()
        self._stopped = Event()
        self._deadline = 0.0
        self._threads: list[Thread] = []

    def begin(self) -> None:
        """Send the request to the model."""
        self._deadline = monotonic() + MODEL_SECONDS + GRACE_SECONDS
        self._threads = [
            _thread("chat-model", self._read_model),
            _thread("chat-keeper", self._write_checkpoints),
        ]

    def events(self) -> Iterator[ChatEvent]:
        """Yield the pieces as they arrive, and pings while no output arrives."""
        while True:
            try:
                piece = self._queue.get(timeout=PING_SECONDS)
            except queue.Empty:
                self._timed_out = monotonic() > self._deadline
                if self._timed_out:
                    return
                yield Ping()
                continue
            if piece is None:
                return
            if isinstance(piece, Shown):
                yield piece
                continue
            try:
                yield Chunk(piece)
            finally:
                self._sent_pieces += 1
                self._sent_counter.add(piece)
                self._request_checkpoint()

    def read_usage(self) -> None:
        """Wait a short time for the provider's usage after the visitor has disconnected."""
        self._visitor_left.set()
        for reader in self._threads[:1]:
            reader.join(max(0.0, min(USAGE_SECONDS, self._deadline - monotonic())))

    def end(self) -> Ending:
        """Stop all threads, and return the result of the answer."""
        was_requested = bool(self._threads)
        self._stopped.set()
        self._checkpoint_due.set()
        if not self._calls.is_complete:
            # Shutting the socket wakes the reader, which may wait for the provider for minutes.
            self._cancellation.cancel()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
            if thread.is_alive():
                log.error("a thread of an answer does not end", extra={"who": thread.name})
        text, problem = "".join(self._pieces), self._problem
        output_tokens = self._text_counter.tokens + self._reasoning_counter.tokens
        if not was_requested:
            return Ending("", "partial", None)
        if self._timed_out:
            problem = ModelError("timeout", "The model did not end in time.")
        elif isinstance(problem, ModelError) and problem.kind == "cancelled":
            problem = None
        calls, is_whole = self._calls, self._calls.is_complete and problem is None
        reason = _failure(problem, text) if problem else self._end_reason(text)
        usage: TokenUsage | None = calls.usage(output_tokens)
        status: MessageStatus = "ok" if is_whole and reason is None else "partial"
        if reason and not (is_visible(text) or calls.has_acted):
            status = "error"
            if not calls.has_ended_one:
                usage = calls.provider_usage
        return Ending(text, status, usage, reason, self._first_token_ms, calls.tool_calls)

    def _end_reason(self, text: str) -> EndReason | None:
        """Return why an answer is not whole, although the model has not failed."""
        if self._is_too_large:
            return "truncated"
        if not self._calls.is_complete:  # The visitor has left.
            return None
        if not (is_visible(text) or self._calls.has_acted):
            return "empty_answer"
        match self._calls.stop_reason:
            case "length":
                return "truncated"
            case "filtered":
                return "filtered"
            case _:
                return None

    def _read_model(self) -> None:
        """Read the model in the reader's thread."""
        try:
            for event in self._calls.events():
                if isinstance(event, Reasoning):
                    self._reasoning_counter.add(event.text)
                    self._request_checkpoint()
                elif isinstance(event, Proposed):
                    self._put(Shown(event.proposal))
                elif not self._add(event.text):
                    break
        except BaseException as problem:
            self._problem = problem
            if not isinstance(problem, ModelError):
                log.exception("a model's adapter raised an unexpected error")
            elif problem.kind != "cancelled":
                log.warning("a model failed", extra={"kind": problem.kind, "why": problem.reason})
        finally:
            self._put(None)

    def _add(self, piece: str) -> bool:
        """Add a piece to the answer.

        Return False to stop reading the model.
        """
        room = MAX_ANSWER_BYTES - self._size
        size = len(piece.encode())
        if self._first_token_ms is None:
            self._first_token_ms = round((perf_counter() - self._exchange.began) * 1000)
        if size > room:
            self._is_too_large = True
            return False
        self._size += size
        self._pieces.append(piece)
        self._text_counter.add(piece)
        return self._put(piece)

    def _put(self, piece: str | Shown | None) -> bool:
        """Queue a piece, or drop it if the visitor has left.

        Return False to stop reading.
        """
        while not self._stopped.is_set():
            if self._visitor_left.is_set():
                return True
            try:
                self._queue.put(piece, timeout=0.5)
            except queue.Full:
                continue
            return True
        return False

    def _request_checkpoint(self) -> None:
        """Request a checkpoint for the first output, or after many tokens."""
        new = self._sent_counter.tokens + self._reasoning_counter.tokens - self._checkpointed
        if new >= (CHECKPOINT_TOKENS if self._checkpointed else 1):
            self._checkpoint_due.set()

    def _write_checkpoints(self) -> None:
        """Write checkpoints of new output, and renew the session's lock, in the keeper's thread."""
        stored_progress, pause, renewed = (0, 0), CHECKPOINT_SECONDS, perf_counter()
        while True:
            self._checkpoint_due.wait(pause)
            self._checkpoint_due.clear()
            if self._stopped.is_set():
                return
            try:
                progress = self._sent_pieces, self._reasoning_counter.tokens
                if progress != stored_progress:
                    pause = (
                        min(2 * pause, CHECKPOINT_SECONDS) if any(stored_progress) else FIRST_PAUSE
                    )
                    self._checkpoint()
                    stored_progress = progress
                if perf_counter() - renewed >= RENEWAL_SECONDS:
                    self._exchange.renew_session_lock()
                    renewed = perf_counter()
            except UnavailableError:
                log.warning("a checkpoint was not written", exc_info=True)
            except Exception:
                log.exception("a checkpoint failed")

    def _is_wanted(self) -> bool:
        """Whether the visitor still waits for the answer."""
        return not (self._stopped.is_set() or self._visitor_left.is_set())

    def _checkpoint(self) -> None:
        """Store the sent text and the usage, which never decrease."""
        with self._checkpointing:
            text = "".join(self._pieces[: self._sent_pieces])
            output_tokens = count_tokens(text) + self._reasoning_counter.tokens
            self._checkpointed = output_tokens
            usage, calls = self._calls.usage(output_tokens), self._calls.tool_calls
            self._exchange.checkpoint(Ending(text, "partial", usage, tool_calls=calls))


def _failure(problem: BaseException, text: str) -> ErrorCode:
    """Return the error code of a model that failed after this text."""
    match problem:
        case ModelError(kind="filtered"):
            return "filtered"
        case _ if is_visible(text):
            return "cut_off"
        case ModelError(kind="timeout"):
            return "timed_out"
        case _:
            return "provider_failed"


def _thread(name: str, work: Callable[[], None]) -> Thread:
    """Start a thread that does not inherit the request's deadline."""
    # A thread starts with an empty context, and so without the deadline.
    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
