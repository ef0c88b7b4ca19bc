"""Updates stacks by change sets, so that changes can be reviewed and refused before they happen."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import click
from botocore.exceptions import ClientError

from infra.deploy.aws.account import Account
from infra.deploy.aws.errors import code
from infra.deploy.progress import Progress
from infra.deploy.stacks import build as stacks

POLL_SECONDS = 3.0
REVIEW = "REVIEW_IN_PROGRESS"
"""Status of a stack that has only a change set which was never executed."""
COMPLETE = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"}
COMPARABLE = {*COMPLETE, "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"}
"""Statuses in which CloudFormation can look for drift (user guide, Detect drift on a stack)."""
NEVER_CREATED = {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"}
"""Statuses of a stack whose creation failed. Such a stack can only be deleted."""
STUCK = {
    "UPDATE_ROLLBACK_FAILED": "Continue its rollback in CloudFormation's console",
    "IMPORT_ROLLBACK_FAILED": "Continue its rollback in CloudFormation's console",
    "DELETE_FAILED": "See there what could not be deleted, and delete the stack",
}
NO_CHANGES = ("didn't contain changes", "No updates are to be performed")
"""CloudFormation's messages for an empty change set. It has no error code for this case."""

ADVICE = {
    "must be verified before you can add new CloudFront resources": (
        " Request the verification in AWS's support center (Account and billing), which takes a "
        "day or two, then run again. Until then, --no-edge deploys without CloudFront."
    )
}
"""Advice for reasons of a failure that the operator must resolve with AWS."""


class StackError(click.ClickException):
    """A stack could not be created, changed or deleted, for the reason in the message."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a resource: Add, Modify, Remove, Import or Dynamic.

    ``replacement`` is CloudFormation's value: True, False or Conditional.
    """

    action: str
    kind: str
    name: str
    replacement: str = "False"

    @property
    def loses(self) -> bool:
        """Whether the change may lose the resource's data or remove the resource from the stack."""
        return self.action == "Remove" or self.replacement != "False"

    def __str__(self) -> str:
        """Return the change as a line for the operator."""
        how = {"True": " (replaced)", "Conditional": " (perhaps replaced)"}
        return f"{self.action} {self.kind} {self.name}{how.get(self.replacement, '')}"


