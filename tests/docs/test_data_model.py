"""docs/data-model.md has the tables, the classes of rows and the keys that the code has."""

import re

from chalicelib.core.operations import load_all
from chalicelib.engine.tables import TABLES
from infra.local import rows_page
from tests.docs.samples import ROOT

load_all()
PAGE = rows_page.DOCUMENT.read_text()


def test_the_tables_of_rows_are_as_declared() -> None:
    assert rows_page.markdown(PAGE) == PAGE, "Run make update, and look at what has changed."


def test_each_table_of_the_database_has_a_line() -> None:
    table, _, _ = PAGE.partition("\n## Keys\n")
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*TABLES]


def test_the_words_of_the_keys_are_in_the_code() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "chalicelib").rglob("*.py"))
    keys = re.findall(r"`((?:W#|CONNECTION#|INVITATION#|ACCOUNT#|[A-Z-]+#<)[^`]+)`", PAGE)
    words = {word for key in keys for word in re.findall(r"[A-Z][A-Z_-]+", key)} - {"NOUN"}
    assert len(words) > 20
    assert {word for word in words if not re.search(rf'["#]{word}\b', code)} == set()
