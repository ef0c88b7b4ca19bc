"""Quotes inside of quotes have the inner marks of their language."""

import pytest

from chalicelib.lib.quotes import nest, quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("«Салон «Цветение» на Невском»", "«Салон „Цветение“ на Невском»"),
        ("««Цветение»»", "«„Цветение“»"),
        ("Удалить «Форму» и «Сайт»?", "Удалить «Форму» и «Сайт»?"),
        ("Join “The “Rose””", "Join “The ‘Rose’”"),
        ("«Салон «Цветение»", "«Салон «Цветение»"),
        ("»Салон« «A»", "»Салон« «A»"),
    ],
)
def test_inner_quotes_are_replaced_if_all_match(text: str, expected: str) -> None:
    assert nest(text) == expected


def test_a_name_is_quoted_in_the_language_of_the_text() -> None:
    assert quoted("Салон «Роза»", "ru") == "«Салон „Роза“»"
    assert quoted("Салон «Роза»", "en") == "“Салон «Роза»”"
