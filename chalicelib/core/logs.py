"""Logs: one JSON object per line on stderr, without secrets or personal data."""

import json
import logging
import sys
from collections.abc import Sequence
from typing import TextIO

from chalicelib.core import clock
from chalicelib.core.wire.schema import iso

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record with its ``extra`` fields; an exception becomes one text field."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": iso(clock.now()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update((key, value) for key, value in vars(record).items() if key not in _STANDARD)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the current ``sys.stderr``, which tests and servers replace."""

    @property
    def stream(self) -> TextIO:
        """The current stderr."""
        return sys.stderr

    @stream.setter
    def stream(self, _: TextIO) -> None:
        """Ignore the stream that ``StreamHandler`` sets."""


_ROOT = "chalicelib"


def are_configured() -> bool:
    """Whether ``configure`` was called in this process."""
    return bool(logging.getLogger(_ROOT).handlers)


def configure(
    level: int = logging.INFO,
    *,
    formatter: logging.Formatter | None = None,
    more: Sequence[logging.Handler] = (),
) -> None:
    """Write every log record of this service to stderr as JSON, exactly once.

    ``formatter`` replaces the JSON format of stderr. The handlers in ``more`` also receive all
    records.
    """
    handler = _Stderr()
    handler.setFormatter(formatter or JsonFormatter())
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler, *more]
    root.setLevel(level)
    root.propagate = False
