"""The elements of export files, which are lines of JSON and stored objects."""

import json
from typing import Any, NamedTuple

import click

FORMAT = "workspace-export"
MAX_LINE_BYTES = 8_000_000
"""Maximum bytes of a line.

A row has up to 400 KB, and 800 KB with its part. JSON is several times as long.
"""

Line = dict[str, Any]


class FileError(click.ClickException):
    """The file is not a complete export."""


class StoredObject(NamedTuple):
    """An object of the object store."""

    key: str
    body: bytes


def parsed(data: bytes, place: str) -> Line:
    """Parse a line of a file; ``place`` identifies the line in errors.

    Raises:
        FileError: it is not a JSON object.
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
    """Refuse a file that is not an export, or has another version.

    Raises:
        FileError: the file is refused.
    """
    if header.get("format") != FORMAT:
        raise FileError("This is no export: it does not begin with the header of one.")
    if header.get("version") != version:
        msg = (
            f"The file is of version {header.get('version')}, and this reads version {version}: "
            "import it with the release that exported it, or a later one."
        )
        raise FileError(msg)
