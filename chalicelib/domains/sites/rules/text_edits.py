"""Search-and-replace edits of a string. Each edit applies to the result of the previous one."""

from collections.abc import Sequence
from typing import Protocol


class Edit(Protocol):
    """An exact text to find, and its replacement for one match or for all."""

    @property
    def find(self) -> str:
        """The string to find, not empty."""

    @property
    def replace(self) -> str:
        """The string to insert instead."""

    @property
    def all(self) -> bool:
        """Whether every match is replaced. If false, there must be exactly one match."""


class MismatchError(Exception):
    """The edit at ``index`` matched ``count`` times: not at all, or too often."""

    def __init__(self, index: int, *, count: int) -> None:
        super().__init__(index, count)
        self.index = index
        self.count = count


class OversizeError(Exception):
    """The text would have ``size`` bytes of UTF-8 after the edit at ``index``."""

    def __init__(self, index: int, *, size: int) -> None:
        super().__init__(index, size)
        self.index = index
        self.size = size


def apply_edits(text: str, edits: Sequence[Edit], max_bytes: int) -> str:
    """Return the edited text. Matches are counted from the left and do not overlap.

    ``max_bytes`` limits the bytes of UTF-8 after each edit, because a few edits that replace many
    matches could make the string grow exponentially.

    Raises:
        MismatchError: an edit does not match, or matches several times without ``all``.
        OversizeError: an edit would exceed ``max_bytes``. Raised before the result is built.
    """
    size = len(text.encode())
    for index, edit in enumerate(edits):
        count = text.count(edit.find)
        if not count or (count > 1 and not edit.all):
            raise MismatchError(index, count=count)
        size += count * (len(edit.replace.encode()) - len(edit.find.encode()))
        if size > max_bytes:
            raise OversizeError(index, size=size)
        text = text.replace(edit.find, edit.replace)
    return text
