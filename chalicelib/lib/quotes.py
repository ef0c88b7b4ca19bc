"""Quotation marks inside of quotation marks."""

# The outer marks, and the inner ones: of Russian, and of English.
_MARKS = (("«", "»", "„", "“"), ("“", "”", "‘", "’"))  # noqa: RUF001  quotes on purpose


def nest(text: str) -> str:
    """Return a text in which quotes inside of quotes have the inner marks.

    Names of businesses often have quotes of their own. A text whose quotes do not match is returned
    as it is.

    >>> nest("Вы платите ««Цветение» на Невском»")
    'Вы платите «„Цветение“ на Невском»'
    """
    for opening, closing, inner_opening, inner_closing in _MARKS:
        if text.count(opening) > 1:
            text = _nested(text, (opening, closing), (inner_opening, inner_closing))
    return text


def quoted(text: str, language: str) -> str:
    """Return a text in the quotation marks of a language."""
    opening, closing, *_ = _MARKS[0 if language == "ru" else 1]
    return nest(f"{opening}{text}{closing}")


def _nested(text: str, outer: tuple[str, str], inner: tuple[str, str]) -> str:
    depth, characters = 0, []
    for character in text:
        if character == outer[0]:
            depth += 1
            characters.append(inner[0] if depth > 1 else character)
        elif character == outer[1]:
            characters.append(inner[1] if depth > 1 else character)
            depth -= 1
            if depth < 0:
                return text
        else:
            characters.append(character)
    return text if depth else "".join(characters)
