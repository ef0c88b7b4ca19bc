"""Read the zip file of an export, whose format is that of ``exports.rules.archive``.

An import holds at most one object, of up to 20 MB, in memory.
"""

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from chalicelib.domains.exports.rules.archive import MANIFEST, OBJECTS, Line, StoredObject
from infra.operator.transfer.lines import MAX_LINE_BYTES, FileError, check_header, parsed


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
        check_header(header)
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
