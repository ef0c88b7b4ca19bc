"""Owners read one word for each thing, by the table in docs/glossary.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib.transports.web.texts import LANGUAGES, catalogue

GLOSSARY = Path(__file__).parents[3] / "docs" / "glossary.md"
COLUMNS = {"en": 1, "ru": 3}
FOR_PROGRAMMERS = re.compile(
    r"webhook|wrong_webhook|no_webhooks|off_|delivery|send_|connect_|event_|api_|key|scope_|tokens"
)
"""The beginnings of texts that only the pages under *For programmers* show."""


def other_words(language: str) -> list[str]:
    """Return the words that owners do not read."""
    table = GLOSSARY.read_text(encoding="utf-8").partition("## Words of owners")[2]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    cells = [row[COLUMNS[language]].strip() for row in rows[1:]]
    return [word for cell in cells for word in cell.split(", ")]


def texts_of_owners(language: str) -> Iterator[tuple[str, str]]:
    for key, text in catalogue(language).texts.items():
        if not FOR_PROGRAMMERS.match(key):
            for form in [text] if isinstance(text, str) else text:
                yield key, form


def pattern(word: str) -> re.Pattern[str]:
    """Return a pattern that finds a word with its endings, such as *ресурсов* and *resources*."""
    stems = [re.escape(re.sub(r"[аеийоыья]{1,2}$", "", part)) for part in word.split()]
    return re.compile(r"\b" + r"\w{0,3}\s+".join(stems) + r"\w{0,3}\b", re.IGNORECASE)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_has_no_other_word_than_that_of_the_glossary(language: str) -> None:
    words = other_words(language)
    assert len(words) >= 10
    found = {
        f"{key}: {word}"
        for key, text in texts_of_owners(language)
        for word in words
        if pattern(word).search(text)
    }
    assert found == set(), "Say these as docs/glossary.md does, in console.po of the language."


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("ресурс", "Сотрудники и ресурсы"),
        ("рабочее пространство", "поясе рабочего пространства"),
        ("resource", "staff or Resources"),
    ],
)
def test_a_word_is_found_with_its_endings(word: str, text: str) -> None:
    assert pattern(word).search(text)
