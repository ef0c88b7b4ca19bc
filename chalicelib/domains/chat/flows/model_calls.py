"""The calls to a model for one answer, and the tool calls between them."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import Any, NamedTuple

from chalicelib.core import deadline
from chalicelib.core.errors import AppError, UnavailableError
from chalicelib.core.text import cut_bytes
from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, TokenUsage
from chalicelib.domains.chat.flows import chat_history, tool_calls
from chalicelib.domains.chat.flows.exchange import Exchange
from chalicelib.domains.chat.rules.call_budget import (
    MAX_CALLS,
    MAX_TOOL_CALLS,
    RESULT_TOKENS,
    TOOL_PREAMBLE,
    CallBudget,
)
from chalicelib.domains.chat.rules.links import REMOVED, LinkFilter, hosts_in
from chalicelib.domains.chat.store import proposals
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
)

log = logging.getLogger(__name__)
MODEL_SECONDS = 270.0  # of an answer; the Lambda function's timeout is 360
TOOLS_UNTIL = 45.0  # The model then receives no more tools, so that it ends its answer.
TOOL_SECONDS = 5.0  # of one tool call; the result of a slower one is an error
MAX_STORED_ARGUMENTS = 1_000  # bytes of a call's arguments that are stored with the answer
MAX_STORED_NAME = 64
TOO_MANY = "Too many calls in one answer. Answer with what you know."


@dataclass(slots=True, eq=False, repr=False)
class _Call:
    text: list[str] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)
    extra: Mapping[str, Any] | None = None
    is_final: bool = False  # Tool calls of a final call are ignored.


class Proposed(NamedTuple):
    """A proposal that a tool call has made, to show to the visitor."""

    proposal: ProposalRow


class ModelCalls:
    """The calls of one answer. One thread reads ``events``; others may call ``usage``.

    ``acknowledge`` stores the usage so far. It is called after a call that tools follow, and before
    the next call, with its input. So a crash charges for every call that has ended. ``is_wanted``
    is whether another call may begin.
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
        self.stop_reason: StopReason = "other"  # why the last call ended
        # Of all calls as the provider reported it; None if it reported none.
        self.provider_usage: TokenUsage | None = None

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

        ``output_tokens`` is the number of tokens of text and reasoning of all calls.
        """
        return self._usage.total(output_tokens + self._removed)

    def events(self) -> Iterator[TextDelta | Reasoning | Proposed]:
        """Yield text, reasoning and proposals of all calls. Texts of two calls have a line between.

        Raises ModelError, or UnavailableError if the usage of an ended call could not be stored.
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
        # Links to unknown hosts lose their addresses.
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
        # Few answers have a link that needs the sites.
        return host in self._exchange.link_hosts or host in self._site_hosts

    @cached_property
    def _site_hosts(self) -> set[str]:
        try:
            return hosts_in(sites.find_urls(self._context.workspace.id))
        except UnavailableError:
            log.warning(
                "links to sites were removed, because the sites were not read", exc_info=True
            )
            return set()

    def _stream(self, number: int, call: _Call) -> Generator[TextDelta | Reasoning, None, None]:
        model, refused_tools, refused_length = self._exchange.spec.provider_id, False, False
        while True:
            try:
                # What the provider refuses is left out, and the messages are sent again.
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
                    observed_limits.remember_refused(model, part="tools")
                if refused_length:
                    observed_limits.remember_context(model, self._accepted_context())
                return

    def _adapt_to(self, error: ModelError) -> bool:
        if error.kind == "no_tools" and self._specs:
            self._drop_tools()
            return True
        if error.kind != "too_long":
            return False
        reported = max(error.context_tokens or self._context_tokens, chat_history.MIN_CONTEXT)
        is_smaller = reported < self._context_tokens
        self._context_tokens = min(reported, self._context_tokens)
        turns = (len(self._exchange.messages) - self._dropped) // 2 - 1
        dropped = 2 * (turns - turns // 2)
        self._dropped += dropped
        del self._messages[1 : 1 + dropped]
        return is_smaller or dropped > 0

    def _accepted_context(self) -> int:
        if self._context_tokens < self._exchange.spec.context_tokens:
            return self._context_tokens
        accepted = self._count(self._messages) + self._exchange.max_output
        return max(accepted, chat_history.LEAST_ASSUMED_CONTEXT)

    def _drop_tools(self) -> None:
        self._specs = []
        self._messages[0] = self._exchange.message_without_tools

    def _request(self, number: int, call: _Call) -> Generator[TextDelta | Reasoning, None, None]:
        exchange, needed = self._exchange, self._count(self._messages)
        room = self._context_tokens - needed
        output = self._output_with_tools(number, needed=needed, room=room - RESULT_TOKENS)
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

    def _output_with_tools(self, number: int, *, needed: int, room: int) -> int | None:
        if (
            not self._specs
            or number == MAX_CALLS - 1
            or self._tool_calls >= MAX_TOOL_CALLS
            or monotonic() - self._began > TOOLS_UNTIL
            or room < LEAST_OUTPUT
        ):
            return None
        output = self._budget.output_with_tools(
            self._usage.ended, needed, result_tokens=RESULT_TOKENS
        )
        return None if output is None else min(output, room)

    def _count(self, messages: Sequence[Message]) -> int:
        count = chat_history.counter(self._exchange.spec.provider)
        return count(messages, self._specs) + (TOOL_PREAMBLE if self._specs else 0)

    def _carry_out(self, call: _Call) -> None:
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
        context = self._context
        try:
            proposals.keep_offered(
                context.workspace.id, dialog_id=context.dialog_id, slots=context.offered_slots
            )
        except AppError:
            log.warning("offered times were not stored", exc_info=True)


def _to_stored_call(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    arguments = cut_bytes(call.arguments, MAX_STORED_ARGUMENTS)
    name = cut_bytes(call.name, MAX_STORED_NAME)
    return {"name": name, "arguments": arguments, "isError": result.is_error}


class _Usage(NamedTuple):
    # The reading thread replaces the tuple, and other threads read it.
    ended: TokenUsage
    input_tokens: int  # an estimate of the input of the current call
    counted_before: int = 0  # tokens of text and reasoning of the ended calls
    reported: TokenUsage | None = None  # by the provider

    def total(self, output_tokens: int) -> TokenUsage:
        output = max(0, output_tokens - self.counted_before)
        return _sum(self.ended, self.reported or TokenUsage(self.input_tokens, output))


def _sum(one: TokenUsage, other: TokenUsage) -> TokenUsage:
    return TokenUsage(
        one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens
    )
