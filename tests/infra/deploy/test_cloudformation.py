"""Stacks and change sets, with a scripted CloudFormation."""

import json
from dataclasses import dataclass, field
from typing import Any

import click
import pytest
from botocore.exceptions import ClientError

from infra.deploy.aws import cloudformation
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import REVIEW, Change, Stack, StackError
from infra.deploy.progress import Progress


def change(action: str, name: str, replacement: str | None = None) -> dict[str, Any]:
    about = {"Action": action, "ResourceType": "AWS::DynamoDB::Table", "LogicalResourceId": name}
    return {"ResourceChange": about | ({"Replacement": replacement} if replacement else {})}


@dataclass
class FakeCloudFormation:
    """One stack: its status, and the statuses that follow when it is changed."""

    status: str | None = None
    changes: list[dict[str, Any]] = field(default_factory=list)
    proposal: tuple[str, str] = ("CREATE_COMPLETE", "")
    then: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    request: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    reason: str = "Table is busy"
    """Why a resource failed."""
    faults: list[dict[str, Any]] | None = None
    """The result of the early validation. None if CloudFormation does not support it."""

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803  boto3's name
        if self.status is None:
            error_body = {"Error": {"Code": "ValidationError", "Message": "does not exist"}}
            raise ClientError(error_body, "DescribeStacks")
        stack = {"StackId": "arn:stack", "StackStatus": self.status, "Parameters": [
            {"ParameterKey": "Stage", "ParameterValue": "dev"},
            {"ParameterKey": "AlarmEmail", "ParameterValue": "ops@example.com"},
            {"ParameterKey": "Dropped", "ParameterValue": "1"},
        ]}  # fmt: skip
        if self.status.endswith("_IN_PROGRESS") and self.status != REVIEW and self.then:
            self._become(self.then.pop(0))
        return {"Stacks": [stack | {"Outputs": [{"OutputKey": "A", "OutputValue": "1"}]}]}

    def describe_stack_events(self, StackName: str) -> dict[str, Any]:  # noqa: N803  as above
        return {"StackEvents": list(reversed(self.events))}

    def get_template_summary(self, TemplateBody: str) -> dict[str, Any]:  # noqa: N803  as above
        names = json.loads(TemplateBody)["Parameters"]
        return {"Parameters": [{"ParameterKey": name} for name in names]}

    def create_change_set(self, **requested: Any) -> None:
        self.calls.append("propose")
        self.request = requested
        self.status = self.status or "REVIEW_IN_PROGRESS"

    def describe_change_set(self, NextToken: str | None = None, **_: Any) -> dict[str, Any]:  # noqa: N803  as above
        status, reason = self.proposal
        page = self.changes[2:] if NextToken else self.changes[:2]
        more = {} if NextToken or len(self.changes) < 3 else {"NextToken": "2"}
        return {"Status": status, "StatusReason": reason, "Changes": page, **more}

    def describe_events(self, **_: Any) -> dict[str, Any]:
        if self.faults is None:
            error_body = {"Error": {"Code": "AccessDenied", "Message": "no"}}
            raise ClientError(error_body, "DescribeEvents")
        return {"OperationEvents": self.faults}

    def delete_change_set(self, **_: Any) -> None:
        self.calls.append("forget")

    def execute_change_set(self, **_: Any) -> None:
        self.calls.append("execute")
        self.status = self.then.pop(0)

    def delete_stack(self, StackName: str) -> None:  # noqa: N803  as above
        self.calls.append("delete")
        self.status = None

    def _become(self, status: str) -> None:
        self.status = status
        event = {"EventId": str(len(self.events)), "ResourceStatus": status}
        event |= {"ResourceType": "AWS::DynamoDB::Table", "LogicalResourceId": "ContentTable"}
        if "FAILED" in status or "ROLLBACK" in status:
            event |= {"ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": self.reason}
        self.events.append(event)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudformation, "POLL_SECONDS", 0)


messages: list[str] = []


def stack(fake: FakeCloudFormation, name: str = "data") -> Stack:
    messages.clear()
    account = Account("1", "eu-central-1", "arn:aws:iam::1:user/ops")
    account._clients["cloudformation", "eu-central-1"] = fake
    return Stack(account, "dev", name, Progress(messages.append))


