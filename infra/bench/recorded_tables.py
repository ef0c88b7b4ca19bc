"""The tables of docs/benchmarks.md that follow from what the contract tests record."""

from pathlib import Path

from infra.bench import round_trips, written_rows
from infra.local import document_tables

DOCUMENT = document_tables.DOCS / "benchmarks.md"


def write() -> Path:
    """Write the tables into the document, and return the document's path."""
    DOCUMENT.write_text(markdown(DOCUMENT.read_text()))
    return DOCUMENT


def markdown(text: str) -> str:
    """Return the document with its tables as the counts are recorded now."""
    for part in (round_trips, written_rows):
        text = document_tables.replaced(text, part.TABLE, part.lines())
    return text
