"""Server-sent events in blocks of bytes, as section 9.2.6 of the HTML standard defines them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chalicelib.gateways.llm import ModelError

MAX_LINE = 2**20  # bytes
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """An event. ``type`` is empty if the server names none."""

    type: str
    data: bytes


def read(blocks: Iterable[bytes]) -> Iterator[ServerEvent]:
    """Yield the events as their last lines arrive; raise ModelError for a line too long."""
    kind, data = b"", list[bytes]()
    lines = _lines(blocks)
    for line in lines:
        # A response that is not an event stream, but one JSON object, is one event.
        if line.lstrip().startswith(b"{"):  # No field of an event stream begins so.
            yield ServerEvent("", b"\n".join([line, *lines]))
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
        elif name == b"error":  # llama.cpp before September 2025
            yield ServerEvent("error", value)
        # Comments, ids and ``retry`` are ignored.
        elif not line:
            if data:
                yield ServerEvent(kind.decode(errors="replace"), b"\n".join(data))
            kind, data = b"", []
    if data:  # Some servers close the connection without the last blank line.
        yield ServerEvent(kind.decode(errors="replace"), b"\n".join(data))


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    # Lines are bytes, so that a character may be split over two blocks.
    pending, ends_with_cr, is_first = b"", False, True
    for received in blocks:
        # A CR at the end of a block ends its line without waiting. The LF of its pair may follow.
        block = received.removeprefix(b"\n") if ends_with_cr else received
        ends_with_cr = block.endswith(b"\r")
        *lines, pending = _LINE_END.split(pending + block)
        # A server that never ends a line would otherwise fill the memory.
        if len(pending) > MAX_LINE:
            raise ModelError("garbage", "The provider sends a line that is too long.")
        for line in lines:
            yield line.removeprefix(_BYTE_ORDER_MARK) if is_first else line
            is_first = False
    yield pending.removeprefix(_BYTE_ORDER_MARK) if is_first else pending
