"""The zip file of an export, with JSON lines and objects (ADR 46), made in pieces.

- ``rows/PRODUCT.jsonl`` and similar files, one or several for each kind of row. A line has a row as
  ``item``, in DynamoDB's JSON, and ``at``, which replaces the row's partition key. The line of a
  record may also have ``parts``, which are other rows of the record. The line of a site may also
  have ``domain``, the site's own domain.
- ``rows/workspace.jsonl``: the workspace's row, its owner, its members and what they want to be
  told.
- ``rows/jobs.jsonl``: the scheduled jobs of the workspace.
- ``objects/``: the objects of the object store, by key, each before the row that names it.
- ``manifest.json``: ``format``, ``version``, name and origin of the workspace, ``counts``, and
  ``files`` with the SHA-256 of every other file. It is written last.

A file without a manifest was truncated, and a file with a wrong checksum was changed; both are
refused by the import.
"""

import hashlib
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

FORMAT = "workspace-export"
VERSION = 3
MANIFEST = "manifest.json"
ROWS, OBJECTS = "rows/", "objects/"
ROW_BYTES = 4_000_000
"""Rows of this many bytes become an entry, so that few of them are in memory."""

Line = dict[str, Any]


class StoredObject(NamedTuple):
    """An object of the object store."""

    key: str
    body: bytes


class ArchiveEntry(NamedTuple):
    """What the directory of a zip file, and the manifest, say of an entry."""

    name: str
    sha256: str
    crc: int
    size: int
    compressed: int
    offset: int

    def zip_info(self) -> zipfile.ZipInfo:
        info = _zip_info(self.name)
        info.CRC, info.file_size = self.crc, self.size
        info.compress_size, info.header_offset = self.compressed, self.offset
        return info


class _Tail(io.BytesIO):
    """The end of a file whose beginning was taken away."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self._start = start

    def tell(self) -> int:
        return self._start + super().tell()

    def seek(self, position: int, whence: int = 0) -> int:
        shift = 0 if whence else self._start
        return self._start + super().seek(position - shift, whence)

    def take(self) -> bytes:
        taken = self.getvalue()
        self._start += len(taken)
        super().seek(0)
        self.truncate()
        return taken


class Archive:
    """A zip file whose beginning leaves the memory whenever ``take`` is called.

    An archive continues another with the ``entries`` of that one, and the number of the bytes that
    were taken from it.
    """

    def __init__(
        self, taken: int = 0, entries: Iterable[ArchiveEntry] = (), pending: bytes = b""
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.entries = list(entries)
        self._names = {entry.name for entry in self.entries}
        self._tail = _Tail(taken)
        self._tail.write(pending)
        self._rows: dict[str, bytearray] = {}

    @property
    def pending(self) -> int:
        """The number of bytes that ``take`` would return."""
        return len(self._tail.getbuffer())

    @property
    def size(self) -> int:
        return self._tail.tell()

    def line(self, counted_as: str, line: Line) -> None:
        """Add a line. It is in the file after ``flush`` only."""
        self.counts[counted_as] += 1
        rows = self._rows.setdefault(counted_as, bytearray())
        rows += json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if len(rows) >= ROW_BYTES:
            self._add_rows(counted_as)

    def object(self, stored_object: StoredObject) -> None:
        """Add an object, unless it was already added for another record."""
        name = OBJECTS + stored_object.key
        if name not in self._names:
            self.counts["objects"] += 1
            self._add(name, stored_object.body)

    def flush(self) -> None:
        """Write the rows that were collected."""
        for counted_as in list(self._rows):
            self._add_rows(counted_as)

    def take(self) -> bytes:
        """Return what was written since it was last called, and forget it."""
        return self._tail.take()

    def complete(self, header: Line) -> None:
        """Write the manifest and the directory. Nothing may be added later."""
        self.flush()
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **header,
            "counts": dict(sorted(self.counts.items())),
            "files": {entry.name: entry.sha256 for entry in self.entries},
        }
        self._add(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2).encode())
        with zipfile.ZipFile(self._tail, "w") as directory:
            directory.filelist[:] = [entry.zip_info() for entry in self.entries]

    def _add_rows(self, counted_as: str) -> None:
        base = ROWS + counted_as.replace("#", "-")
        number, name = 1, f"{base}.jsonl"
        while name in self._names:
            number += 1
            name = f"{base}-{number}.jsonl"
        self._add(name, self._rows.pop(counted_as))

    def _add(self, name: str, content: bytes | bytearray) -> None:
        info = _zip_info(name)
        with zipfile.ZipFile(self._tail, "w") as archive:
            archive.writestr(info, content)
            end = archive.start_dir
        # What follows is a directory of this entry only.
        self._tail.seek(end)
        self._tail.truncate()
        digest = hashlib.sha256(content).hexdigest()
        self.entries.append(
            ArchiveEntry(
                *(name, digest, info.CRC, info.file_size, info.compress_size, info.header_offset)
            )
        )
        self._names.add(name)


def _zip_info(name: str) -> zipfile.ZipInfo:
    # A fixed time, so that equal exports are equal files.
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info
