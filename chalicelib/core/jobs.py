"""The kinds of scheduled jobs, and the registry of their handlers."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, Self, TypeVar

from chalicelib.core.manifest import Declarations, manifest


class Job(Protocol):
    kind: str
    workspace_id: str
    payload: Any

    @property
    def job_id(self) -> str:
        """Id of the job, which is unique within its kind."""


class Postponed(Exception):  # noqa: N818  no error: the job runs again
    """Raised by a handler to run its job again at ``due_at``, with the same id and payload."""

    def __init__(self, due_at: datetime) -> None:
        super().__init__(f"until {due_at}")
        self.due_at = due_at


JOB_HANDLERS: Declarations[Callable[[Job], None]] = Declarations(manifest().jobs)


class Queue(StrEnum):
    """A queue of jobs, with its own runner. The queue's value begins the keys of its jobs."""

    MAIN = "JOBS"
    EVENTS = "EVENT-JOBS"  # jobs that wait for external servers, so that they delay no other job


class JobKind(str):
    """The name of a kind of jobs, as rows store it, with the queue of its jobs."""

    __slots__ = ("queue",)
    queue: Queue

    def __new__(cls, name: str, queue: Queue = Queue.MAIN) -> Self:
        kind = super().__new__(cls, name)
        kind.queue = queue
        return kind


# A kind is declared in the domain whose code stages its jobs, in ``rules/job_kinds`` if the handler
# is elsewhere. The kinds below are staged by the engine or by domains without a floor in common.

# Brings the indexes of a workspace's bots up to date, after changes of bots and of sites.
KNOWLEDGE_STALE = JobKind("knowledge-stale")

# Makes the deliveries of the events of a unit of work.
WEBHOOK_EVENTS = JobKind("webhook-events", Queue.EVENTS)
# Finds the members to notify of the events of a unit of work.
PEOPLE_EVENTS = JobKind("people-events", Queue.EVENTS)
# Sends e-mail to clients about the bookings in a unit of work's events.
VISITOR_EVENTS = JobKind("visitor-events", Queue.EVENTS)

# Removes replies of receivers, which may repeat personal data. The payload has ``recordIds``, or
# the ``webhookId`` of a webhook that is deleted.
WEBHOOK_REPLIES = JobKind("webhook-replies")
# Attempts of webhooks that are being made now have ended after this time.
ATTEMPTS_END = timedelta(minutes=1)


D = TypeVar("D", bound=Callable[[Job], None])


def job_handler(kind: str) -> Callable[[D], D]:
    """Declare the only handler of a kind of job. It may be called more than once for the same job.

    >>> @job_handler("example")  # doctest: +SKIP
    ... def run(job: Job) -> None:
    ...     print(job.payload)
    """

    def declare(handler: D) -> D:
        JOB_HANDLERS.declare(kind, handler, handler.__module__)
        return handler

    return declare
