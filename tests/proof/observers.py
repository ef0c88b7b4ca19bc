"""Check that a request has no side effects such as secrets in the log."""

import json
import logging
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import logs
from chalicelib.core.errors import AppError

MAX_GROWTH = 50 * 2**20
"""Maximum of bytes by which the process may grow during a request."""
MAX_CHAIN = 200
"""Maximum of exceptions in a chain of causes."""


class BrokenPromiseError(AssertionError):
    """A request broke a promise."""


class Log(logging.Handler):
    """Checks each record of the service, and keeps the lines until ``check``."""

    def __init__(self, secrets: list[str]) -> None:
        super().__init__()
        self.secrets = secrets
        self._lines: list[str] = []
        self._errors: list[BaseException] = []
        self.setFormatter(logs.JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            self._errors.append(record.exc_info[1])
            if cycle_in(record.exc_info[1]):  # Formatting it may need any amount of memory.
                return
        self._lines.append(self.format(record))

    def check(self) -> None:
        """Check what was logged and raised since the last check.

        Raises:
            BrokenPromiseError: a chain of causes has no end, or a line has a secret.
        """
        errors, self._errors = self._errors, []
        lines, self._lines = self._lines, []
        for error in errors:
            if cycle_in(error):
                msg = f"the causes of {type(error).__name__} have no end"
                raise BrokenPromiseError(msg)
        for line in lines:
            if json.loads(line) and any(secret in line for secret in self.secrets):
                msg = f"a secret is in the log: {line[:200]}"
                raise BrokenPromiseError(msg)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Receive all records of the service, and note every error that is made for callers."""
        logger, init = logging.getLogger("chalicelib"), AppError.__init__

        def noting(error: AppError, *args: Any, **options: Any) -> None:
            init(error, *args, **options)
            self._errors.append(error)

        level, propagate, handlers = logger.level, logger.propagate, logger.handlers[:]
        logger.handlers[:] = [self]
        logger.setLevel(logging.INFO)
        logger.propagate = False
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AppError, "__init__", noting)
            try:
                yield
            finally:
                logger.handlers[:] = handlers
                logger.setLevel(level)
                logger.propagate = propagate


def cycle_in(error: BaseException) -> bool:
    """Whether the causes and contexts of an exception form a cycle or a very long chain."""
    finished: set[int] = set()
    path: set[int] = set()
    waiting: list[tuple[BaseException, bool]] = [(error, False)]
    while waiting:
        call, leaving = waiting.pop()
        if leaving:
            path.discard(id(call))
            finished.add(id(call))
            continue
        if id(call) in path or len(path) > MAX_CHAIN:
            return True
        if id(call) in finished:
            continue
        path.add(id(call))
        waiting.append((call, True))
        waiting += [(next_, False) for next_ in (call.__cause__, call.__context__) if next_]
    return False


class Memory:
    """The largest growth of the process during a request."""

    def __init__(self) -> None:
        self.most = 0
        self._before = 0

    def begin(self) -> None:
        """Begin a request."""
        with suppress(OSError):  # Linux only. Elsewhere, growth below an earlier peak is missed.
            _RESET.write_text("5")
        self._before = _peak()

    def check(self) -> None:
        """Check the growth since the beginning of the request.

        Raises:
            BrokenPromiseError: it is above ``MAX_GROWTH``.
        """
        growth = _peak() - self._before
        self.most = max(self.most, growth)
        if growth > MAX_GROWTH:
            msg = f"the process grew by {growth / 2**20:.0f} MB"
            raise BrokenPromiseError(msg)


_RESET = Path("/proc/self/clear_refs")
"""Writing 5 makes the current size the peak (proc_pid_clear_refs(5))."""
_STATUS = Path("/proc/self/status")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def _peak() -> int:
    if _STATUS.exists() and (match := _PEAK.search(_STATUS.read_text())):
        return int(match[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
