"""The file of an export: gzip, a JSON object a line, from a header to a trailer with a checksum.

A line is one of

- the header: ``format``, ``version``, what the workspace is and where it comes from, ``counts``;
- ``workspace``: its row, its owner and its members;
- ``at`` and ``item``: a row, as DynamoDB's JSON without its partition key, which ``at`` stands for;
  a record may have ``parts``, rows that belong to it, and a site the ``domain`` that it holds;
- ``job``: work that is due later;
- ``object`` and ``bytes``, followed by lines of ``chunk``, base64: an object of the object store;
- the trailer: ``lines`` before it, ``counts``, and the SHA-256 of all that is before it.

So a file that was cut off, or changed, is refused; and neither side holds more than an object of 20
MB in memory.
"""

import base64
import gzip
import hashlib
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

import click

FORMAT = "workspace-export"
VERSION = 1
CHUNK_BYTES = 256 * 1024
MAX_LINE_BYTES = 8_000_000
"""A row takes 400 KB, with its part 800 KB; in JSON some times as much."""
COMPRESSION = 6

Line = dict[str, Any]


class FileError(click.ClickException):
    """The file is no whole export."""


class StoredObject(NamedTuple):
    """An object of the object store."""

    key: str
    body: bytes


def part_of(path: Path) -> Path:
    """Return where a file is written until it is whole."""
    return path.with_name(f"{path.name}.part")


class Writer:
    """Writes a file, which takes its name only once it is whole.

    Only its owner may read it. What an interrupted export leaves is called ``.part``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self._lines = 0
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            ClickException: the file is there already, or cannot be written.
        """
        if self.path.exists():
            msg = f"{self.path} is there already. Name another file."
            raise click.ClickException(msg)
        part = part_of(self.path)
        try:
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            msg = f"{part} cannot be written: {error.strerror}."
            raise click.ClickException(msg) from error
        self._file: IO[bytes] = os.fdopen(descriptor, "wb")
        self._gzip = gzip.GzipFile("", "wb", COMPRESSION, self._file, mtime=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """End the file and give it its name, unless something went wrong."""
        if kind is None:
            trailer = {
                "lines": self._lines,
                "counts": dict(sorted(self.counts.items())),
                "sha256": self.checksum,
            }
            self._write({"trailer": trailer})
            self._gzip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            part_of(self.path).rename(self.path)
        else:
            with suppress(OSError), self._file, self._gzip:
                pass

    @property
    def checksum(self) -> str:
        """The checksum of what was written so far."""
        return self._digest.hexdigest()

    def header(self, values: Line) -> None:
        """Write the header."""
        self._write({"format": FORMAT, "version": VERSION, **values})

    def line(self, counted_as: str, line: Line) -> None:
        """Write a line."""
        self.counts[counted_as] += 1
        self._write(line)

    def object(self, stored: StoredObject) -> None:
        """Write an object."""
        self.counts["objects"] += 1
        self._write({"object": stored.key, "bytes": len(stored.body)})
        for start in range(0, len(stored.body), CHUNK_BYTES):
            chunk = stored.body[start : start + CHUNK_BYTES]
            self._write({"chunk": base64.b64encode(chunk).decode()})

    def _write(self, line: Line) -> None:
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._digest.update(data)
        self._lines += 1
        self._gzip.write(data)


def read(
    path: Path,
    moved: Callable[[int], None] = lambda _: None,
    rewritten: Callable[[str], str] | None = None,
) -> Iterator[Line | StoredObject]:
    """Yield header, lines, objects and trailer of a file, which is found whole at its very end.

    Args:
        path: the file.
        moved: told how many of its bytes were read since it was last told.
        rewritten: changes the text of lines before they are read; of objects, only their keys.

    Raises:
        FileError: it is no export, was cut off or changed, or is of a later version.
    """
    digest, unfinished, trailer = hashlib.sha256(), None, None
    for number, data in enumerate(_lines(path, moved)):
        line = _parsed(data, number)
        if number == 0:
            _check_header(line)
        if trailer is not None:
            raise FileError("The file is damaged: it goes on behind its end.")
        if "trailer" in line:
            trailer = line
            _check_trailer(line["trailer"], number, digest.hexdigest())
            continue
        digest.update(data)
        if rewritten is not None and "chunk" not in line:
            line = json.loads(rewritten(data.decode()))
        if unfinished is not None or "object" in line:
            unfinished = _gathered(unfinished, line)
            if len(unfinished.body) == unfinished.size:
                yield StoredObject(unfinished.key, bytes(unfinished.body))
                unfinished = None
        else:
            yield line
    if trailer is None or unfinished is not None:
        raise FileError("The file was cut off: its end is missing. Copy it, or export, again.")
    yield trailer


class _Gathering(NamedTuple):
    key: str
    size: int
    body: bytearray


def _gathered(unfinished: _Gathering | None, line: Line) -> _Gathering:
    """Return an object with what a line adds to it."""
    if unfinished is None:
        return _Gathering(line["object"], line["bytes"], bytearray())
    unfinished.body.extend(base64.b64decode(line.get("chunk", "")))
    if "chunk" not in line or len(unfinished.body) > unfinished.size:
        raise FileError("The file is damaged: an object is not as long as it says.")
    return unfinished


def _lines(path: Path, moved: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the lines, the last of which is the trailer."""
    before = 0
    try:
        with path.open("rb") as file, gzip.open(file) as content:
            while data := content.readline(MAX_LINE_BYTES):
                yield data
                moved((now := file.tell()) - before)
                before = now
    except (EOFError, zlib.error) as error:
        raise FileError("The file was cut off or damaged. Copy it, or export, again.") from error
    except gzip.BadGzipFile as error:
        raise FileError("This is no export: it is not compressed by gzip, or damaged.") from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise FileError(msg) from error


def _parsed(data: bytes, number: int) -> Line:
    try:
        line: Line = json.loads(data)
    except ValueError:
        line = {}
    if isinstance(line, dict) and line:
        return line
    if number == 0:
        raise FileError("This is no export: it does not begin with the header of one.")
    msg = f"The file is damaged: its line {number + 1:,} is none of an export."
    raise FileError(msg)


def _check_header(header: Line) -> None:
    if header.get("format") != FORMAT:
        raise FileError("This is no export: it does not begin with the header of one.")
    if header.get("version") != VERSION:
        msg = (
            f"The file is of version {header.get('version')}, and this reads version {VERSION}: "
            "import it with the release that exported it, or a later one."
        )
        raise FileError(msg)


def _check_trailer(trailer: Line, lines: int, checksum: str) -> None:
    if trailer.get("lines") != lines or trailer.get("sha256") != checksum:
        raise FileError("The file is damaged: its checksum is wrong. Copy it, or export, again.")
