"""Sentences of the audit log in both languages."""

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import REGISTRY
from chalicelib.lib import po_files
from chalicelib.transports.web import audit_sentences, texts
from chalicelib.transports.web.texts import LANGUAGES, Language


@pytest.mark.parametrize(
    ("title", "sentence"),
    [
        ("Update a lead", "updated a lead"),
        ("Set a booking's status, or move it", "set a booking's status, or moved it"),
        ("Create or update products by SKU", "created or updated products by SKU"),
        ("Change one's own password", "changed their own password"),
        ("Submit a form", "submitted a form"),
        ("Sign in", "signed in"),
        ("of_a_release_before", "of_a_release_before"),
        ("", ""),
    ],
)
def test_a_title_becomes_what_somebody_did(title: str, sentence: str) -> None:
    assert audit_sentences.sentence(title) == sentence


def test_every_title_of_a_change_begins_with_a_verb_that_has_a_past_tense() -> None:
    titles = [entry.title for entry in REGISTRY.entries() if not entry.read_only]
    titles += map(str, po_files.read(texts.LOCALE, "en", "changes").texts.values())
    for title in titles:
        verb = audit_sentences.sentence(title).partition(" ")[0]
        assert verb.endswith(("ed", "t", "read", "bound")), title


@pytest.mark.parametrize(
    ("language", "words"), [("en", "revoked an API key"), ("ru", "Отозван ключ API")]
)
def test_a_change_follows_the_name_of_its_actor(language: Language, words: str) -> None:
    assert audit_sentences.change_made(language, "revoke_key", "Revoke an API key") == words


def test_the_audit_log_has_a_text_for_every_change_and_nothing_else() -> None:
    """Read operations change nothing. Visits and widget events are counted, not logged."""
    changing = {
        entry.name
        for entry in REGISTRY.entries()
        if entry.audit and entry.method not in {"GET", "READ"}
    }
    russian, english = (po_files.read(texts.LOCALE, one, "changes").texts for one in LANGUAGES)
    assert set(russian) == changing | set(english)
    assert not changing & set(english)
    assert set(JOB_HANDLERS.modules) <= set(english)
    for words in russian.values():
        assert texts.language_of(str(words)) == "ru"


@pytest.mark.parametrize(
    ("language", "operation", "title", "words"),
    [
        ("ru", "create_key", "Create an API key", "Создан ключ API"),
        ("en", "create_key", "Create an API key", "Create an API key"),
        ("ru", "site-purge", None, "Завершено удаление сайта"),
        ("en", "site-purge", None, "Finish deleting a site"),
        ("ru", "of_a_release_before", None, "of_a_release_before"),
    ],
)
def test_a_change_is_described_in_the_readers_language(
    language: Language, operation: str, title: str | None, words: str
) -> None:
    assert audit_sentences.change(language, operation, title) == words
