"""Changes made outside of CloudFormation are listed before a deployment."""

from typing import Any

import pytest
from botocore.stub import Stubber

from infra.deploy.aws import drift
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Stack
from infra.deploy.progress import Progress

DATA, ALARMS = "workspace-api-dev-data", "workspace-api-dev-alarms"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "POLL_SECONDS", 0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")


def drifted(name: str, status: str, *paths: str) -> dict[str, Any]:
    differences = [
        {"PropertyPath": p, "ExpectedValue": "a", "ActualValue": "s3cret", "DifferenceType": "ADD"}
        for p in paths
    ]
    return {
        "StackId": "arn:stack",
        "LogicalResourceId": name,
        "PhysicalResourceId": f"the-{name}",
        "ResourceType": "AWS::S3::Bucket",
        "StackResourceDriftStatus": status,
        "Timestamp": "2027-01-15T12:00:00Z",
        "PropertyDifferences": differences,
    }


class Compared:
    """CloudFormation, which compares stacks as a test says."""

    def __init__(self) -> None:
        self.account = Account("1", "eu-central-1", "arn:aws:iam::1:user/ops")
        self.stub = Stubber(self.account.client("cloudformation"))
        self.messages: list[str] = []

    def has(self, status: str | None) -> None:
        about = {"StackName": DATA, "CreationTime": "2027-01-15T12:00:00Z"}
        if status is None:
            self.stub.add_client_error("describe_stacks", "ValidationError")
        else:
            self.stub.add_response("describe_stacks", {"Stacks": [about | {"StackStatus": status}]})

    def ends(self, *statuses: str) -> None:
        for status in statuses:
            about = {
                "StackId": "arn:stack",
                "StackDriftDetectionId": "1",
                "DetectionStatus": status,
            }
            about |= {"Timestamp": "2027-01-15T12:00:00Z"}
            if status == "DETECTION_FAILED":
                about["DetectionStatusReason"] = "No right to read the bucket"
            self.stub.add_response("describe_stack_drift_detection_status", about)

    def finds(self, *differences: dict[str, Any], more: bool = False) -> None:
        page: dict[str, Any] = {"StackResourceDrifts": list(differences)}
        if more:
            page["NextToken"] = "2"
        self.stub.add_response("describe_stack_resource_drifts", page)

    def find(self, *names: str) -> list[str]:
        progress = Progress(self.messages.append)
        with self.stub:
            lines = drift.find([Stack(self.account, "dev", n, progress) for n in names], progress)
        self.stub.assert_no_pending_responses()
        return lines


def test_drift_names_properties_without_values() -> None:
    aws = Compared()
    aws.has("UPDATE_COMPLETE")
    aws.stub.add_response("detect_stack_drift", {"StackDriftDetectionId": "1"})
    aws.ends("DETECTION_IN_PROGRESS", "DETECTION_COMPLETE")
    aws.finds(drifted("Bucket", "MODIFIED", "/Versioning", "/Cors"), more=True)
    aws.finds(drifted("Logs", "DELETED"))
    assert aws.find("data") == [
        f"{DATA}: MODIFIED AWS::S3::Bucket the-Bucket /Versioning, /Cors",
        f"{DATA}: DELETED AWS::S3::Bucket the-Logs",
    ]
    assert aws.messages == []


@pytest.mark.parametrize("status", [None, "UPDATE_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_a_stack_that_cannot_be_compared_is_left_out(status: str | None) -> None:
    aws = Compared()
    aws.has(status)
    assert aws.find("data") == []


def test_a_missing_right_is_noted_and_the_other_stacks_are_compared() -> None:
    aws = Compared()
    aws.has("CREATE_COMPLETE")
    aws.stub.add_client_error("detect_stack_drift", "AccessDenied", "not authorized")
    aws.has("CREATE_COMPLETE")
    aws.stub.add_response("detect_stack_drift", {"StackDriftDetectionId": "1"})
    aws.ends("DETECTION_FAILED")
    aws.finds()
    assert aws.find("data", "alarms") == []
    denied, failed = aws.messages
    assert denied.startswith(f"  {DATA} was not compared: These credentials may not call")
    assert failed == (f"  Not all resources of {ALARMS} were compared: No right to read the bucket")
