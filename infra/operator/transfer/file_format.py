"""The zip file of an export, with JSON lines and objects (ADR 46).

- ``rows/PRODUCT.jsonl`` and similar files: one file for each kind of row. A line has a row as
  ``item``, in DynamoDB's JSON, and ``at``, which replaces the row's partition key. The line of a
  record may also have ``parts``, which are other rows of the record. The line of a site may also
  have ``domain``, the site's own domain.
- ``rows/workspace.jsonl``: the workspace's row, its owner and its members.
- ``rows/jobs.jsonl``: the scheduled jobs of the workspace.
- ``objects/``: the objects of the object store, by key. They are written before the rows.
- ``manifest.json``: ``format``, ``version``, name and origin of the workspace, ``counts``, and
  ``files`` with the SHA-256 of every other file. It is written last.

A file without a manifest was truncated, and a file with a wrong checksum was changed; both are
refused. Export and import hold at most one object, of up to 20 MB, in memory.
"""

import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import click

from infra.operator.transfer.lines import (
    FORMAT,
    MAX_LINE_BYTES,
    FileError,
    Line,
    StoredObject,
    check_header,
    parsed,
)

VERSION = 2
MANIFEST = "manifest.json"
OBJECTS = "objects/"
CHUNK_BYTES = 256 * 1024


class Writer:
    """Writes an export file, which has the suffix ``.part`` until it is complete.

    Only the user who created the file may read it. A zip file is written one entry after another.
    Rows are therefore collected in temporary files until all objects are written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self._header: Line = {}
        self._files: dict[str, str] = {}
        self._rows: dict[str, IO[bytes]] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        """Create the file.

        Raises:
            ClickException: the file exists already, or cannot be written.
        """
        if self.path.exists():
            msg = f"{self.path} already exists. Choose another file."
            raise click.ClickException(msg)
        self._part = self.path.with_name(f"{self.path.name}.part")
        try:
            self._part.unlink(missing_ok=True)
            descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            msg = f"{self._part} cannot be written: {error.strerror}."
            raise click.ClickException(msg) from error
        self._file = self._opened.enter_context(os.fdopen(descriptor, "wb"))
        self._zip = self._opened.enter_context(zipfile.ZipFile(self._file, "w"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Complete and rename the file, unless the block failed."""
        if kind is not None:
            with suppress(OSError):
                self._opened.close()
            return
        with self._opened:
            for counted_as, rows in self._rows.items():
                rows.seek(0)
                self._add(f"rows/{counted_as.replace('#', '-')}.jsonl", rows)
            manifest = {
                **self._header,
                "counts": dict(sorted(self.counts.items())),
                "files": self._files,
            }
            text = json.dumps(manifest, ensure_ascii=False, indent=2)
            self._add(MANIFEST, io.BytesIO(text.encode()))
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        self._part.rename(self.path)

    def header(self, values: Line) -> None:
        """Add further values to the manifest."""
        self._header = {"format": FORMAT, "version": VERSION, **values}

    def line(self, counted_as: str, line: Line) -> None:
        """Write a line."""
        self.counts[counted_as] += 1
        if counted_as not in self._rows:
            spool = tempfile.TemporaryFile(dir=self.path.parent)  # noqa: SIM115  closed in ``__exit__``
            self._rows[counted_as] = self._opened.enter_context(spool)
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
        self._rows[counted_as].write(data + b"\n")

    def object(self, stored_object: StoredObject) -> None:
        """Write an object, unless it was already written for another record."""
        name = OBJECTS + stored_object.key
        if name not in self._files:
            self.counts["objects"] += 1
            self._add(name, io.BytesIO(stored_object.body))

    def _add(self, name: str, content: IO[bytes]) -> None:
        """Write an entry with a fixed time, so that equal exports produce equal files."""
        entry, digest = zipfile.ZipInfo(name), hashlib.sha256()
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.file_size = content.seek(0, os.SEEK_END)  # files over 2 GB need ZIP64
        content.seek(0)
        with self._zip.open(entry, "w") as target:
            while chunk := content.read(CHUNK_BYTES):
                digest.update(chunk)
                target.write(chunk)
        self._files[name] = digest.hexdigest()


def read(
    path: Path,
    advance: Callable[[int], None] = lambda _: None,
    rewritten: Callable[[str], str] = lambda text: text,
) -> Iterator[Line | StoredObject]:
    """Yield header, lines, objects and trailer of a file.

    The file is verified while it is read, so an error may follow valid lines.

    The trailer has the ``counts``, and the ``sha256`` that identifies the file.

    Args:
        path: the zip file.
        advance: called with the number of bytes read since the last call.
        rewritten: returns the new text of an unparsed line, or of an object's key. The
            contents of objects do not change.

    Raises:
        FileError: it is not an export, is truncated or changed, or has a later version.
    """
    last_number = 0
    try:
        with path.open("rb") as file:
            magic = file.read(2)
            file.seek(0)
            if magic not in {b"PK", b""}:
                raise FileError("This is no export: it is not a zip file.")
            for number, line in enumerate(_read(file, rewritten)):
                yield line
                if number:  # not for the header, which is read from the end of a zip file
                    advance((now := file.tell()) - last_number)
                    last_number = now
    except (zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        raise FileError("The file was cut off or damaged. Copy it, or export, again.") from error
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise FileError(msg) from error


def _read(file: IO[bytes], rewritten: Callable[[str], str]) -> Iterator[Line | StoredObject]:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        if MANIFEST not in names:
            raise FileError("The file was cut off, or is no export: it has no manifest.json.")
        names.remove(MANIFEST)
        data = archive.read(MANIFEST)
        header = parsed(data, MANIFEST)
        check_header(header, VERSION)
        files: dict[str, str] = header.pop("files")
        if sorted(names) != sorted(files):
            raise FileError("The file is damaged: its manifest lists other files than it has.")
        yield header
        for name in names:
            digest = hashlib.sha256()
            with archive.open(name) as content:
                if name.startswith(OBJECTS):
                    body = content.read()
                    digest.update(body)
                    yield StoredObject(rewritten(name.removeprefix(OBJECTS)), body)
                else:
                    yield from _lines(name, content, rewritten, digest.update)
            if digest.hexdigest() != files[name]:
                msg = f"The file is damaged: the checksum of {name} is wrong."
                raise FileError(msg)
        checksum = hashlib.sha256(data).hexdigest()
        yield {"trailer": {"counts": header["counts"], "sha256": checksum}}


def _lines(
    name: str,
    content: IO[bytes],
    rewritten: Callable[[str], str],
    update_digest: Callable[[bytes], None],
) -> Iterator[Line]:
    number = 0
    while data := content.readline(MAX_LINE_BYTES):
        number += 1
        update_digest(data)
        yield parsed(rewritten(data.decode()).encode(), f"line {number:,} of {name}")
