"""Settings of Lambda functions that Chalice does not support, applied after Chalice."""

from collections.abc import Collection
from typing import Any

from infra.deploy.names import function_name
from infra.deploy.stage_config import EVENTS, JOBS

SCHEDULE_SECONDS = 60
"""Interval of the schedules. Lambda's minimum age of an event is the same."""


def discard_late_runs(client: Any, stage: str, deployed: Collection[str]) -> None:  # noqa: ANN401  boto3's own
    """Turn off Lambda's retries of scheduled runs, and discard runs that could not start in time.

    ``deployed`` are Chalice's names of the deployed resources: an earlier release may lack one of
    the functions. EventBridge invokes them asynchronously. By default, Lambda repeats a failed run
    twice and queues a throttled one for six hours. The next run does the same work a minute later.
    """
    for name in (JOBS, EVENTS):
        if name in deployed:
            client.put_function_event_invoke_config(
                FunctionName=function_name(stage, function=name),
                MaximumRetryAttempts=0,
                MaximumEventAgeInSeconds=SCHEDULE_SECONDS,
            )
