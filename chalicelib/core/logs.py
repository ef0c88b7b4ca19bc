"""Logs: one JSON object per line on stderr. Callers log no secrets and no personal data."""

import json
import logging
import sys
from collections.abc import Sequence
from typing import TextIO

from chalicelib.core import clock
from chalicelib.core.wire.schema import iso

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}


class JsonFormatter(logging.Formatter):
    """Writes a record with its ``extra`` fields; an exception becomes one text field."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line: dict[str, object] = {
            "time": iso(clock.now()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(
            (key, value) for key, value in vars(record).items() if key not in _STANDARD_ATTRIBUTES
        )
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the stream that ``sys.stderr`` is at that moment. Tests and servers replace it."""

    @property
    def stream(self) -> TextIO:
        """The current ``sys.stderr``."""
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
    extra_handlers: Sequence[logging.Handler] = (),
) -> None:
    """Write every log record of this service to stderr as JSON. A second call replaces the first.

    ``formatter`` replaces the JSON format of stderr. ``extra_handlers``
    also receive all records.
    """
    handler = _StderrHandler()
    handler.setFormatter(formatter or JsonFormatter())
    root = logging.getLogger(_ROOT)
    root.handlers[:] = [handler, *extra_handlers]
    root.setLevel(level)
    root.propagate = False
