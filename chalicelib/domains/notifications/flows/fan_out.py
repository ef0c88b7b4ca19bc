"""Find the members to notify of events, and make a job for each message.

A message has the same id each time, so one that waits is not made twice.
"""

from datetime import datetime

from chalicelib.core import deadline
from chalicelib.core.events import MESSAGE_KINDS
from chalicelib.core.jobs import NOTIFY_MEMBER, PEOPLE_EVENTS, Job, job_handler
from chalicelib.domains.notifications.flows import choosing
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.jobs import JobRow

PARALLEL_WRITES = 8


@job_handler(PEOPLE_EVENTS)
def make_messages(job: Job) -> None:
    """Make a job for each message that a member wants.

    If it is killed and runs again, it makes the same jobs. Those that have already run are then
    sent twice, and both mails have the same id.

    Raises:
        UnavailableError: the database is unavailable.
    """
    members = choosing.members(job.workspace_id)
    made: list[JobRow] = []
    for number, values in enumerate(job.payload["events"]):
        event = Event(*values)
        for name in (name for name, kind in MESSAGE_KINDS.items() if kind.type == event.type):
            for member, choices in members:
                for channel in choices.channels(name):
                    message = {
                        "kind": name,
                        "recordId": event.id,
                        "accountId": member.account.id,
                        "channel": channel,
                        "at": job.payload["at"],
                    }
                    message_id = f"{job.job_id}-{number}-{name}-{member.account.id}-{channel}"
                    made.append(_row(job.workspace_id, message, message_id))
    deadline.map_in_threads(jobs.schedule, made, PARALLEL_WRITES)
    if made:
        wake.wake()


def _row(workspace_id: str, message: dict[str, str], message_id: str) -> JobRow:
    due_at = datetime.fromisoformat(message["at"])
    return jobs.row(NOTIFY_MEMBER, workspace_id, message, due_at, job_id=message_id)
