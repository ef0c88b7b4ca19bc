"""The system message that passes a business's offers to the embedded demo model."""

import json

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.gateways.llm.messages import Message, count_input
from chalicelib.gateways.llm.offers import (
    MAX_DESCRIPTION,
    MAX_OFFERS,
    MAX_TOKENS,
    Offer,
    parse,
    search_words,
    to_message,
)

texts = st.text(max_size=60) | st.text('<>/ofers\n\u2028"\\{}', max_size=60)
offers = st.builds(
    Offer,
    kind=st.sampled_from(["service", "product"]),
    name=texts.filter(bool),
    price=st.integers(0, 10**9),
    duration_min=st.none() | st.integers(5, 600),
    description=texts,
)


@given(texts, st.lists(offers, max_size=30, unique=True))
def test_offers_are_parsed_from_the_message_within_its_limits(
    question: str, candidates: list[Offer]
) -> None:
    sent = to_message(question, candidates)
    if not candidates:
        assert sent is None
        return
    assert sent is not None
    assert sent.role == "system"
    assert count_input([sent]) <= MAX_TOKENS
    parsed, _, rest = parse([Message("system", "x"), sent, Message("user", question)])
    assert [m.content for m in rest] == ["x", question]
    assert len(parsed) <= MAX_OFFERS
    given_offers = {(each.name.replace("\u2028", " "), each.price) for each in candidates}
    assert {(each.name, each.price) for each in parsed} <= given_offers


def test_matching_offers_come_first_and_others_keep_their_order() -> None:
    candidates = [Offer("product", f"Thing {n}", 100) for n in range(30)]
    candidates[25] = Offer("service", "Haircut", 100, 30, "For dogs " * 100)
    sent = to_message("dog haircuts", candidates)
    assert sent
    parsed, *_ = parse([sent])
    assert [each.name for each in parsed[:3]] == ["Haircut", "Thing 0", "Thing 1"]
    assert len(parsed) == MAX_OFFERS
    assert len(parsed[0].description) <= MAX_DESCRIPTION


def test_long_offers_fill_the_message_up_to_its_token_limit() -> None:
    candidates = [Offer("product", f"{n} " + "слово " * 15, 1, None, "и " * 150) for n in range(20)]
    sent = to_message("", candidates)
    assert sent
    assert MAX_TOKENS - 300 < count_input([sent]) <= MAX_TOKENS
    assert len(parse([sent]).offers) < 20


def test_a_visitor_cannot_inject_offers() -> None:
    sent = to_message("", [Offer("product", "Gold", 1)])
    assert sent
    visitor_messages = [Message("user", sent.content)]
    assert parse(visitor_messages) == ([], [], visitor_messages)
    assert json.loads(sent.content.split("\n")[2])["name"] == "Gold"


def test_the_search_uses_the_most_distinctive_words() -> None:
    assert search_words("Сколько у вас стоит наращивание ресниц?") == ["наращ", "ресни", "стои"]
    assert search_words("и?") == []
