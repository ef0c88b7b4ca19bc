"""Parse the lines of an export file, and refuse a file that is none."""

import json

import click

from chalicelib.domains.exports.rules.archive import FORMAT, VERSION, Line

READABLE = (2, VERSION)
"""Versions of files that can be imported. In version 2, the owner is none of the members, no member
has choices, and there are no webhooks."""
MAX_LINE_BYTES = 8_000_000
"""Maximum bytes of a line.

A row has up to 400 KB, and 800 KB with its part. JSON is several times as long.
"""


class FileError(click.ClickException):
    """The file is not a complete export."""


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


def check_header(header: Line) -> None:
    """Refuse a file that is not an export, or has another version.

    Raises:
        FileError: the file is refused.
    """
    if header.get("format") != FORMAT:
        raise FileError("This is no export: it does not begin with the header of one.")
    if header.get("version") not in READABLE:
        msg = (
            f"The file is of version {header.get('version')}, and this reads version {VERSION} or "
            f"{READABLE[0]}: import it with the release that exported it, or a later one."
        )
        raise FileError(msg)
