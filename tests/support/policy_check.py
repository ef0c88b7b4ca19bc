"""Compares the generated IAM policies with the rights that the suite used: neither more nor less.

A right that is used but not allowed fails any run. A right that is allowed but not used fails a
complete run that otherwise passed, because all entry points of all functions were used.
"""

import json
from collections.abc import Container, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS, JobKind
from chalicelib.gateways.site_hosts import STAGE_TAG
from infra.deploy import policies, stage_config
from tests.support import aws_calls
from tests.support.aws_calls import OBJECT, Gateway, Right, Use

NOT_OURS = {"Logs", "Messages", "Traces"}
"""Ids of statements for actions that Lambda itself performs for a function."""
KEY = "aws_calls"
NEEDS = Path(__file__).parents[2] / "build" / "rights.json"
"""The test that first needed each right, in the last run of all tests that passed."""
CONDITIONS = (
    {"aws:ResourceAccount": aws_calls.PLACE.account},
    {f"aws:RequestTag/{STAGE_TAG}": "test"},
    {f"aws:ResourceTag/{STAGE_TAG}": "test"},
    {"dynamodb:LeadingKeys": ["CLAIM#domain#*"]},
    {"dynamodb:LeadingKeys": ["CLAIM#*", "ACCOUNT#*#WORKSPACES", "DIRECTORY#*", "W#*#MEMBER"]},
    {"dynamodb:LeadingKeys": ["DIRECTORY#*"]},
)

Statements = list[dict[str, Any]]


def generated() -> dict[str, Statements]:
    """Return the statements of each function's policy, in a stage with the suite's names."""
    keys = {
        "LLM_API_KEY_SECRET": aws_calls.MODEL_KEY,
        "MASTER_KEY_SECRET": aws_calls.MASTER_KEY,
        "TELEGRAM_BOT_TOKEN_SECRET": aws_calls.TELEGRAM_TOKEN,
        "SMS": "smsru",
        "SMS_SENDER": "Workspace",
        "SMS_KEY_SECRET": aws_calls.SMS_KEY,
        "MAIL": "ses",
        "MAIL_FROM": "mail@notify.example.com",
        "MAIL_SES_CONFIGURATION_SET": "events",
    }
    facts = stage_config.StageFacts(bucket=aws_calls.BUCKET, variables=keys)
    config = stage_config.generate({**stage_config.load(), "stages": {"test": {}}}, "test", facts)
    return {
        function: policies.policy(config, "test", function=function, target=aws_calls.PLACE)[
            "Statement"
        ]
        for function in policies.FUNCTIONS
    }


def faults(
    functions: Mapping[str, Statements], uses: Mapping[Use, str], *, is_complete: bool
) -> Iterator[str]:
    """Yield a sentence for each error in the functions' policies.

    ``whole`` means that the recorded uses are complete.
    """
    for function, statements in functions.items():
        needed = dict(_needed(function, uses))
        for right, test in needed.items():
            if not any(_allows(*grant, right) for grant in _grants(statements)):
                yield (
                    f"{function} needs {right.action} on {right.resource}, which its policy does "
                    f"not allow. It was first needed in {test}."
                )
        if is_complete:
            for kind in JOB_HANDLERS:
                assert isinstance(kind, JobKind), kind
                if (
                    aws_calls.RUNNERS[kind.queue] == function
                    and Use(function, Gateway(aws_calls.KIND, kind)) not in uses
                ):
                    yield f"{function} did no job of the kind {kind}. Test what it needs for that."
            for action, resource in _grants(statements, besides=NOT_OURS):
                if not any(_allows(action, resource, right) for right in needed):
                    yield (
                        f"{function} may {action} on {resource}, which no test needed. Take it "
                        "out of infra/deploy/policies.py, or test what needs it."
                    )


def first_needs(functions: Mapping[str, Statements], uses: Mapping[Use, str]) -> dict[str, str]:
    """Return the test that first needed each action of a statement, by function, id and action."""
    return {
        f"{function} {statement['Sid']} {action}": test
        for function, statements in functions.items()
        for right, test in _needed(function, uses)
        for statement in statements
        for action, resource in _grants([statement])
        if _allows(action, resource, right)
    }


def _needed(function: str, uses: Mapping[Use, str]) -> Iterator[tuple[Right, str]]:
    """Yield the rights that a function and its gateways need."""
    for (who, need), test in uses.items():
        if who != function:
            continue
        if isinstance(need, Right):
            yield need, test
        else:
            for right, _ in _needed(need.name, uses):
                yield right._replace(resource=right.resource.replace(OBJECT, need.key)), test


def _grants(
    statements: Statements, besides: Container[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Yield the allowed actions, each with its resources.

    The policies have no Deny, and no conditions except on the owner of a resource, on the stage's
    tag and on the keys of claims.
    """
    for statement in statements:
        assert statement["Effect"] == "Allow"
        for condition in statement.get("Condition", {}).values():
            assert condition in CONDITIONS
        if statement["Sid"] not in besides:
            for action in statement["Action"]:
                for resource in statement["Resource"]:
                    yield action, resource


def _allows(action: str, resource: str, right: Right) -> bool:
    """Whether a grant covers a right. ``*`` matches any string (IAM user guide, Resource)."""
    return fnmatchcase(right.action, action) and fnmatchcase(right.resource, resource)


class PolicyCheck:
    """A pytest plugin that collects the records of all processes, and checks them at the end."""

    def __init__(self) -> None:
        self._uses: dict[Use, str] = {}
        self._faults: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the records of a worker of xdist that has ended."""
        for who, kind, need, test in json.loads(getattr(node, "workeroutput", {}).get(KEY, "[]")):
            use = {"Right": Right, "Gateway": Gateway}[kind](*need)
            self._uses.setdefault(Use(who, use), test)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Send this worker's records to the main process, or check them in the main process."""
        config, recorded = session.config, aws_calls.USES
        if hasattr(config, "workeroutput"):
            lines = [
                [who, type(need).__name__, need, test] for (who, need), test in recorded.items()
            ]
            config.workeroutput[KEY] = json.dumps(lines)
            return
        passed = exitstatus == pytest.ExitCode.OK
        uses = self._uses | recorded
        functions, is_complete = generated(), passed and is_whole(config)
        self._faults = [*faults(functions, uses, is_complete=is_complete)]
        if is_complete and not self._faults:
            NEEDS.parent.mkdir(exist_ok=True)
            NEEDS.write_text(json.dumps(first_needs(functions, uses), indent=2))
        if self._faults and passed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the errors, if there are any."""
        if self._faults:
            terminalreporter.section("IAM policies", red=True, bold=True)
            for fault in self._faults:
                terminalreporter.line(fault)


def is_whole(config: pytest.Config) -> bool:
    """Whether a run includes all tests of ``make test``."""
    option, usual = config.option, config.getini("addopts")
    return (
        config.args_source is config.ArgsSource.TESTPATHS
        and option.markexpr == usual[usual.index("-m") + 1]
        and not any((option.keyword, option.deselect, option.ignore, option.ignore_glob))
    )
