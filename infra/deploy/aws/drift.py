"""Finds resources of the stacks that were changed or deleted outside of CloudFormation."""

import time
from collections.abc import Iterator, Sequence

from botocore.exceptions import ClientError

from infra.deploy.aws.cloudformation import POLL_SECONDS, Stack
from infra.deploy.aws.errors import explain
from infra.deploy.progress import Progress


def find(stacks: Sequence[Stack], progress: Progress) -> list[str]:
    """Return a line for each changed or deleted resource of the stacks that exist.

    CloudFormation compares all stacks concurrently. What it cannot compare, such as for lack of a
    right, is noted.
    """
    begun = [(stack, _begin(stack, progress)) for stack in stacks if stack.can_be_compared()]
    findings: list[str] = []
    for stack, detection in begun:
        if detection:
            _wait(stack, detection, progress)
            findings += _drifted_resources(stack)
    return findings


def _begin(stack: Stack, progress: Progress) -> str | None:
    try:
        answer = stack.client.detect_stack_drift(StackName=stack.name)
    except ClientError as error:
        progress.note(f"{stack.name} was not compared: {explain(error)}")
        return None
    return str(answer["StackDriftDetectionId"])


def _wait(stack: Stack, detection: str, progress: Progress) -> None:
    while True:
        about = stack.client.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
        if about["DetectionStatus"] == "DETECTION_FAILED":
            reason = about.get("DetectionStatusReason", "CloudFormation gives no reason")
            progress.note(f"Not all resources of {stack.name} were compared: {reason}")
        if about["DetectionStatus"] != "DETECTION_IN_PROGRESS":
            return
        time.sleep(POLL_SECONDS)


def _drifted_resources(stack: Stack) -> Iterator[str]:
    """Yield the drifted resources with property paths, without values, which may be secret."""
    page = {"NextToken": ""}
    while "NextToken" in page:
        more = {"NextToken": page["NextToken"]} if page["NextToken"] else {}
        page = stack.client.describe_stack_resource_drifts(
            StackName=stack.name, StackResourceDriftStatusFilters=["MODIFIED", "DELETED"], **more
        )
        for drift in page["StackResourceDrifts"]:
            paths = ", ".join(p["PropertyPath"] for p in drift.get("PropertyDifferences", ()))
            status = drift["StackResourceDriftStatus"]
            about = f"{status} {drift['ResourceType']} {drift['PhysicalResourceId']} {paths}"
            yield f"{stack.name}: {about.rstrip()}"
