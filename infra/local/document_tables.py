"""Tables of documents that are written from declarations, between marks."""

from collections.abc import Iterable
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
END = "<!-- end of the table -->"


def begin(name: str) -> str:
    """Return the mark before a table."""
    return f"<!-- table of {name}: make update writes it -->"


def table(name: str, lines: Iterable[str]) -> str:
    """Return a table between its marks."""
    return "\n".join([begin(name), *lines, END])


def replaced(text: str, name: str, lines: Iterable[str]) -> str:
    """Return a document with new lines for one of its tables, or raise ValueError without it."""
    before, mark, rest = text.partition(begin(name))
    _, end, after = rest.partition(END)
    if not mark or not end:
        msg = f"the document has no table of {name} between its marks"
        raise ValueError(msg)
    return before + table(name, lines) + after


def write(document: Path, name: str, lines: Iterable[str]) -> Path:
    """Write a table into a document, and return the document's path."""
    document.write_text(replaced(document.read_text(), name, lines))
    return document


def rows(*cells: Iterable[str]) -> Iterable[str]:
    """Return the lines of a table, whose first row is its heading."""
    heading, *others = ([*row] for row in cells)
    for row in (heading, ["---"] * len(heading), *others):
        yield f"| {' | '.join(row)} |"
