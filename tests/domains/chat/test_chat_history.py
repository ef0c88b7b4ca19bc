"""The part of a dialog's history that the model receives."""

from itertools import count as numbers

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.chat.flows.chat_history import (
    MAX_OUTPUT,
    MAX_TURNS,
    MIN_OUTPUT,
    Turn,
    count_upper_bound,
    counter,
    fit_history,
    room_for_answer,
)
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolResult, count_input

SYSTEM, QUESTION = Message("system", "You bake."), Message("user", "And now?")
texts = st.text(max_size=40)


@given(st.lists(st.builds(Turn, texts, texts), max_size=60), st.integers(0, 2_000))
def test_the_newest_turns_that_fit_are_sent_whole_and_in_order(
    turns: list[Turn], room: int
) -> None:
    messages, spent = fit_history([SYSTEM], iter(turns), QUESTION, count_input, room)
    assert (messages[0], messages[-1]) == (SYSTEM, QUESTION)
    assert spent == count_input(messages)
    history = messages[1:-1]
    assert [m.role for m in history] == ["user", "assistant"] * (len(history) // 2)
    assert not history or spent <= room
    answered = [turn for turn in turns if turn.answer.strip()]
    newest_turns = answered[: len(history) // 2][::-1]
    assert [m.content for m in history] == [text for turn in newest_turns for text in turn]
    assert len(history) // 2 <= MAX_TURNS
    if len(history) // 2 < min(len(answered), MAX_TURNS):
        oldest = answered[len(history) // 2]
        pair = [Message("user", oldest.question), Message("assistant", oldest.answer)]
        assert spent + count_input(pair) > room


def test_no_more_turns_are_read_than_are_sent() -> None:
    read = []

    def endless() -> object:
        for number in numbers():
            read.append(number)
            yield Turn("?", "!")

    messages, _ = fit_history([], endless(), QUESTION, count_input, 10**6)  # type: ignore[arg-type]
    assert len(messages) == 2 * MAX_TURNS + 1
    assert len(read) == MAX_TURNS


def test_an_answer_may_use_the_rest_of_the_context() -> None:
    fixed = [SYSTEM, QUESTION]
    input_tokens = count_input(fixed)
    assert room_for_answer(fixed, count_input, 32_000, max_output_tokens=10_000) == MAX_OUTPUT
    assert room_for_answer(fixed, count_input, 32_000, max_output_tokens=100) == 100
    assert room_for_answer(fixed, count_input, input_tokens + 100, max_output_tokens=10_000) == 100
    assert (
        room_for_answer(fixed, count_input, input_tokens + MIN_OUTPUT, max_output_tokens=10_000)
        == MIN_OUTPUT
    )
    assert (
        room_for_answer(fixed, count_input, input_tokens + MIN_OUTPUT - 1, max_output_tokens=10_000)
        is None
    )


@given(texts)
def test_a_hold_covers_more_tokens_than_any_estimate(text: str) -> None:
    calls = Message("assistant", text, calls=(ToolCall("c1", "find", text),))
    results = Message("tool", "", results=(ToolResult("c1", "find", text),))
    messages = [Message("user", text), calls, results]
    assert count_upper_bound(messages) >= count_input(messages)
    assert counter("demo") is count_input
    assert counter("bedrock") is counter("openai") is count_upper_bound
