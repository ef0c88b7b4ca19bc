"""Compares failures in tests with the error codes and fields in the reference."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY
from chalicelib.transports.api_docs import failures
from chalicelib.transports.routes import MCP_PATH


class _UndeclaredErrors(logging.Handler):
    """Collects failures that the reference does not document, by operation and code from the log.

    Refusals of the tool server itself and operations that tests register are left out. Fields of a
    failure that its class's docstring does not name are collected as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, str]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        name, code = getattr(record, "operation", None), getattr(record, "code", None)
        if not name or not code or getattr(record, "route", "") == MCP_PATH:
            return
        if name in {entry.name for entry in REGISTRY.entries()}:
            errors = failures.errors_of(REGISTRY[name])
            if code not in {error.code for error in errors}:
                self.seen.add((name, code))

    def look_at(self, error: AppError) -> None:
        kind = type(error)
        if kind.__module__.startswith("chalicelib."):
            meaning = kind.__doc__ or ""
            self.seen |= {(kind.code, n) for n in error.details if f"``{n}``" not in meaning}


@pytest.fixture(scope="session")
def _undeclared_errors() -> _UndeclaredErrors:
    noticed = _UndeclaredErrors()
    logging.getLogger("chalicelib.transports.http").addHandler(noticed)
    init = AppError.__init__

    def looked_at(error: AppError, *args: Any, **options: Any) -> None:
        init(error, *args, **options)
        noticed.look_at(error)

    AppError.__init__ = looked_at  # type: ignore[method-assign]
    return noticed


@pytest.fixture(autouse=True)
def _declares_its_errors(_undeclared_errors: _UndeclaredErrors) -> Iterator[None]:
    """Fail the test during which an operation fails with an undeclared error."""
    yield
    seen, _undeclared_errors.seen = _undeclared_errors.seen, set()
    assert not seen, f"name in errors= of the operation, or fields in the docstring: {sorted(seen)}"
