"""Events that share a turn of their webhook."""

from typing import Any

import pytest

from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.domains.webhooks.flows import make_deliveries
from chalicelib.domains.webhooks.flows.sending_times import DELIVER_WEBHOOK
from chalicelib.engine import jobs
from tests.conftest import Owner, Time
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import Receiver, status

pytestmark = pytest.mark.usefixtures("database")


def test_failing_events_share_their_next_turn(
    webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner, time: Time
) -> None:
    receiver.answer = lambda _: status(500)
    for number in range(8):
        time.pass_by(seconds=1)
        submit(things.form, name="Ada", email=f"ada{number}@example.com")
        run_until_idle()
    waiting = jobs.read_workspace_jobs(owner.workspace.id)
    assert len([job for job in waiting if job.kind == DELIVER_WEBHOOK]) == 1


def test_events_within_a_second_share_their_turn(
    webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner, time: Time
) -> None:
    for number in range(8):
        time.pass_by(milliseconds=100)
        submit(things.form, name="Ada", email=f"ada{number}@example.com")
        for job in jobs.read_workspace_jobs(owner.workspace.id):
            if job.kind == WEBHOOK_EVENTS:
                jobs.attempt(job, make_deliveries.make_deliveries)
    kinds = [job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)]
    assert kinds.count(DELIVER_WEBHOOK) == 1
    run_until_idle()
    assert receiver.types == ["lead.created"] * 8
