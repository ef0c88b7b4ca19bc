"""The real application, deployed whole by Chalice on moto's server, from clones of this one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from infra.deploy import deployer
from infra.deploy.deployment import DeployOptions
from infra.deploy.destruction import destroy
from infra.deploy.package import build as package
from infra.deploy.stacks import build as stacks
from tests.infra.conftest import REGION, Aws, connected, moto
from tests.infra.deploy.moto_calls import CALLS
from tests.support.clone import clone
from tests.support.patience import PATIENCE
from tests.support.zips import digests

pytestmark = [pytest.mark.package, pytest.mark.timeout(1800)]
API = "workspace-api-dev"
JOBS, EVENTS, CHAT = f"{API}-run-jobs", f"{API}-run-events", f"{API}-chat-stream"
FUNCTIONS = (API, JOBS, EVENTS, CHAT)


CHALICE = str(Path(sys.executable).with_name("chalice"))


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a clone, and require its success."""
    process = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process


@dataclass
class Deployments:
    """The results of a deployment from one clone, then from another."""

    aws: Aws
    clone: Path
    results: list[dict[str, Any]]
    apis: list[str]
    messages: list[str]
    """The progress messages of the second deployment."""
    fresh: Path
    """A clone that has deployed nothing."""
    zipped: dict[str, str]
    """The digests of the second deployment's zip."""


@pytest.fixture(scope="module")
def deployments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployments]:
    with moto() as address, pytest.MonkeyPatch.context() as patch:
        aws = connected(address, patch)
        one, two, fresh = (clone(tmp_path_factory.mktemp("machine") / "x") for _ in range(3))
        first = aws.deployment(one).deploy(DeployOptions("dev"))
        aws.messages.clear()
        second = aws.deployment(two).deploy(DeployOptions("dev"))
        zipped = digests((package.output_of("dev", two) / "deployment.zip").read_bytes())
        for function in FUNCTIONS:
            assert digests(aws.code_of(function)) == zipped
        yield Deployments(aws, two, [first, second], aws.apis(), list(aws.messages), fresh, zipped)


def test_two_machines_deploy_one_api(deployments: Deployments) -> None:
    first, second = deployments.results
    assert deployments.apis == [first["apiId"]] == [second["apiId"]]
    assert first["release"] != second["release"]
    names = [
        f["FunctionName"] for f in deployments.aws.client("lambda").list_functions()["Functions"]
    ]
    assert sorted(names) == sorted(FUNCTIONS)


def test_a_second_run_replaces_no_resource(deployments: Deployments) -> None:
    deployed = set(stacks.STACKS) - {"mail"}  # the stage sends no e-mail by SES
    assert deployments.messages.count("  No changes.") == len(deployed)
    assert not [
        line for line in deployments.messages if line.startswith(("  Creating", "  Deleting"))
    ]
    assert len([line for line in deployments.messages if line.startswith("  Updating")]) >= 4


def test_functions_have_the_runtime_of_the_zip(deployments: Deployments) -> None:
    for function in FUNCTIONS:
        about = deployments.aws.client("lambda").get_function_configuration(FunctionName=function)
        assert about["Runtime"] == "python{}.{}".format(*package.find_python().version)


def test_readable_resources_contain_no_secret(deployments: Deployments) -> None:
    about = deployments.aws.client("lambda").get_function_configuration(FunctionName=API)
    secret = about["Environment"]["Variables"]["EDGE_SECRET"].encode()
    build = deployments.clone / "build"
    having = {
        path.relative_to(build).parts[:2]
        for folder in (build / "package", build / "project-dev")
        for path in folder.rglob("*")
        if path.is_file() and secret in path.read_bytes()
    }
    assert having == {("project-dev", ".chalice")}
    assert (build / "project-dev" / ".chalice").stat().st_mode & 0o077 == 0


def test_jobs_and_events_are_run_every_minute(deployments: Deployments) -> None:
    client, run = deployments.aws.client("events"), []
    for rule in client.list_rules()["Rules"]:
        if rule.get("ScheduleExpression"):
            assert rule["ScheduleExpression"] == "rate(1 minute)"
            (target,) = client.list_targets_by_rule(Rule=rule["Name"])["Targets"]
            run.append(target["Arn"].rpartition(":")[2])
    assert sorted(run) == sorted((JOBS, EVENTS))


