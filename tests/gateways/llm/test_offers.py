"""Offers of a business: the message with which the embedded model receives them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.gateways.llm.messages import Message, count_input
from chalicelib.gateways.llm.offers import (
    MAX_DESCRIPTION,
    MAX_OFFERS,
    MAX_TOKENS,
    Offer,
    message,
    read,
    search_words,
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
def test_offers_are_read_back_from_the_message_within_bounds(
    question: str, candidates: list[Offer]
) -> None:
    told = message(question, candidates)
    if not candidates:
        assert told is None
        return
    assert told is not None
    assert told.role == "system"
    assert count_input([told]) <= MAX_TOKENS
    understood, _, rest = read([Message("system", "x"), told, Message("user", question)])
    assert [m.content for m in rest] == ["x", question]
    assert len(understood) <= MAX_OFFERS
    kept = {(each.name.replace("\u2028", " "), each.price) for each in candidates}
    assert {(each.name, each.price) for each in understood} <= kept


def test_the_best_matches_come_first_and_then_the_owners_order() -> None:
    candidates = [Offer("product", f"Thing {n}", 100) for n in range(30)]
    candidates[25] = Offer("service", "Haircut", 100, 30, "For dogs " * 100)
    told = message("dog haircuts", candidates)
    assert told
    understood, *_ = read([told])
    assert [each.name for each in understood[:3]] == ["Haircut", "Thing 0", "Thing 1"]
    assert len(understood) == MAX_OFFERS
    assert len(understood[0].description) <= MAX_DESCRIPTION


def test_long_offers_fill_the_message_up_to_its_token_limit() -> None:
    candidates = [Offer("product", f"{n} " + "слово " * 15, 1, None, "и " * 150) for n in range(20)]
    told = message("", candidates)
    assert told
    assert MAX_TOKENS - 300 < count_input([told]) <= MAX_TOKENS
    assert len(read([told]).offers) < 20


def test_a_visitor_cannot_inject_offers() -> None:
    told = message("", [Offer("product", "Gold", 1)])
    assert told
    asked = [Message("user", told.content)]
    assert read(asked) == ([], [], asked)
    assert json.loads(told.content.split("\n")[2])["name"] == "Gold"


def test_the_search_uses_the_most_distinctive_words() -> None:
    assert search_words("Сколько у вас стоит наращивание ресниц?") == ["наращ", "ресни", "стои"]
    assert search_words("и?") == []
