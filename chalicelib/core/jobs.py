"""Work done outside requests: what kinds there are, and who does them.

The runner is a scheduled function.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Job(Protocol):
    """A piece of due work, as its handler sees it."""

    workspace_id: str
    payload: Any


JOB_HANDLERS: dict[str, Callable[[Job], None]] = {}
"""Handlers by kind."""


D = TypeVar("D", bound=Callable[[Job], None])


def job_handler(kind: str) -> Callable[[D], D]:
    """Declare a handler of due work. It may be called more than once for the same work."""

    def declare(handler: D) -> D:
        JOB_HANDLERS[kind] = handler
        return handler

    return declare