def test_plain_chalice_updates_the_code_of_a_configured_stage(deployments: Deployments) -> None:
    fresh, old_code = deployments.fresh, digests(deployments.aws.code_of(API))
    process = run(fresh, sys.executable, "-m", "infra", "configure", "--stage", "dev")
    assert json.loads(process.stdout)["folder"] == str(fresh / ".chalice" / "dev")
    assert run(fresh, "git", "status", "--porcelain").stdout == ""
    url = run(fresh, CHALICE, "url", "--stage", "dev").stdout.strip()
    (api,) = deployments.aws.apis()
    assert url.startswith(f"https://{api}.execute-api.{REGION}.")
    with (fresh / "chalicelib" / "__init__.py").open("a") as module:
        module.write("# Changed.\n")
    process = run(fresh, CHALICE, "deploy", "--stage", "dev")
    assert f"Rest API URL: {url}" in process.stdout
    assert f"Lambda ARN: arn:aws:lambda:{REGION}:123456789012:function:{API}" in process.stdout
    assert deployments.aws.apis() == [api]
    code = digests(deployments.aws.code_of(API))
    assert code == digests(deployments.aws.code_of(CHAT))
    assert code != old_code
    answers = deployments.aws.client("apigateway").get_gateway_responses(restApiId=api)
    assert "MISSING_AUTHENTICATION_TOKEN" in {answer["responseType"] for answer in answers["items"]}


def test_plain_chalice_packages_the_checked_zip_with_the_stages_settings(
    deployments: Deployments,
) -> None:
    run(deployments.clone, CHALICE, "package", "--stage", "dev", "out")
    out = deployments.clone / "out"
    template = json.loads((out / "sam.json").read_text())
    variables = template["Resources"]["APIHandler"]["Properties"]["Environment"]["Variables"]
    assert variables["PUBLIC_URL"] == deployments.results[1]["baseUrl"]
    checked = deployments.clone / "build" / "package" / "dev" / "deployment.zip"
    assert digests((out / "deployment.zip").read_bytes()) == digests(checked.read_bytes())


def test_equal_code_packaged_for_two_stages_is_the_same_zip(
    built_zip: package.Package,
) -> None:
    command = [sys.executable, "-m", "infra", "package", "--stage"]
    running = {
        stage: subprocess.Popen(
            [*command, stage], cwd=package.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for stage in ("dev", "prod")
    }
    for stage, process in running.items():
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr
        function = json.loads((package.output_of(stage) / "sam.json").read_text())["Resources"][
            "APIHandler"
        ]
        assert function["Properties"]["Environment"]["Variables"]["STAGE"] == stage
        zipped = (package.output_of(stage) / "deployment.zip").read_bytes()
        assert digests(zipped) == digests(built_zip.zip.read_bytes())


def test_a_rollback_puts_a_deleted_application_back(deployments: Deployments) -> None:
    deployment = deployments.aws.deployment(deployments.clone)
    report = destroy(deployment, break_lock=False, with_data=False)
    assert "AWS::DynamoDB::Table workspace-dev-content" in report["kept"]
    assert deployments.aws.apis() == []
    assert deployments.aws.client("lambda").list_functions()["Functions"] == []
    roles = [role["RoleName"] for role in deployments.aws.client("iam").list_roles()["Roles"]]
    assert [name for name in roles if "-backups-" not in name] == []
    assert deployments.aws.client("events").list_rules()["Rules"] == []
    release = deployments.results[1]["release"]
    result = deployment.rollback(release, break_lock=False, python=None)
    assert result["release"] == release
    assert deployments.aws.apis() == [result["apiId"]]
    assert digests(deployments.aws.code_of(API)) == deployments.zipped
    called = set(requests.get(f"{deployments.aws.address}{CALLS}", timeout=PATIENCE).json())
    expected = {f"{s}:{name}" for s, names in deployer.CHALICE.items() for name in names.split()}
    assert called - expected == set(), "add them to CHALICE"
    # No calls: a role is passed and tags are created with a function. Later tags follow a version.
    without_call = {"iam:PassRole", "lambda:TagResource", "lambda:UntagResource"}
    assert sorted(expected - called - without_call) == [], "take them out of CHALICE"
