"""Each row of the table of emulators is true on moto and on DynamoDB Local."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib.engine.connection import connection
from infra.proof.emulators import MINISTACK, ROWS, UNVERIFIED, Row
from tests.proof.emulators.probes import PROBES, TABLE, Table

TRIED = [row for row in ROWS if row.probe]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def table(database: None) -> Iterator[Table]:
    """An empty table of its own."""
    client = connection().client
    yield Table(client)
    client.delete_table(TableName=TABLE)


@pytest.mark.store
@pytest.mark.parametrize("row", TRIED, ids=lambda row: row.probe)
def test_an_emulator_does_what_its_row_says(
    row: Row, table: Table, is_dynamodb_local: bool
) -> None:
    assert PROBES[row.probe](table) == (row.local if is_dynamodb_local else row.moto)


def test_every_probe_has_a_row() -> None:
    assert sorted(row.probe for row in TRIED) == sorted(PROBES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.topic)
def test_a_row_without_a_probe_says_what_stands_in_for_it(row: Row) -> None:
    if not row.probe:
        assert (row.moto, row.local, row.agrees) == (UNVERIFIED, UNVERIFIED, "")
        assert row.instead
    else:
        assert row.agrees in {"both", "moto", "DynamoDB Local", "neither"}


def test_files_that_rows_name_exist() -> None:
    texts = [f"{row.relied_on} {row.instead}" for row in ROWS]
    texts += [row["instead"] for row in MINISTACK]
    words = re.sub("[,;]", " ", " ".join(texts)).split()
    paths = [word for word in words if "/" in word]
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "chalicelib" / path).exists(), path


def test_every_addition_to_ministack_has_a_row() -> None:
    source = (ROOT / "tests" / "deployed" / "emulator.py").read_text()
    (additions,) = re.findall(r"^ADDITIONS = \((.*?)^\)", source, re.MULTILINE | re.DOTALL)
    instead = " ".join(row["instead"] for row in MINISTACK)
    assert [name for name in re.findall(r"\w+", additions) if f"`{name}`" not in instead] == []
