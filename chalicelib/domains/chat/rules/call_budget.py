"""The money of one answer, divided among the calls to its model.

All calls of an answer share one hold. A call that may use tools begins only if the hold also covers
one more call without them, so that an answer never ends at a tool call.
"""

from typing import NamedTuple

from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, MICRO, Prices, TokenUsage

MAX_CALLS = 4
"""Maximum number of calls to the model for one message."""
MAX_TOOL_CALLS = 6
"""Maximum number of tool calls for one message."""
MAX_RESULT_BYTES = 4_096
"""Longest result of a tool call."""
RESULT_TOKENS = MAX_RESULT_BYTES // 2 + 20
"""Upper bound of the tokens of such a result, for any tokenizer, with the call's id and name."""
TOOL_PREAMBLE = 400
"""Tokens that providers add to the input of a call with tools. Claude's are 313 to 346."""
PLANNED_CALLS = 3
"""Calls to the model that the hold of an answer with tools covers. More may fit."""
PLANNED_OUTPUT = 512
"""Output tokens that it covers for each call before the last one."""


def planned(input_tokens: int, *, max_output_tokens: int) -> TokenUsage:
    """Return the usage of an answer with tools that money is held for.

    ``input_tokens`` is the size of the first call, with the tools.
    """
    earlier_calls = PLANNED_CALLS - 1
    return TokenUsage(
        PLANNED_CALLS * input_tokens
        + (RESULT_TOKENS + PLANNED_OUTPUT) * (earlier_calls * PLANNED_CALLS // 2),
        max_output_tokens + earlier_calls * PLANNED_OUTPUT,
    )


class CallBudget(NamedTuple):
    """The hold of an answer.

    ``amount`` is in kopecks. ``max_output`` is the maximum of output tokens of all calls.
    """

    prices: Prices
    amount: int
    max_output: int

    def final_output(self, spent: TokenUsage, input_tokens: int) -> int:
        """Return the output tokens that are left for a call without tools."""
        output_room = self._remaining_micro(spent) - self.prices.input * input_tokens
        return self._output(spent, output_room, price=self.prices.output)

    def output_with_tools(
        self, spent: TokenUsage, input_tokens: int, *, result_tokens: int
    ) -> int | None:
        """Return the output tokens of a call with tools, or None if it must not use tools.

        After that call, the hold covers a final call: the same input, the output and
        ``result_tokens`` of results, and ``LEAST_OUTPUT`` tokens of output.
        """
        prices = self.prices
        final = prices.input * (input_tokens + result_tokens) + prices.output * LEAST_OUTPUT
        output_room = self._remaining_micro(spent) - prices.input * input_tokens - final
        spare = spent._replace(output_tokens=spent.output_tokens + LEAST_OUTPUT)
        output = self._output(spare, output_room, price=prices.output + prices.input)
        return output if output >= LEAST_OUTPUT else None

    def _remaining_micro(self, spent: TokenUsage) -> int:
        """Return the micro-kopecks that are left."""
        used = self.prices.input * spent.input_tokens + self.prices.output * spent.output_tokens
        return self.amount * MICRO - used

    def _output(self, spent: TokenUsage, micro: int, *, price: int) -> int:
        max_tokens = self.max_output - spent.output_tokens
        return max(0, min(max_tokens, micro // price if price else max_tokens))
