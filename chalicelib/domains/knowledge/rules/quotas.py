"""How much a bot can know."""

from collections.abc import Iterable
from typing import Protocol

from chalicelib.domains.knowledge.rules.problems import Problem, too_much_text

MAX_SOURCES = 100  # sources of a bot
MAX_BOT_BYTES = 3_000_000  # of UTF-8, in the text of all sources of a bot


class Sized(Protocol):
    @property
    def size(self) -> float:
        """Bytes of the text, which the database returns as a number of any kind."""


def used(sources: Iterable[Sized]) -> int:
    """Return the bytes of text that sources have."""
    return sum(int(source.size) for source in sources)


def problem(used_bytes: int, text: str) -> Problem | None:
    """Return the problem if a text and the bot's other sources exceed the quota, else None."""
    size = len(text.encode())
    if used_bytes + size <= MAX_BOT_BYTES:
        return None
    return too_much_text(size, used=used_bytes, maximum=MAX_BOT_BYTES)
