"""The money of one answer, divided among the calls to its model, which share one hold.

A call that may use tools begins only if the hold also covers one more call without them, so that an
answer never ends at a tool call.
"""

from typing import NamedTuple

from chalicelib.domains.billing.rules.pricing import LEAST_OUTPUT, MICRO, Prices, TokenUsage

MAX_CALLS = 4  # to the model for one message
MAX_TOOL_CALLS = 6  # for one message
MAX_RESULT_BYTES = 4_096  # of a tool call
# An upper bound for such a result with the call's id and name, for any tokenizer.
RESULT_TOKENS = MAX_RESULT_BYTES // 2 + 20
# Tokens that providers add to the input of a call with tools. Claude's are 313 to 346.
TOOL_PREAMBLE = 400
PLANNED_CALLS = 3  # Calls to the model that the hold of an answer with tools covers. More may fit.
PLANNED_OUTPUT = 512  # tokens that it covers for each call before the last one


def planned(input_tokens: int, *, max_output_tokens: int) -> TokenUsage:
    """Return the usage that money is held for. ``input_tokens`` is the first call with tools."""
    earlier_calls = PLANNED_CALLS - 1
    return TokenUsage(
        PLANNED_CALLS * input_tokens
        + (RESULT_TOKENS + PLANNED_OUTPUT) * (earlier_calls * PLANNED_CALLS // 2),
        max_output_tokens + earlier_calls * PLANNED_OUTPUT,
    )


class CallBudget(NamedTuple):
    """The hold of an answer."""

    prices: Prices
    amount: int  # kopecks
    max_output: int  # output tokens of all calls

    def final_output(self, spent: TokenUsage, input_tokens: int) -> int:
        """Return the output tokens that are left for a call without tools."""
        output_room = self._remaining_micro(spent) - self.prices.input * input_tokens
        return self._output(spent, output_room, price=self.prices.output)

    def output_with_tools(
        self, spent: TokenUsage, input_tokens: int, *, result_tokens: int
    ) -> int | None:
        """Return the output tokens of a call with tools, or None if it must not use tools."""
        prices = self.prices
        # After that call, the hold must cover a final call: the same input, the output and the
        # results, and ``LEAST_OUTPUT`` tokens of output.
        final = prices.input * (input_tokens + result_tokens) + prices.output * LEAST_OUTPUT
        output_room = self._remaining_micro(spent) - prices.input * input_tokens - final
        spare = spent._replace(output_tokens=spent.output_tokens + LEAST_OUTPUT)
        output = self._output(spare, output_room, price=prices.output + prices.input)
        return output if output >= LEAST_OUTPUT else None

    def _remaining_micro(self, spent: TokenUsage) -> int:
        used = self.prices.input * spent.input_tokens + self.prices.output * spent.output_tokens
        return self.amount * MICRO - used

    def _output(self, spent: TokenUsage, micro: int, *, price: int) -> int:
        max_tokens = self.max_output - spent.output_tokens
        return max(0, min(max_tokens, micro // price if price else max_tokens))
