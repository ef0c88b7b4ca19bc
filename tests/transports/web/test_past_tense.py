"""Sentences of the audit log in English."""

import pytest

from chalicelib.core.operations import REGISTRY
from chalicelib.lib import po_files
from chalicelib.transports.web import texts
from chalicelib.transports.web.texts import Language


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
    assert texts.sentence(title) == sentence


def test_every_title_of_a_change_begins_with_a_verb_that_has_a_past_tense() -> None:
    titles = [entry.title for entry in REGISTRY.entries() if not entry.read_only]
    titles += map(str, po_files.read(texts.LOCALE, "en", "changes").texts.values())
    for title in titles:
        verb = texts.sentence(title).partition(" ")[0]
        assert verb.endswith(("ed", "t", "read", "bound")), title


@pytest.mark.parametrize(
    ("language", "words"), [("en", "revoked an API key"), ("ru", "Отозван ключ API")]
)
def test_a_change_follows_the_name_of_its_actor(language: Language, words: str) -> None:
    assert texts.change_made(language, "revoke_key", "Revoke an API key") == words
