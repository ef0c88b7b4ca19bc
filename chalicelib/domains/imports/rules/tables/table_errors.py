"""Reasons why a table or one of its cells cannot be read."""

from typing import Any, Self

from chalicelib.domains.imports.rules.reasons import Reason


class ReadingError(ValueError):
    """Something cannot be read, for a reason with a code, an English sentence and facts."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.sentence)
        self.reason = reason

    @classmethod
    def of(cls, code: str, sentence: str, /, **facts: Any) -> Self:  # noqa: ANN401  shown as texts
        return cls(Reason.of(code, sentence, **facts))


class TableError(ReadingError):
    """The whole file cannot be read."""


class CellError(ReadingError):
    """A cell cannot be read. The sentence has the expected format."""


class UnitError(TableError):
    """The unit of the prices is unknown, or is not the one in the header."""
