"""The money of one answer, divided among the calls to its model.

All calls of an answer share one hold. A call that may use tools begins only if the hold also covers
one more call without them, so that an answer never ends at a tool call.
"""

from typing import NamedTuple

from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, MICRO, Prices, TokenUsage

MAX_CALLS = 4
"""Calls to the model for one message."""
MAX_TOOL_CALLS = 6
"""Tool calls for one message."""
MAX_RESULT_BYTES = 4_096
"""Longest result of a tool call."""
RESULT_TOKENS = MAX_RESULT_BYTES // 2 + 20
"""Upper bound of the tokens of such a result, for any tokenizer, with the call's id and name."""
TOOL_PREAMBLE = 400
"""Tokens that providers add to the input of a call with tools. Claude's are 313 to 346."""
PLANNED_CALLS = 3
"""Calls to the model that the hold of an answer with tools covers. More may fit in it."""
PLANNED_OUTPUT = 512
"""Output tokens that it covers for each call before the last one."""


def planned(input_tokens: int, max_output_tokens: int) -> TokenUsage:
    """Return the usage of an answer with tools that money is held for.

    ``input_tokens`` are those of the first call, with the tools.
    """
    before = PLANNED_CALLS - 1
    return TokenUsage(
        PLANNED_CALLS * input_tokens
        + (RESULT_TOKENS + PLANNED_OUTPUT) * (before * PLANNED_CALLS // 2),
        max_output_tokens + before * PLANNED_OUTPUT,
    )


class CallBudget(NamedTuple):
    """The hold of an answer: ``held`` is in kopecks, ``granted`` in output tokens of all calls."""

    prices: Prices
    held: int
    granted: int

    def final_output(self, spent: TokenUsage, input_tokens: int) -> int:
        """Return the output tokens that are left for a call without tools."""
        left = self._left(spent) - self.prices.input * input_tokens
        return self._output(spent, left, self.prices.output)

    def output_with_tools(
        self, spent: TokenUsage, input_tokens: int, result_tokens: int
    ) -> int | None:
        """Return the output tokens of a call with tools, or None if it must not use tools.

        After it, the hold covers a final call: the same input, the output and ``result_tokens`` of
        results, and ``LEAST_OUTPUT`` tokens of output.
        """
        prices = self.prices
        final = prices.input * (input_tokens + result_tokens) + prices.output * LEAST_OUTPUT
        left = self._left(spent) - prices.input * input_tokens - final
        spare = spent._replace(output_tokens=spent.output_tokens + LEAST_OUTPUT)
        output = self._output(spare, left, prices.output + prices.input)
        return output if output >= LEAST_OUTPUT else None

    def _left(self, spent: TokenUsage) -> int:
        """Return the micro-kopecks that are left."""
        used = self.prices.input * spent.input_tokens + self.prices.output * spent.output_tokens
        return self.held * MICRO - used

    def _output(self, spent: TokenUsage, micro: int, price: int) -> int:
        most = self.granted - spent.output_tokens
        return max(0, min(most, micro // price if price else most))
