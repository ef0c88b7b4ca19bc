"""The resources that Chalice has deployed for a stage: its record, checked against AWS.

Chalice writes ``deployed/<stage>.json`` next to the checkout at the end of a deployment. If a
deployment is killed, or the next one runs on another machine, Chalice does not find that file. It
would then create a second REST API or leave functions behind. The file is therefore kept in the
bucket, and every resource with a known name is looked up.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from botocore.exceptions import ClientError

from infra.deploy.aws import gateway
from infra.deploy.aws.account import Account
from infra.deploy.aws.errors import code
from infra.deploy.aws.store import Store
from infra.deploy.names import APP, function_name
from infra.deploy.policies import API, FUNCTIONS
from infra.deploy.stacks.data import STATE

KEY = f"{STATE}deployed.json"
ABSENT = {"NoSuchEntity", "NotFoundException", "ResourceNotFoundException"}

Resource = dict[str, str]


def file_of(project: Path, stage: str) -> Path:
    """Return the path of Chalice's file in a copy of the project."""
    return project / ".chalice" / "deployed" / f"{stage}.json"


def put_into(project: Path, stage: str, resources: list[Resource]) -> None:
    """Write these resources, in this order, as the ones that Chalice has deployed."""
    file = file_of(project, stage)
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = {"resources": resources, "schema_version": "2.0", "backend": "api"}
    file.write_text(json.dumps(whole, indent=2))


def save(store: Store, project: Path, stage: str) -> list[Resource]:
    """Store the file that Chalice has written in the bucket; return its resources."""
    whole = json.loads(file_of(project, stage).read_text())
    store.put_json(KEY, whole)
    resources: list[Resource] = whole["resources"]
    return resources


def value(resources: list[Resource], name: str, field: str) -> str:
    """Return a field of the resource that has this name in Chalice's file."""
    return next(each[field] for each in resources if each["name"] == name)


def existing(account: Account, store: Store, stage: str) -> list[Resource]:
    """Return the resources of a stage that exist, in Chalice's format and order."""
    remembered: list[Resource] = (store.get_json(KEY) or {}).get("resources", [])
    expected = list(_expected(account, stage))
    known = {each["name"] for each in expected}
    # Resources that the code no longer has come first: Chalice deletes from the end, and roles
    # after their functions.
    candidates = [each for each in remembered if each["name"] not in known] + expected
    apis = [each for each in candidates if each["resource_type"] == "rest_api"]
    found = [each for each in candidates if each not in apis and _exists(account, each)]
    return found + _rest_api(account, stage, remembered)


def _expected(account: Account, stage: str) -> Iterator[Resource]:
    """Yield the resources that Chalice creates for the functions, without the REST API.

    AWS chooses the id of the REST API.
    """
    partition = account.user.split(":")[1]
    for name in FUNCTIONS:
        full = function_name(stage, name)
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


def _rest_api(account: Account, stage: str, remembered: list[Resource]) -> list[Resource]:
    client = account.client("apigateway")
    for each in remembered:
        if each["resource_type"] == "rest_api":
            with suppress(client.exceptions.NotFoundException):
                client.get_rest_api(restApiId=each["rest_api_id"])
                return [each]
    found = gateway.find(client, APP, function_name(stage, API))
    if found is None:
        return []
    place = f"https://{found}.execute-api.{account.region}.amazonaws.com/{stage}/"
    return [
        {
            "name": "rest_api",
            "resource_type": "rest_api",
            "rest_api_id": found,
            "rest_api_url": place,
        }
    ]
