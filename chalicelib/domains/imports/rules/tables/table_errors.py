"""Reasons why a table or one of its cells cannot be read."""


class TableError(ValueError):
    """The whole file cannot be read, for the reason in the message."""


class CellError(ValueError):
    """A cell cannot be read, and the message has the expected format."""


class UnitError(TableError):
    """The unit of the prices is unknown, or is not the one in the header."""
