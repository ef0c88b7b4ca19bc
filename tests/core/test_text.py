"""Comparing strings, and refusing strings that cannot be displayed."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from chalicelib.core.text import fold, line_fold, one_line, search_fold, search_words
from chalicelib.core.wire.schema import MAX_TITLE, Title

titles = TypeAdapter(Title)
odd = st.sampled_from(
    [*" \t\n\x00\x1f\x7f\x85\x9f", *"\u200b\u200d\u202e\u2066\u2028\u3164\ufe0f", "👩‍🚀"]
)


@given(st.lists(odd | st.text(max_size=3), max_size=300).map("".join))
def test_one_line_returns_a_valid_title_or_none_for_any_text(text: str) -> None:
    line = one_line(text, MAX_TITLE)
    assert line == "" or titles.validate_python(line) == line


@given(st.text(max_size=MAX_TITLE))
def test_one_line_leaves_a_valid_title_unchanged(text: str) -> None:
    try:
        title = titles.validate_python(text)
    except ValueError:
        return
    assert one_line(title, MAX_TITLE) == " ".join(title.split())


@pytest.mark.parametrize(
    ("text", "found_by"),
    [
        ("Café Ångström", "cafe angstrom"),
        ("İstanbul", "istanbul"),
        ("DIYARBAKIR dıyarbakır", "diyarbakir diyarbakir"),
        ("Łódź, Ørsted, Đakovo", "lodz, orsted, dakovo"),
        ("Straße", "strasse"),
        ("naïve cœur", "naive coeur"),
        ("Phở Việt", "pho viet"),
        ("Άγιος Ϊ", "αγιοσ ι"),
        ("cafe\u0301", "cafe"),
        ("ca\u200bf\ufeffe\u00ad", "cafe"),
        ("❤\ufe0f", "❤"),
        ("Ёжик", "ежик"),
    ],
)
def test_a_search_finds_a_text_without_its_diacritics(text: str, found_by: str) -> None:
    assert search_fold(text) == found_by == search_fold(found_by)


@pytest.mark.parametrize(
    ("letter", "other"),
    [("й", "и"), ("Й", "И"), ("ї", "і"), ("ў", "у"), ("が", "か"), ("한", "하"), ("ड़", "ड")],
)
def test_a_mark_that_forms_another_letter_is_kept(letter: str, other: str) -> None:
    assert search_fold(letter) == fold(letter) != search_fold(other)


@given(st.text(max_size=50))
def test_folding_never_makes_a_text_longer(text: str) -> None:
    folded = search_fold(text)
    assert len(folded.encode()) <= len(fold(text).encode())
    assert search_fold(folded) == folded


@pytest.mark.parametrize(
    "sku", ["R 1", " r 1 ", "R   1", "R\u00a01", "R\t1", "\ufeffR 1", "R\u3000\u200b1", "Ｒ 1"]
)
def test_lines_compare_without_regard_to_surrounding_and_doubled_white_space(sku: str) -> None:
    assert line_fold(sku) == "r 1"


def test_every_dash_and_quote_of_unicode_divides_the_words_of_a_search() -> None:
    dividing = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in {"Pd", "Pi", "Pf"}
    ]
    assert [character for character in dividing if search_words(f"a{character}b") != "a b"] == []
