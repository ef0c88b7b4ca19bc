"""The resources that Chalice has deployed for a stage, found on AWS by their names.

Chalice records them in ``deployed/<stage>.json`` next to the checkout, at the end of a deployment.
If a deployment is killed, or the next one runs on another machine, Chalice does not find that file.
It would then create a second REST API or leave functions behind. So before every run of Chalice,
the file is written again from the existing resources.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from botocore.exceptions import ClientError

from infra.deploy.aws import gateway
from infra.deploy.aws.account import Account
from infra.deploy.aws.errors import code
from infra.deploy.names import APP, function_name
from infra.deploy.policies import API, FUNCTIONS

ABSENT = {"NoSuchEntity", "ResourceNotFoundException"}

Resource = dict[str, str]


def file_of(project: Path, stage: str) -> Path:
    """Return the path of Chalice's file in a project."""
    return project / ".chalice" / "deployed" / f"{stage}.json"


def write(project: Path, stage: str, resources: list[Resource]) -> None:
    """Write these resources, in this order, as the ones that Chalice has deployed."""
    file = file_of(project, stage)
    file.parent.mkdir(parents=True, exist_ok=True)
    state = {"resources": resources, "schema_version": "2.0", "backend": "api"}
    file.write_text(json.dumps(state, indent=2))


def read(project: Path, stage: str) -> list[Resource]:
    """Return the resources of Chalice's file."""
    resources: list[Resource] = json.loads(file_of(project, stage).read_text())["resources"]
    return resources


def value(resources: list[Resource], name: str, *, field: str) -> str:
    """Return a field of the resource that has this name in Chalice's file."""
    return next(resource[field] for resource in resources if resource["name"] == name)


def functions(resources: list[Resource]) -> list[str]:
    """Return the ARNs of the functions."""
    return [resource["lambda_arn"] for resource in resources if "lambda_arn" in resource]


def existing(account: Account, stage: str) -> list[Resource]:
    """Return the resources of a stage that exist, in Chalice's format and order.

    Functions that the code no longer has come first: Chalice deletes from the end, and roles after
    their functions.
    """
    names = [name for name in _functions(account, stage) if name not in FUNCTIONS]
    candidates = [
        resource
        for name in (*names, *FUNCTIONS)
        for resource in _created_resources(account, stage, name=name)
    ]
    return [candidate for candidate in candidates if _exists(account, candidate)] + _rest_api(
        account, stage
    )


def _functions(account: Account, stage: str) -> list[str]:
    """Return Chalice's names of the stage's functions besides the one of all routes."""
    pages = account.client("lambda").get_paginator("list_functions").paginate()
    names = [function["FunctionName"] for page in pages for function in page["Functions"]]
    ours = f"{function_name(stage, function=API)}-"
    return [name.removeprefix(ours) for name in names if name.startswith(ours)]


def _created_resources(account: Account, stage: str, *, name: str) -> Iterator[Resource]:
    """Yield the resources that Chalice creates for a function, by the names that it assigns."""
    partition = account.user.split(":")[1]
    full = function_name(stage, function=name)
    # Chalice names a role after its function. For the function of all routes, it appends that
    # function's name again.
    role = f"{full}-{API}" if name == API else full
    yield {
        "name": f"{name}_role",
        "resource_type": "iam_role",
        "role_arn": f"arn:{partition}:iam::{account.id}:role/{role}",
        "role_name": role,
    }
    yield {
        "name": name,
        "resource_type": "lambda_function",
        "lambda_arn": f"arn:{partition}:lambda:{account.region}:{account.id}:function:{full}",
    }
    yield {
        "name": f"{name}-event",
        "resource_type": "cloudwatch_event",
        "rule_name": f"{full}-event",
    }


def _exists(account: Account, resource: Resource) -> bool:
    try:
        match resource["resource_type"]:
            case "iam_role":
                account.client("iam").get_role(RoleName=resource["role_name"])
            case "lambda_function":
                function = resource["lambda_arn"]
                account.client("lambda").get_function_configuration(FunctionName=function)
            case "cloudwatch_event":
                account.client("events").describe_rule(Name=resource["rule_name"])
    except ClientError as error:
        if code(error) in ABSENT:
            return False
        raise
    return True


def _rest_api(account: Account, stage: str) -> list[Resource]:
    """Return the stage's REST API, whose id AWS chooses."""
    api = gateway.find(
        account.client("apigateway"), APP, function=function_name(stage, function=API)
    )
    if api is None:
        return []
    place = f"https://{api}.execute-api.{account.region}.amazonaws.com/{stage}/"
    return [
        {
            "name": "rest_api",
            "resource_type": "rest_api",
            "rest_api_id": api,
            "rest_api_url": place,
        }
    ]
