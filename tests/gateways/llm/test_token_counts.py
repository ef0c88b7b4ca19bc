"""Token counts of strings, whole and in pieces, and of requests with tools."""

import json

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.gateways.llm.messages import (
    TOKENS_PER_MESSAGE,
    Message,
    TokenCounter,
    ToolCall,
    ToolResult,
    ToolSpec,
    count_input,
    count_tokens,
    texts,
)

TEXTS = st.text(st.sampled_from("ab \n\t\u2028\x1cЁ饼🦔\ud83e")) | st.text()


@given(st.lists(TEXTS))
def test_pieces_have_as_many_tokens_as_the_whole_text(pieces: list[str]) -> None:
    counter = TokenCounter()
    for number, piece in enumerate(pieces, 1):
        counter.add(piece)
        assert counter.tokens == count_tokens("".join(pieces[:number]))


def test_a_request_counts_its_calls_results_and_tools() -> None:
    call = ToolCall("c1", "find", '{"q": "rye"}')
    calls = Message(
        "assistant", "Let me look.", calls=(call,), extra={"reasoning": "They want rye"}
    )
    result = Message("tool", "", results=(ToolResult("c1", "find", "Rye bread, 120 rubles"),))
    tool = ToolSpec("find", "Find products.", {"type": "object"})
    assert [*texts([calls, result], [tool])] == [
        "Let me look.",
        'c1 find {"q": "rye"}',
        '{"reasoning": "They want rye"}',
        "",
        "c1 find Rye bread, 120 rubles",
        'find Find products. {"type": "object"}',
    ]
    token_count = count_input([calls, result], [tool])
    assert token_count == sum(
        TOKENS_PER_MESSAGE + count_tokens(text) for text in texts([calls, result], [tool])
    )
    plain = Message("user", "Let me look.")
    assert count_input([plain]) == TOKENS_PER_MESSAGE + count_tokens("Let me look.")


@given(st.text(), st.text(), st.text(), st.lists(st.binary()))
def test_any_call_and_extra_can_be_counted_and_encoded(
    name: str, arguments: str, reasoning: str, redacted: list[bytes]
) -> None:
    extra = {"reasoning_content": reasoning + "\ud83e", "reasoning": redacted}
    message = Message("assistant", "", calls=(ToolCall("c1", name, arguments),), extra=extra)
    assert count_input([message]) > TOKENS_PER_MESSAGE
    *_, extra_text = texts([message])
    assert extra_text.encode()


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_parsed_arguments_are_serializable_or_none(arguments: str) -> None:
    parsed = ToolCall("c1", "find", arguments).parsed()
    assert parsed is None or json.dumps(parsed, allow_nan=False, ensure_ascii=False).encode()


def test_arguments_that_are_nested_too_deeply_are_none() -> None:
    assert ToolCall("c1", "find", '{"a":' * 10_000 + "1" + "}" * 10_000).parsed() is None
