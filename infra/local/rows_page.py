"""Write the tables of rows into docs/data-model.md, from the classes of rows."""

import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from chalicelib.domains.exports.flows import contents
from chalicelib.engine.tables import TABLES, Row
from infra.local import document_tables

DOCUMENT = document_tables.DOCS / "data-model.md"
NAME = "rows"
_ROOT = document_tables.DOCS.parent


def write() -> Path:
    """Write the tables into the document, and return the document's path."""
    return document_tables.write(DOCUMENT, NAME, _lines())


def markdown(text: str) -> str:
    """Return the text of the document with its tables as the code declares them."""
    return document_tables.replaced(text, NAME, _lines())


def _lines() -> Iterator[str]:
    by_table = defaultdict(list)
    for row, is_exported in _exported().items():
        by_table[next(name for name, base in TABLES.items() if issubclass(row, base))].append(
            (f"[`{row.__name__}`]({_path(row)})", _summary(row), is_exported)
        )
    for table in TABLES:
        yield f"\n**{table}**\n"
        yield from document_tables.rows(("row", "content", "in an export"), *by_table[table])
    yield ""


def _exported() -> dict[type[Row], str]:
    """Return for every class of rows whether an export takes it."""
    taken = [listing.row for listing in contents.nouns()]
    taken += [kind.row for kind in contents.EXPORTED]
    return {
        **{row: "yes, but not by a key" if row in contents.MONEY else "yes" for row in taken},
        **{row: f"made again: {source}" for row, source in contents.DERIVED.items()},
        **{row: f"no: {reason}" for row, reason in contents.EXCLUDED.items()},
    }


def _path(row: type[Row]) -> str:
    return f"../{Path(inspect.getfile(row)).relative_to(_ROOT)}"


def _summary(row: type[Row]) -> str:
    """Return the first paragraph of the docstring of a class, or of its module."""
    text = row.__doc__ or sys.modules[row.__module__].__doc__ or ""
    paragraph = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return paragraph.replace("``", "`").replace("|", r"\|").rstrip(".")