GIVEN = {"Stage": "dev", "TablePrefix": "workspace"}


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        (change("Remove", "Old"), "Remove AWS::DynamoDB::Table Old"),
        (change("Modify", "Content", "True"), "Modify AWS::DynamoDB::Table Content (replaced)"),
        (change("Modify", "Content", "Conditional"), "Content (perhaps replaced)"),
    ],
)
def test_change_that_deletes_a_table_is_refused(lost: dict[str, Any], reason: str) -> None:
    others = [change("Modify", "Ledger", "False"), change("Add", "New")]
    fake = FakeCloudFormation("UPDATE_COMPLETE", [*others, lost])  # It is on the second page.
    with pytest.raises(StackError) as failure:
        stack(fake).apply(GIVEN, keep=True)
    assert reason in failure.value.message
    assert "Nothing was changed" in failure.value.message
    assert fake.calls == ["propose", "forget"]


def test_other_stacks_may_delete_resources() -> None:
    fake = FakeCloudFormation(
        "UPDATE_COMPLETE", [change("Remove", "Old")], then=["UPDATE_COMPLETE"]
    )
    assert stack(fake).apply(GIVEN) == {"A": "1"}
    assert "execute" in fake.calls


def test_changes_are_shown_and_confirmed_first() -> None:
    fake = FakeCloudFormation("UPDATE_COMPLETE", [change("Add", "New")])

    def confirm(changes: list[Change]) -> None:
        assert [str(change) for change in changes] == ["Add AWS::DynamoDB::Table New"]
        assert messages == ["  Add AWS::DynamoDB::Table New"]
        raise click.Abort

    with pytest.raises(click.Abort):
        stack(fake).apply(GIVEN, confirm)
    assert fake.calls == ["propose", "forget"]


@pytest.mark.parametrize("reason", cloudformation.NO_CHANGES)
def test_empty_change_set_is_no_failure(reason: str) -> None:
    fake = FakeCloudFormation("UPDATE_COMPLETE", proposal=("FAILED", f"{reason} there."))
    assert stack(fake).apply(GIVEN) == {"A": "1"}
    assert fake.calls == ["propose", "forget"]
    assert messages == ["  No changes."]


def test_change_of_outputs_only_is_applied() -> None:
    fake = FakeCloudFormation("UPDATE_COMPLETE", [], then=["UPDATE_COMPLETE"])
    stack(fake).apply(GIVEN, confirm=lambda _: pytest.fail("there is nothing to ask about"))
    assert fake.calls == ["propose", "execute"]


def test_refused_template_is_reported_with_the_reason() -> None:
    fake = FakeCloudFormation("UPDATE_COMPLETE", proposal=("FAILED", "Unresolved resource X"))
    with pytest.raises(StackError, match="workspace-api-dev-data: Unresolved resource X"):
        stack(fake).apply(GIVEN)


def test_early_validation_errors_are_reported_for_each_resource() -> None:
    """The change set's own reason only names the check that failed."""
    proposal = ("FAILED", "validation failed: [AWS::EarlyValidation::ResourceExistenceCheck]")
    conflict = {"LogicalResourceId": "Bucket", "ValidationStatusReason": "It exists already"}
    fake = FakeCloudFormation("UPDATE_COMPLETE", proposal=proposal, faults=[{}, conflict])
    with pytest.raises(StackError, match=r"ExistenceCheck\]\n  Bucket: It exists already$"):
        stack(fake).apply(GIVEN)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(None, "CREATE"), (REVIEW, "CREATE"), ("UPDATE_ROLLBACK_COMPLETE", "UPDATE")],
)
def test_missing_stack_is_created_and_existing_one_updated(status: str | None, kind: str) -> None:
    fake = FakeCloudFormation(status, [change("Add", "A")], then=[f"{kind}_COMPLETE"])
    stack(fake).apply(GIVEN)
    assert fake.request["ChangeSetType"] == kind


