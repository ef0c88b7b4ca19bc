"""Read exports of earlier versions, which are gzip with a JSON object in each line (ADR 34).

The first line is the header. The last one is a trailer with the SHA-256 of all earlier lines. A
line with ``object`` and ``bytes`` is followed by lines of ``chunk`` in base64. The others are as in
a zip file's ``rows``.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import IO

from infra.operator.transfer.lines import (
    MAX_LINE_BYTES,
    FileError,
    Line,
    StoredObject,
    check_header,
    parsed,
)

MAGIC = b"\x1f\x8b"
VERSION = 1


def read(file: IO[bytes], rewritten: Callable[[str], str]) -> Iterator[Line | StoredObject]:
    """Yield header, lines, objects and trailer, as ``file_format.read`` does."""
    digest, is_complete = hashlib.sha256(), False
    with gzip.open(file) as content:
        lines = enumerate(iter(lambda: content.readline(MAX_LINE_BYTES), b""))
        for number, data in lines:
            line = parsed(data, f"its line {number + 1:,}")
            if number == 0:
                check_header(line, VERSION)
            if is_complete:
                raise FileError("The file is damaged: it goes on behind its end.")
            if trailer := line.get("trailer"):
                is_complete = (trailer["lines"], trailer["sha256"]) == (number, digest.hexdigest())
                if not is_complete:
                    raise FileError("The file is damaged: its checksum is wrong. Copy it again.")
                yield line
                continue
            digest.update(data)
            line = json.loads(rewritten(data.decode()))
            if "object" not in line:
                yield line
                continue
            body = bytearray()
            while len(body) < line["bytes"]:
                _, chunk = next(lines, (0, b"{}"))
                digest.update(chunk)
                body += base64.b64decode(json.loads(chunk)["chunk"])
            yield StoredObject(line["object"], bytes(body))
    if not is_complete:
        raise EOFError
