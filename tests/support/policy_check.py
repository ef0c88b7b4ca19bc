"""Holds the generated policies against what the suite recorded: all that is needed, nothing else.

A right that is needed and not allowed fails any run. One that is allowed and was not needed fails
a whole run that passed: there, every door of every function was gone through.
"""

import json
from collections.abc import Container, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from infra.deploy import policies, stage_config
from tests.support import aws_calls
from tests.support.aws_calls import OBJECT, Gateway, Right, Use

NOT_OURS = {"Logs", "Traces"}
"""Statements for what Lambda itself does in a function's name, by their ids."""
KEY = "aws_calls"

Statements = list[dict[str, Any]]


def generated() -> dict[str, Statements]:
    """Return the statements of each function's policy, in a stage with the suite's own names."""
    facts = stage_config.StageFacts(bucket=aws_calls.BUCKET)
    config = stage_config.generate({**stage_config.load(), "stages": {"test": {}}}, "test", facts)
    return {
        function: policies.policy(config, "test", function, aws_calls.PLACE)["Statement"]
        for function in policies.FUNCTIONS
    }


def faults(
    functions: Mapping[str, Statements], uses: Mapping[Use, str], *, whole: bool
) -> Iterator[str]:
    """Yield what is wrong with functions' policies, a sentence each.

    ``whole`` says that the uses are all there are.
    """
    for function, statements in functions.items():
        needed = dict(_needed(function, uses))
        for right, test in needed.items():
            if not any(_allows(*grant, right) for grant in _grants(statements)):
                yield (
                    f"{function} needs {right.action} on {right.resource}, which its policy does "
                    f"not allow. It was first needed in {test}."
                )
        if whole:
            for kind in JOB_HANDLERS if function == aws_calls.JOBS else ():
                if Use(function, Gateway(aws_calls.KIND, kind)) not in uses:
                    yield f"{function} did no job of the kind {kind}. Test what it needs for that."
            for action, resource in _grants(statements, besides=NOT_OURS):
                if not any(_allows(action, resource, right) for right in needed):
                    yield (
                        f"{function} may {action} on {resource}, which no test needed. Take it "
                        "out of infra/deploy/policies.py, or test what needs it."
                    )


def _needed(function: str, uses: Mapping[Use, str]) -> Iterator[tuple[Right, str]]:
    """Yield a function's needs, those of the gateways that it asks included."""
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
    """Yield the actions that statements allow, each with what it may work on.

    Ours know no Deny, and no condition but whose a resource is.
    """
    for statement in statements:
        assert statement["Effect"] == "Allow"
        for condition in statement.get("Condition", {}).values():
            assert condition == {"aws:ResourceAccount": aws_calls.PLACE.account}
        if statement["Sid"] not in besides:
            for action in statement["Action"]:
                for resource in statement["Resource"]:
                    yield action, resource


def _allows(action: str, resource: str, right: Right) -> bool:
    """Whether a grant covers a right; ``*`` stands for anything (IAM user guide, Resource)."""
    return fnmatchcase(right.action, action) and fnmatchcase(right.resource, resource)


class PolicyCheck:
    """The plugin of pytest: gathers what every process recorded, and judges at the end."""

    def __init__(self) -> None:
        self._uses: dict[Use, str] = {}
        self._faults: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of xdist recorded, which has ended."""
        for who, kind, need, test in json.loads(getattr(node, "workeroutput", {}).get(KEY, "[]")):
            made = {"Right": Right, "Gateway": Gateway}[kind](*need)
            self._uses.setdefault(Use(who, made), test)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Hand over what this worker recorded; judge, where there is nobody to hand it to."""
        config, recorded = session.config, aws_calls.USES
        if hasattr(config, "workeroutput"):
            told = [
                [who, type(need).__name__, need, test] for (who, need), test in recorded.items()
            ]
            config.workeroutput[KEY] = json.dumps(told)
            return
        passed = exitstatus == pytest.ExitCode.OK
        uses = self._uses | recorded
        self._faults = [*faults(generated(), uses, whole=passed and is_whole(config))]
        if self._faults and passed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what is wrong; nothing if all is well."""
        if self._faults:
            terminalreporter.section("IAM policies", red=True, bold=True)
            for fault in self._faults:
                terminalreporter.line(fault)


def is_whole(config: pytest.Config) -> bool:
    """Whether a run has all the tests of ``make test``."""
    option, usual = config.option, config.getini("addopts")
    return (
        config.args_source is config.ArgsSource.TESTPATHS
        and option.markexpr == usual[usual.index("-m") + 1]
        and not any((option.keyword, option.deselect, option.ignore, option.ignore_glob))
    )
