"""PO files are parsed as Babel parses them, and are complete in every language."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from chalicelib import lib
from chalicelib.lib import po_files
from chalicelib.transports.web.languages import LANGUAGES
from tests.support.registers import check_register

PACKAGE = Path(lib.__file__).parents[1]
FILES = sorted(PACKAGE.rglob("*.po"))
TRANSLATED = sorted({(file.parents[2], file.stem) for file in FILES if file.stem != "changes"})
"""The audit log's own file is left out: the English text of an operation is its title."""


def catalogue_of(file: Path) -> po_files.Catalogue:
    return po_files.read(file.parents[2], file.parents[1].name, file.stem)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
class TestPoFile:
    def test_a_file_is_parsed_as_babel_parses_it(self, file: Path) -> None:
        with file.open("rb") as source:
            theirs = read_po(source, abort_invalid=True)
        messages = [message for message in theirs if message.id]
        assert not [message.id for message in messages if message.fuzzy or message.context]
        assert not theirs.obsolete
        ours = catalogue_of(file)
        assert dict(ours.texts) == {
            message.id if isinstance(message.id, str) else message.id[0]: message.string
            for message in messages
        }
        assert theirs.plural_expr == ours.plural_rule

    def test_a_file_has_each_key_once_and_no_empty_text(self, file: Path) -> None:
        keys = re.findall(r'^msgid "(.*)"$', file.read_text(), re.MULTILINE)
        assert len(keys) == len(set(keys))
        for text in catalogue_of(file).texts.values():
            assert text
            assert all(text)

    def test_a_file_has_the_plural_forms_of_its_language(self, file: Path) -> None:
        catalogue = catalogue_of(file)
        forms = {catalogue.plural_index(n) for n in range(1000)}
        for text in catalogue.texts.values():
            assert isinstance(text, str) or set(range(len(text))) == forms


@pytest.mark.parametrize(("folder", "name"), TRANSLATED, ids=lambda value: Path(value).name)
def test_every_text_exists_in_every_language_with_the_same_placeholders(
    folder: Path, name: str
) -> None:
    catalogues = [po_files.read(folder, language, name).texts for language in LANGUAGES]
    assert {file.name for file in folder.iterdir()} == set(LANGUAGES)
    keys = set(catalogues[0])
    for language, texts in zip(LANGUAGES, catalogues, strict=True):
        check_register(
            texts,
            declared={key for texts in catalogues for key in texts},
            place=str((folder / language / "LC_MESSAGES" / name).relative_to(PACKAGE.parent))
            + ".po",
            line="its msgid and its translation",
        )
    for key in keys:
        assert len({isinstance(texts[key], str) for texts in catalogues}) == 1
        names = {
            frozenset(re.findall(r"{(\w+)}", form))
            for texts in catalogues
            for form in _forms(texts[key])
        }
        assert len(names) == 1, key


def test_texts_may_be_quoted_escaped_and_on_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "en" / "LC_MESSAGES" / "odd.po"
    file.parent.mkdir(parents=True)
    file.write_text(
        '# About it.\nmsgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
        '#: place.py:1\n#, fuzzy\nmsgid "a"\nmsgstr "\\"one\\"\\n"\n"two\\\\ – три"\n\n'
        'msgid "b"\nmsgid_plural "b"\nmsgstr[0] "{n} thing"\nmsgstr[1] ""\n"{n} "\n"things"'
    )
    catalog = po_files.read(tmp_path, "en", "odd")
    assert catalog.texts == {"a": '"one"\ntwo\\ – три', "b": ("{n} thing", "{n} things")}
    assert [catalog.plural_index(n) for n in (0, 1, 2)] == [1, 0, 1]


def _forms(text: po_files.Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text
