"""Jobs that make the deliveries of events."""

from typing import Any

import pytest

from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.domains.webhooks.flows import make_deliveries
from chalicelib.engine import jobs
from tests.conftest import Owner
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.receiver import Receiver

pytestmark = pytest.mark.usefixtures("database")


def test_a_job_of_events_that_runs_twice_sends_each_event_once(
    webhook: dict[str, Any], receiver: Receiver, things: Things, owner: Owner
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    (job,) = (
        job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == WEBHOOK_EVENTS
    )
    make_deliveries.make_deliveries(job)
    run_until_idle()
    assert receiver.types == ["lead.created"]