def test_account_refused_by_cloudfront_gets_advice() -> None:
    reason = (
        "Access denied: Your account must be verified before you can add new CloudFront resources."
    )
    fake = FakeCloudFormation(
        None, [change("Add", "A")], then=["CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE"], reason=reason
    )
    with pytest.raises(StackError, match=r"CloudFront resources\. Request .* --no-edge"):
        stack(fake, "alarms").apply(GIVEN)


def test_operation_in_progress_is_awaited() -> None:
    fake = FakeCloudFormation(
        "CREATE_IN_PROGRESS",
        [change("Add", "A")],
        then=["CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_COMPLETE"],
    )
    stack(fake).apply(GIVEN)
    assert fake.request["ChangeSetType"] == "UPDATE"


@pytest.mark.parametrize("status", sorted(cloudformation.NEVER_CREATED))
def test_failed_creation_is_deleted_first(status: str) -> None:
    fake = FakeCloudFormation(status, [change("Add", "A")], then=["CREATE_COMPLETE"])
    stack(fake).apply(GIVEN)
    assert fake.calls[0] == "delete"
    assert fake.request["ChangeSetType"] == "CREATE"


@pytest.mark.parametrize("status", sorted(cloudformation.STUCK))
def test_stack_that_needs_manual_repair_is_left_unchanged(status: str) -> None:
    fake = FakeCloudFormation(status)
    with pytest.raises(StackError, match=f"is {status}.*run again"):
        stack(fake).apply(GIVEN)
    assert fake.calls == []


def test_failed_change_is_reported_with_the_first_reason() -> None:
    fake = FakeCloudFormation(
        "UPDATE_COMPLETE",
        [change("Modify", "A")],
        then=["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"],
    )
    with pytest.raises(
        StackError, match="is UPDATE_ROLLBACK_COMPLETE: ContentTable: Table is busy"
    ):
        stack(fake).apply(GIVEN)
    assert "  UPDATE_FAILED AWS::DynamoDB::Table ContentTable: Table is busy" in messages


def test_omitted_parameters_keep_their_values() -> None:
    fake = FakeCloudFormation("UPDATE_COMPLETE", [change("Add", "A")], then=["UPDATE_COMPLETE"])
    stack(fake, "alarms").apply({"Stage": "dev", "ApiStage": "dev"})
    parameters = {parameter["ParameterKey"]: parameter for parameter in fake.request["Parameters"]}
    assert parameters["AlarmEmail"] == {"ParameterKey": "AlarmEmail", "UsePreviousValue": True}
    assert parameters["ApiStage"]["ParameterValue"] == "dev"
    assert "Dropped" not in parameters


@pytest.mark.parametrize("keep", [True, False])
def test_retained_resources_that_exist_are_imported(keep: bool) -> None:
    """A failed creation leaves tables, which would make the next creation fail."""
    fake = FakeCloudFormation(None, [change("Import", "Content")], then=["IMPORT_COMPLETE"])
    stack(fake).apply(GIVEN, keep=keep)
    assert fake.request["ImportExistingResources"] is keep


def test_imported_resources_have_literal_names() -> None:
    """CloudFormation user guide, Import AWS resources into a CloudFormation stack automatically."""
    fake = FakeCloudFormation(None, [change("Import", "Content")], then=["CREATE_COMPLETE"])
    stack(fake).apply(GIVEN, keep=True)
    resources = json.loads(fake.request["TemplateBody"])["Resources"]
    names = {
        name: next(text for key, text in resource["Properties"].items() if key.endswith("Name"))
        for name, resource in resources.items()
    }
    assert all(isinstance(name, str) and "$" not in name for name in names.values())
    assert names["ContentTable"] == "workspace-dev-content"
    assert names["Bucket"] == "workspace-dev-1-eu-central-1"
    assert "/aws/lambda/workspace-api-dev-run-jobs" in names.values()


def test_deleting_a_missing_stack_succeeds() -> None:
    fake = FakeCloudFormation()
    assert stack(fake).delete() is False
    assert fake.calls == []


@pytest.mark.parametrize("status", [None, "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_missing_stack_has_no_outputs(status: str | None) -> None:
    assert stack(FakeCloudFormation(status)).outputs() is None
