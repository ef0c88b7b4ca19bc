"""Scheduled jobs: their kinds and the handlers that run them.

A scheduled function runs the jobs that are due.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from chalicelib.core.manifest import Declarations, manifest


class Job(Protocol):
    """A scheduled job, as passed to its handler."""

    workspace_id: str
    payload: Any


JOB_HANDLERS: Declarations[Callable[[Job], None]] = Declarations(manifest().jobs)
"""Handlers by kind of job."""

KNOWLEDGE_STALE = "knowledge-stale"
"""The kind of job that brings the indexes of a workspace's bots up to date.

It is named here because it follows changes in domains below ``domains.knowledge``.
"""

D = TypeVar("D", bound=Callable[[Job], None])


def job_handler(kind: str) -> Callable[[D], D]:
    """Declare the handler of a kind of job. It may be called more than once for the same job.

    Raises:
        ValueError: the kind has a handler already.
    """

    def declare(handler: D) -> D:
        JOB_HANDLERS.declare(kind, handler, handler.__module__)
        return handler

    return declare
