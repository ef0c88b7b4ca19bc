"""Write logs as one JSON object per line on stderr, without secrets and personal data.

This module imports only the standard library and ``clock``, so that a process that cannot import
anything else can still log why.
"""

import json
import logging
import sys
import threading
from collections.abc import Sequence
from io import TextIOBase
from typing import TextIO

from chalicelib.core import clock
from chalicelib.core.clock import iso

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
}


class JsonFormatter(logging.Formatter):
    """Writes a record with its ``extra`` fields, and an exception as one string."""

    def format(self, record: logging.LogRecord) -> str:
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
        return _encode(line)


# ``json.dumps`` with options would create an encoder for each line.
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


class _StderrHandler(logging.StreamHandler[TextIO]):
    @property
    def stream(self) -> TextIO:
        # Tests and servers replace it.
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
    """Write this service's log records to stderr as JSON. A second call replaces the first."""
    handler = _StderrHandler()
    handler.setFormatter(formatter or JsonFormatter())
    _install(logging.getLogger(_ROOT), level, [handler, *extra_handlers])


def configure_process() -> None:
    """Write all that this process writes to stderr as JSON, also what no code of the service logs.

    These are records of libraries, Python's warnings, uncaught and ignored exceptions, and printed
    lines. Errors have the level ``error``, which the alarm on errors counts.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    _install(logging.getLogger(), logging.WARNING, [handler])
    _install(logging.getLogger(_ROOT), logging.INFO, [handler])
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda _, error, __: _log_uncaught(error)
    threading.excepthook = lambda hook: _log_uncaught(hook.exc_value)
    sys.unraisablehook = lambda hook: _log_uncaught(hook.exc_value)
    sys.stderr = _PrintedLines()


def _install(logger: logging.Logger, level: int, handlers: Sequence[logging.Handler]) -> None:
    logger.handlers[:] = handlers
    logger.setLevel(level)
    # The root logger has handlers, too, and would write each record a second time.
    logger.propagate = False


def _log_uncaught(error: BaseException | None) -> None:
    if not isinstance(error, SystemExit):  # A thread that ends itself has not failed.
        logging.getLogger(_PROCESS).error("uncaught exception", exc_info=error)


class _PrintedLines(TextIOBase):
    def __init__(self) -> None:
        self._local = threading.local()

    def write(self, text: str) -> int:
        local = self._local
        if getattr(
            local, "is_logging", False
        ):  # Writing the log failed, and this process has no other output.
            return len(text)
        *lines, local.rest = (getattr(local, "rest", "") + text).split("\n")
        local.is_logging = True
        try:
            for line in filter(None, lines):
                logging.getLogger(_PROCESS).warning("%s", line)
        finally:
            local.is_logging = False
        return len(text)


_PROCESS = f"{_ROOT}.process"  # events that no code of this service has logged
