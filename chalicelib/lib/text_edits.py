"""A text changed by finding and replacing: in order, each edit in the result of those before."""

from collections.abc import Sequence
from typing import Protocol


class Edit(Protocol):
    """What to find, to the letter, and what to put there: once, or wherever it stands."""

    @property
    def find(self) -> str:
        """The text to find; not empty."""

    @property
    def replace(self) -> str:
        """The text to put there."""

    @property
    def all(self) -> bool:
        """Whether every match is replaced; if not, there must be exactly one."""


class MismatchError(Exception):
    """The edit at ``index`` matched ``count`` times, which is not how often it must."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__(index, count)
        self.index = index
        self.count = count


class OversizeError(Exception):
    """The text would have ``size`` bytes of UTF-8 after the edit at ``index``."""

    def __init__(self, index: int, size: int) -> None:
        super().__init__(index, size)
        self.index = index
        self.size = size


def apply(text: str, edits: Sequence[Edit], max_bytes: int) -> str:
    """Return the edited text. Matches are counted from the left and do not overlap.

    Args:
        text: what to edit.
        edits: applied one after the other.
        max_bytes: of UTF-8, that no edit may pass: a few replacements of many matches multiply.

    Raises:
        MismatchError: an edit does not match, or several times without ``all``.
        OversizeError: before the text is made.
    """
    size = len(text.encode())
    for index, edit in enumerate(edits):
        count = text.count(edit.find)
        if not count or (count > 1 and not edit.all):
            raise MismatchError(index, count)
        size += count * (len(edit.replace.encode()) - len(edit.find.encode()))
        if size > max_bytes:
            raise OversizeError(index, size)
        text = text.replace(edit.find, edit.replace)
    return text