@dataclass
class Stack:
    """A stack of a stage."""

    account: Account
    stage: str
    stack: str
    progress: Progress

    def __post_init__(self) -> None:
        """Set the name and region of the stack."""
        self.name = stacks.stack_name(self.stage, stack=self.stack)
        self.region = stacks.region_of(self.stack, region=self.account.region)
        self.client = self.account.client("cloudformation", self.region)
        self._change_set = f"deploy-{uuid4().hex}"

    def outputs(self) -> dict[str, str] | None:
        """Return the outputs of the stack, or None if it does not exist or was never created."""
        description = self._describe()
        if description is None or description["StackStatus"] in {REVIEW, *NEVER_CREATED}:
            return None
        return {
            output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", ())
        }

    def can_be_compared(self) -> bool:
        """Whether the stack exists and is stable, so that CloudFormation can look for drift."""
        description = self._describe()
        return description is not None and description["StackStatus"] in COMPARABLE

    def parameters(self) -> dict[str, str]:
        """Return the stack's current parameters, with secrets masked by asterisks."""
        description = self._describe() or {}
        return {p["ParameterKey"]: p["ParameterValue"] for p in description.get("Parameters", ())}

    def apply(
        self,
        parameters: Mapping[str, str],
        confirm: Callable[[list[Change]], None] = lambda _: None,
        *,
        keep: bool = False,
    ) -> dict[str, str]:
        """Create the stack, or update it to its template; return its outputs.

        ``confirm`` receives the changes first, and raises an error to cancel them. With ``keep``,
        changes that could lose a resource are refused. Existing resources that have a name of the
        template are imported, because they are never deleted.

        Raises:
            StackError: the changes are refused, or CloudFormation failed.
        """
        exists = self._prepare()
        try:
            changes = self._propose(parameters, update=exists, adopt=keep)
            for change in changes or ():
                self.progress.note(str(change))
            if keep:
                self._refuse_losses(changes or [])
            if changes:
                confirm(changes)
        # Ctrl-C counts, too. An abandoned change set would remain, and a new stack would exist
        # only for it.
        except BaseException:
            self._discard_change_set()
            raise
        if changes is not None:
            # CloudFormation keeps events of earlier changes for 90 days, so new events are told
            # apart by id.
            earlier_events = self._event_ids()
            self.client.execute_change_set(StackName=self.name, ChangeSetName=self._change_set)
            status = self._wait_until_stable(earlier_events)
            if status not in COMPLETE:
                msg = f"The stack {self.name} is {status}: {self._failure(earlier_events)}"
                raise StackError(msg)
        else:
            self._discard_change_set()
            self.progress.note("No changes.")
        return self.outputs() or {}

    def delete(self) -> bool:
        """Delete the stack; return whether it existed.

        Raises:
            StackError: a resource of the stack could not be deleted.
        """
        if (description := self._describe()) is None:
            return False
        earlier_events = self._event_ids()
        # A deleted stack can be described only by its id.
        self.client.delete_stack(StackName=description["StackId"])
        status = self._wait_until_stable(earlier_events, description["StackId"])
        if status not in {None, "DELETE_COMPLETE"}:
            msg = f"The stack {self.name} is {status}: {self._failure(earlier_events)}"
            raise StackError(msg)
        return True

    def _refuse_losses(self, changes: list[Change]) -> None:
        if lost := [str(change) for change in changes if change.loses]:
            msg = (
                f"Refused: the stack {self.name} keeps data, and this would {', '.join(lost)}. "
                "Nothing was changed. Bring the template back to what is deployed; what must go is "
                "taken out by hand, after a backup (docs/recovery.md)."
            )
            raise StackError(msg)

    def _describe(self, name: str | None = None) -> dict[str, Any] | None:
        try:
            answer = self.client.describe_stacks(StackName=name or self.name)
        except ClientError as error:
            if code(error) == "ValidationError":  # "Stack with id … does not exist"
                return None
            raise
        stack: dict[str, Any] = answer["Stacks"][0]
        return stack

    def _prepare(self) -> bool:
        """Wait until no other change is in progress; return whether the stack can be updated.

        A stack whose creation failed in an earlier deployment is deleted.
        """
        status = self._wait_until_stable(self._event_ids())
        if status in STUCK:
            msg = f"The stack {self.name} is {status}. {STUCK[status]}, and run again."
            raise StackError(msg)
        if status in NEVER_CREATED:
            self.progress.note(
                f"Its creation had failed ({status}): it is deleted and started again."
            )
            self.delete()
            return False
        return status not in {None, REVIEW, "DELETE_COMPLETE"}

    def _propose(
        self, parameters: Mapping[str, str], *, update: bool, adopt: bool
    ) -> list[Change] | None:
        """Create a change set and return its changes; None if nothing changes.

        The list is empty if only outputs or tags change. Existing parameters that are not given
        keep their values.
        """
        body = stacks.template(self.stack)
        if adopt:
            place = {"AWS::AccountId": self.account.id, "AWS::Region": self.region}
            body = stacks.insert_names(body, {**parameters, **place})
        template_parameters = self._template_parameters(body)
        previous_parameters = (self.parameters().keys() if update else set()) - parameters.keys()
        self.client.create_change_set(
            StackName=self.name,
            ChangeSetName=self._change_set,
            ChangeSetType="UPDATE" if update else "CREATE",
            TemplateBody=body,
            Capabilities=["CAPABILITY_NAMED_IAM"],
            ImportExistingResources=adopt,
            Parameters=[
                *({"ParameterKey": k, "ParameterValue": parameters[k]} for k in parameters),
                *(
                    # CloudFormation would otherwise reset an omitted parameter to the template's
                    # default.
                    {"ParameterKey": k, "UsePreviousValue": True}
                    for k in previous_parameters & template_parameters
                ),
            ],
        )
        while True:
            change_set = self.client.describe_change_set(
                StackName=self.name, ChangeSetName=self._change_set
            )
            if change_set["Status"] == "CREATE_COMPLETE":
                return list(self._changes(change_set))
            if change_set["Status"] == "FAILED":
                reason = change_set.get("StatusReason", "")
                # CloudFormation reports a template without changes as a failure.
                if any(text in reason for text in NO_CHANGES):
                    return None
                msg = f"CloudFormation does not take the stack {self.name}: {reason}"
                raise StackError("\n  ".join([msg, *self._faults()]))
            time.sleep(POLL_SECONDS)

    def _faults(self) -> list[str]:
        """Return the faults that CloudFormation found before it began a change.

        Names in use are such faults. The change set's own reason has no details.
        """
        try:
            events = self.client.describe_events(
                StackName=self.name, ChangeSetName=self._change_set, Filters={"FailedEvents": True}
            )
        except ClientError:
            return []
        return [
            f"{event.get('LogicalResourceId', self.name)}: {event['ValidationStatusReason']}"
            for event in events["OperationEvents"]
            if event.get("ValidationStatusReason")
        ]

    def _template_parameters(self, body: str) -> set[str]:
        """Return the names of a template's parameters."""
        summary = self.client.get_template_summary(TemplateBody=body)
        return {parameter["ParameterKey"] for parameter in summary.get("Parameters", ())}

    def _changes(self, page: dict[str, Any]) -> Iterator[Change]:
        while True:
            for change in page.get("Changes", ()):
                about = change["ResourceChange"]
                yield Change(
                    about["Action"],
                    about["ResourceType"],
                    about["LogicalResourceId"],
                    about.get("Replacement", "False"),
                )
            if "NextToken" not in page:
                return
            page = self.client.describe_change_set(
                StackName=self.name, ChangeSetName=self._change_set, NextToken=page["NextToken"]
            )

    def _discard_change_set(self) -> None:
        """Delete the change set, and the stack if it consists only of that change set."""
        with suppress(ClientError):
            self.client.delete_change_set(StackName=self.name, ChangeSetName=self._change_set)
        if (description := self._describe()) and description["StackStatus"] == REVIEW:
            self.client.delete_stack(StackName=self.name)

    def _wait_until_stable(self, earlier_events: set[str], name: str | None = None) -> str | None:
        """Report the stack's events until the stack is stable, and return its status."""
        seen = set(earlier_events)
        while True:
            description = self._describe(name)
            for event in reversed(self._events(name)):
                if event["EventId"] not in seen:
                    seen.add(event["EventId"])
                    self.progress.note(_event_text(event))
            status = str(description["StackStatus"]) if description else None
            if status is None or status == REVIEW or not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(POLL_SECONDS)

    def _event_ids(self) -> set[str]:
        return {event["EventId"] for event in self._events()}

    def _events(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return recent events, newest first."""
        try:
            answer = self.client.describe_stack_events(StackName=name or self.name)
        except ClientError:
            return []
        events: list[dict[str, Any]] = answer["StackEvents"]
        return events

    def _failure(self, earlier_events: set[str]) -> str:
        """Return the first reason of a failure that is not among ``earlier_events``."""
        for event in reversed(self._events()):
            if event["EventId"] not in earlier_events and event["ResourceStatus"].endswith(
                "_FAILED"
            ):
                reason = event.get("ResourceStatusReason", "no reason was given")
                advice = next((says for text, says in ADVICE.items() if text in reason), "")
                return f"{event['LogicalResourceId']}: {reason}{advice}"
        return "its events in CloudFormation's console say why."


def _event_text(event: dict[str, Any]) -> str:
    reason = event.get("ResourceStatusReason")
    about = f"{event['ResourceStatus']} {event['ResourceType']} {event['LogicalResourceId']}"
    return f"{about}: {reason}" if reason else about
