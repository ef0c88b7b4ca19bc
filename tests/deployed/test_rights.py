"""The rights that functions used in a run, compared with the policies of their roles.

The emulator enforces the policies. Its mapping of requests to rights is its own.
"""

import json
from collections import Counter
from collections.abc import Iterator

from infra.deploy import policies
from infra.deploy.names import function_name
from tests.deployed.conftest import STAGE, Stage, say
from tests.support.aws_calls import Right
from tests.support.policy_check import NEEDS, NOT_OURS, _allows

UNKNOWN = "a test that make test names, once it has passed"


def granted_statements(stage: Stage, function: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a function's role may do: the statement's id, action and resource."""
    name = function_name(STAGE, function=function)
    role = f"{name}-{function}" if function == policies.API else name
    iam = stage.client("iam")
    for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        policy_document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        for statement in policy_document["Statement"]:
            for action in statement["Action"]:
                for resource in statement["Resource"]:
                    yield statement["Sid"], action, resource


def test_every_right_that_was_used_is_in_the_functions_policy(stage: Stage) -> None:
    """Rights that this run did not use are listed with the test that needs them."""
    needs = json.loads(NEEDS.read_text()) if NEEDS.exists() else {}
    assert [right for right in stage.rights() if not right[3]] == [], "the emulator denied these"
    for function in policies.FUNCTIONS:
        name = function_name(STAGE, function=function)
        grants, calls = list(granted_statements(stage, function)), Counter[Right]()
        for (used_by, action, resource, _), times in stage.rights().items():
            if used_by == name:
                calls[Right(action, resource)] += times
        for right in calls:
            assert any(_allows(action, resource, right) for _, action, resource in grants), right
        say(f"{name} made {calls.total()} calls. Of its rights,")
        for sid, action, resource in grants:
            used = sum(calls[right] for right in calls if _allows(action, resource, right))
            origin, key = (
                "Lambda itself" if sid in NOT_OURS else UNKNOWN,
                f"{function} {sid} {action}",
            )
            why = f"used {used} times" if used else f"not used here: {needs.get(key, origin)}"
            say(f"  {action} on {resource}: {why}")
