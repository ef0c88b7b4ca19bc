"""Print a short line for each request on a terminal, and write JSON to a file."""

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from chalicelib.core import clock, logs

MAX_BYTES = 10_000_000
"""Maximum size in bytes, at which the file is renamed to ``service.log.1``."""


class ShortFormatter(logging.Formatter):
    """Writes a request as ``12:00:00  200  GET     /api/projects/list  12 ms``.

    Other records are the time, the level and the message.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by the traceback of an exception."""
        time = clock.now().astimezone().strftime("%H:%M:%S")
        about = vars(record)
        if "status" in about and "method" in about:
            code = f"  {about['code']}" if "code" in about else ""
            took = f"{about.get('ms', 0):.0f} ms"
            route = about.get("route", "")
            return f"{time}  {about['status']}  {about['method']:<6}  {route}  {took}{code}"
        line = f"{time}  {record.levelname.lower()}: {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(path: Path) -> None:
    """Log to a file, and to stderr.

    On a terminal, stderr gets short lines unless ``LOG`` is ``json``; elsewhere it gets JSON.
    """
    file = RotatingFileHandler(path, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8")
    file.setFormatter(logs.JsonFormatter())
    short = is_terminal() and os.environ.get("LOG") != "json"
    logs.configure(formatter=ShortFormatter() if short else None, extra_handlers=[file])


def is_terminal() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr.isatty()
