"""Scheduled jobs: their kinds and the handlers that run them.

A scheduled function runs the jobs that are due.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from chalicelib.core.manifest import Declarations, manifest


class Job(Protocol):
    """A scheduled job, as passed to its handler."""

    workspace_id: str
    payload: Any

    @property
    def job_id(self) -> str:
        """Id of the job, which is unique within its kind."""


JOB_HANDLERS: Declarations[Callable[[Job], None]] = Declarations(manifest().jobs)
"""Handlers by kind of job."""

KNOWLEDGE_STALE = "knowledge-stale"
"""The kind of job that brings the indexes of a workspace's bots up to date.

It is named here because it follows changes in domains below ``domains.knowledge``.
"""

WEBHOOK_EVENTS = "webhook-events"
"""The kind of job that makes the deliveries of the events of a unit of work."""
DELIVER_WEBHOOK = "deliver-webhook"
"""The kind of job that sends what is due to one webhook."""


class Queue(StrEnum):
    """A queue of jobs, with a runner of its own. Its value begins the keys of its jobs."""

    MAIN = "JOBS"
    EVENTS = "EVENT-JOBS"
    """The jobs that wait for servers of others, so that these delay no other job."""


EVENT_KINDS = frozenset({WEBHOOK_EVENTS, DELIVER_WEBHOOK})


def queue_of(kind: str) -> Queue:
    """Return the queue of a kind of jobs."""
    return Queue.EVENTS if kind in EVENT_KINDS else Queue.MAIN


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
