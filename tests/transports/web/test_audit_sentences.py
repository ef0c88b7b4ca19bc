"""Sentences of the audit log in both languages."""

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import REGISTRY
from chalicelib.lib import po_files
from chalicelib.transports.web import audit_sentences, texts
from chalicelib.transports.web.texts import LANGUAGES, Language
from tests.support.registers import check_register

OUTSIDE = {
    *("chat", "export_products", "import_workspace", "seed"),
    "switch_off_webhook",
}
"""What the log names that is neither an operation nor a job."""


@pytest.mark.parametrize(
    ("language", "operation", "words"),
    [
        ("en", "revoke_key", "revoked an API key"),
        ("ru", "revoke_key", "Отозван ключ API"),
        ("en", "site-purge", "finished deleting a site"),
        ("ru", "site-purge", "Завершено удаление сайта"),
        ("ru", "of_another_release", "of_another_release"),
    ],
)
def test_a_change_is_described_in_the_readers_language(
    language: Language, operation: str, words: str
) -> None:
    assert audit_sentences.change_made(language, operation) == words


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_audit_log_has_a_text_for_every_change_and_nothing_else(language: Language) -> None:
    """Read operations change nothing. Visits and widget events are counted, not logged."""
    changing = {
        entry.name
        for entry in REGISTRY.entries()
        if entry.audit and entry.method not in {"GET", "READ"}
    }
    sentences = po_files.read(texts.LOCALE, language, "changes").texts
    check_register(
        sentences,
        declared=changing | {*JOB_HANDLERS.modules} | OUTSIDE,
        place=f"chalicelib/transports/web/locale/{language}/LC_MESSAGES/changes.po",
        line='msgid with the name, and a msgstr such as "added a product"',
    )
    for words in sentences.values():
        assert texts.language_of(str(words)) == language
