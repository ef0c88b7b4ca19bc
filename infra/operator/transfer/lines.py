"""What readers of export files yield: lines of JSON, and objects of the object store."""

import json
from typing import Any, NamedTuple

import click

FORMAT = "workspace-export"
MAX_LINE_BYTES = 8_000_000
"""A row takes 400 KB, with its part 800 KB; in JSON some times as much."""

Line = dict[str, Any]


class FileError(click.ClickException):
    """The file is no whole export."""


class StoredObject(NamedTuple):
    """An object of the object store."""

    key: str
    body: bytes


def parsed(data: bytes, place: str) -> Line:
    """Return a line of a file; ``place`` says which it is.

    Raises:
        FileError: it is no JSON object.
    """
    try:
        line: Line = json.loads(data)
    except ValueError:
        line = {}
    if isinstance(line, dict) and line:
        return line
    msg = f"The file is damaged: {place} is none of an export."
    raise FileError(msg)


def check_header(header: Line, version: int) -> None:
    """Refuse what is no export, or one of another version.

    Raises:
        FileError: so it is.
    """
    if header.get("format") != FORMAT:
        raise FileError("This is no export: it does not begin with the header of one.")
    if header.get("version") != version:
        msg = (
            f"The file is of version {header.get('version')}, and this reads version {version}: "
            "import it with the release that exported it, or a later one."
        )
        raise FileError(msg)
