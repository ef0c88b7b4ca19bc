"""Normal form and passages of a source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.knowledge.rules import passages
from chalicelib.domains.knowledge.rules.passages import (
    MAX_LENGTH,
    MIN_LENGTH,
    Document,
    normal_form,
    split,
)

SENTENCE = "Words of a sentence are here. "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\nb\rc\fd", "a\nb\nc\nd"),
        (" a \t b ", "a b"),
        ("a \n \n\n b", "a\n\nb"),
        ("a\x00\x1f\x7f\ufeffb", "ab"),
        ("\n", ""),
    ],
)
def test_a_text_has_single_spaces_and_single_blank_lines(text: str, expected: str) -> None:
    assert normal_form(text) == expected


@pytest.mark.parametrize("length", [1, MAX_LENGTH - 1, MAX_LENGTH])
def test_a_short_text_is_one_passage(length: int) -> None:
    for text in ("x" * length, ("xx" + SENTENCE * 60)[:length]):
        assert [*split(text)] == [text]


def test_passages_end_with_the_last_sentence_that_fits() -> None:
    text = (SENTENCE * 60).strip()
    parts = [*split(text)]
    assert " ".join(parts) == text
    sentence_count = MAX_LENGTH // len(SENTENCE)
    assert parts[0] == (SENTENCE * sentence_count).strip()
    assert parts[1] == parts[0]


def test_a_passage_without_a_sentence_ends_at_the_last_space() -> None:
    word = "x" * 99 + " "
    parts = [*split(word * 20)]
    assert parts == [(word * 8).strip(), (word * 8).strip(), (word * 4).strip()]


def test_a_passage_without_a_space_ends_at_the_limit() -> None:
    text = "x" * MIN_LENGTH + " " + "y" * 2_000
    parts = [*split(text)]
    assert parts[0] == "x" * MIN_LENGTH
    assert parts[1] == "y" * MAX_LENGTH
    for early in ("x" * (MIN_LENGTH - 1) + " ", "Short. "):
        assert len(next(split(early + "y" * 2_000))) == MAX_LENGTH


def test_no_passage_is_empty() -> None:
    assert [*split(" " * 3 * MAX_LENGTH)] == []


def test_changed_document_changes_the_fingerprint() -> None:
    one = Document("s", "Title", "https://example.com", "k")
    known = passages.fingerprint([one])
    assert known == passages.fingerprint([one])
    changed_documents = [one._replace(**{field: "other"}) for field in Document._fields]
    assert len({known, *(passages.fingerprint([document]) for document in changed_documents)}) == 5
    assert passages.is_page(passages.page_source("p"))
    assert not passages.is_page("p")


@given(text=st.text(alphabet="ab .!\n", max_size=5000))
def test_passages_are_short_and_lose_nothing(text: str) -> None:
    parts = list(passages.split(text))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(passage) <= passages.MAX_LENGTH for passage in parts)
