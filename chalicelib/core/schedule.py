"""Work done outside requests: what kinds there are, and who does them.

The runner is a scheduled function.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar


class Due(Protocol):
    """A piece of due work, as its handler sees it."""

    workspace_id: str
    payload: Any


DUE_WORK: dict[str, Callable[[Due], None]] = {}
"""Handlers by kind."""


D = TypeVar("D", bound=Callable[[Due], None])


def due_work(kind: str) -> Callable[[D], D]:
    """Declare a handler of due work. It may be called more than once for the same work."""

    def declare(handler: D) -> D:
        DUE_WORK[kind] = handler
        return handler

    return declare
