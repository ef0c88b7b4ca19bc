"""Settings of Lambda functions that Chalice does not support, applied after Chalice."""

from typing import Any

from infra.deploy.names import function_name
from infra.deploy.stage_config import JOBS

SCHEDULE_SECONDS = 60
"""Interval of the schedule that runs the jobs. Lambda's minimum age of an event is the same."""


def discard_late_runs(client: Any, stage: str) -> None:  # noqa: ANN401  boto3's own
    """Turn off Lambda's retries of scheduled runs, and discard runs that could not start in time.

    EventBridge invokes the jobs asynchronously. By default, Lambda repeats a failed run twice and
    queues a throttled one for six hours. The next run does the same work a minute later.
    """
    client.put_function_event_invoke_config(
        FunctionName=function_name(stage, JOBS),
        MaximumRetryAttempts=0,
        MaximumEventAgeInSeconds=SCHEDULE_SECONDS,
    )
