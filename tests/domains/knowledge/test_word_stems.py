"""Stems of words, by which a search finds passages."""

import pytest

from chalicelib.domains.knowledge.rules import word_stems
from chalicelib.domains.knowledge.rules.word_stems import LONGEST_WORD, stems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Deliveries delivering", ["deliveri", "deliv"]),
        ("Доставка доставки", ["доставк", "доставк"]),
        ("the bread and a cake", ["bread", "cake"]),
        ("Wi-Fi bread-maker", ["wifi", "bread", "maker", "breadmak"]),
        ("iso9001", ["iso9001"]),
        ("7" * 99, ["7" * LONGEST_WORD]),
    ],
)
def test_a_text_has_the_stems_of_its_words(text: str, expected: list[str]) -> None:
    word_stems._stem.cache_clear()
    assert [*stems(text)] == expected
