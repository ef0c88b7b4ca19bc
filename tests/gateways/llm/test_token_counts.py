"""Token counts do not depend on how a text is split into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.gateways.llm.messages import TokenCounter, count_tokens

TEXTS = st.text(st.sampled_from("ab \n\t\u2028\x1cЁ饼🦔\ud83e")) | st.text()


@given(st.lists(TEXTS))
def test_pieces_have_as_many_tokens_as_the_whole_text(pieces: list[str]) -> None:
    counter = TokenCounter()
    for number, piece in enumerate(pieces, 1):
        counter.add(piece)
        assert counter.tokens == count_tokens("".join(pieces[:number]))
