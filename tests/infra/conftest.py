"""AWS as moto's server provides it in a process of its own, and the environment of deployments."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests

from infra.deploy import policies, stage_config
from infra.deploy.aws import chalice_state
from infra.deploy.aws.account import Account, sign_in
from infra.deploy.deployment import Deployment
from infra.deploy.names import APP, function_name
from infra.deploy.package import build as package
from infra.deploy.package.build import UNKNOWN
from infra.deploy.progress import Progress
from infra.deploy.stacks import build as stacks
from infra.deploy.stage_config import StageFacts
from infra.operator import admin as command_line
from tests.factories.operator import Operator
from tests.support.patience import PATIENCE

REGION = "eu-central-1"
STAND_INS = {
    "edge-global": {
        "WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/ours/1",
        "ChallengeFunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:challenge:1",
    },
    "edge": {
        "BaseUrl": "https://d1.cloudfront.example",
        "DistributionId": "D1",
        "DistributionDomain": "d1.cloudfront.example",
        "SitesDistributionDomain": "d2.cloudfront.example",
        "SiteHostsSetting": "cloudfront:D2/cg_1/d2.cloudfront.example",
    },
    "chat": {"ChatFunctionUrl": "https://chat.lambda-url.eu-central-1.on.aws/"},
}
"""Stacks that moto makes instead of the real ones.

moto's CloudFormation has no CloudFront functions, function URLs or web ACLs. The replacements have
the parameters of the real template, one Systems Manager parameter as their only resource, and
outputs like AWS's. cfn-lint checks the real templates.
"""


@contextmanager
def moto(**environment: str) -> Iterator[str]:
    """Run the server, and yield its URL."""
    code = "from tests.infra.deploy import moto_aws; moto_aws.main()"
    with subprocess.Popen(
        # Not as __main__, because moto orders its models by their modules' names.
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=package.ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


@pytest.fixture(scope="session")
def _moto() -> Iterator[str]:
    with moto() as address:
        yield address


@cache
def stand_in(stack: str) -> str:
    """Return the template that moto makes instead of a stack that it does not support."""
    from cfnlint.decode import cfn_yaml

    real: dict[str, Any] = cfn_yaml.loads(template(stack))
    outputs = {name: {"Value": value} for name, value in STAND_INS[stack].items()}
    if stack == "edge":
        outputs["EdgeSecretVersion"] = {"Value": {"Ref": "EdgeSecretVersion"}}
        outputs["BaseUrl"]["Value"] = {
            "Fn::If": ["HasDomain", {"Fn::Sub": "https://${Domain}"}, STAND_INS[stack]["BaseUrl"]]
        }
    domain = {"Ref": "Domain"} if "Domain" in real["Parameters"] else ""
    parameter = {
        "Type": "AWS::SSM::Parameter",
        "Properties": {
            "Type": "String",
            "Name": {"Fn::Sub": f"/stand-in/${{Stage}}/{stack}"},
            "Value": {"Fn::Sub": "".join(f"${{{name}}};" for name in real["Parameters"])},
        },
    }
    return json.dumps(
        {
            "Parameters": {
                name: {key: about[key] for key in ("Type", "Default") if key in about}
                for name, about in real["Parameters"].items()
            },
            "Conditions": {"HasDomain": {"Fn::Not": [{"Fn::Equals": [domain, ""]}]}},
            "Resources": {"Given": parameter},
            "Outputs": outputs,
        }
    )


template = stacks.template


@dataclass
class Aws:
    """An AWS account on moto, empty at first."""

    address: str
    account: Account
    messages: list[str] = field(default_factory=list)

    def client(self, service: str, region: str = REGION) -> Any:
        return self.account.client(service, region)

    def deployment(self, root: Path = package.ROOT, stage: str = "dev") -> Deployment:
        """Return a stage's deployment. Its progress messages are in ``said``."""
        return Deployment(self.account, stage, Progress(self.messages.append), root)

    def code_of(self, function: str) -> bytes:
        """Return the zip that a function was created from."""
        return requests.get(
            f"{self.address}/moto-code/{REGION}/{function}", timeout=PATIENCE
        ).content

    def apis(self) -> list[str]:
        """Return the ids of all REST APIs."""
        return [api["id"] for api in self.client("apigateway").get_rest_apis()["items"]]

    def replacement_values(self, stack: str, stage: str = "dev") -> str:
        """Return the values of a replacement's parameters, in the template's order."""
        region = stacks.region_of(stack, region=REGION)
        answer = self.client("ssm", region).get_parameter(Name=f"/stand-in/{stage}/{stack}")
        return str(answer["Parameter"]["Value"])


@pytest.fixture
def aws(_moto: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """An empty account with support for all stacks."""
    requests.post(f"{_moto}/moto-api/reset", timeout=PATIENCE)
    return connected(_moto, monkeypatch)


def connected(address: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """Direct all AWS clients, also in other processes, to a server of moto's."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setattr(
        stacks, "template", lambda name: stand_in(name) if name in STAND_INS else template(name)
    )
    return Aws(address, sign_in())


class QuickChalice:
    """Replaces Chalice and its packager: makes the same AWS calls for a one-line program.

    test_deploy_whole.py runs Chalice itself with the real application.
    """

    def __init__(self, aws: Aws) -> None:
        self.aws = aws
        self.dies_after: str | None = None
        """The kind of resource after whose creation the process is killed."""

    def build(
        self, stage: str, out: Path, python: Any, root: Path, facts: StageFacts = UNKNOWN
    ) -> package.Package:
        builder, project = self.prepare(stage, python, root, facts)
        program = (root / "app.py").read_text()
        out.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(out / "deployment.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo("app.py"), program)
        cached = project / ".chalice" / "deployments" / f"{hash_of(program)}-python3.13.zip"
        cached.parent.mkdir()
        shutil.copy(out / "deployment.zip", cached)
        return package.Package(out / "deployment.zip", project, builder)

    def prepare(
        self, stage: str, python: Any = None, root: Path = package.ROOT, facts: StageFacts = UNKNOWN
    ) -> tuple[package.Python, Path]:
        project = package.project_of(stage, root)
        shutil.rmtree(project, ignore_errors=True)
        (project / ".chalice").mkdir(parents=True)
        shutil.copy(root / "app.py", project)
        stage_config.write(project / ".chalice", stage, facts, policies.Target(), root)
        return package.Python(sys.executable, (3, 13)), project

    def run(
        self, python: Any, project: Path, command: str, *arguments: str, region: str | None = None
    ) -> str:
        stage = arguments[1]
        old_resources = {
            resource["name"]: resource for resource in chalice_state.read(project, stage)
        }
        if command == "delete":
            for resource in reversed(old_resources.values()):
                self._delete(resource)
            return "Deleting"
        stage_settings = stage_config.load(project)["stages"][stage]
        program = (project / "app.py").read_text()
        zipped = project / ".chalice" / "deployments" / f"{hash_of(program)}-python3.13.zip"
        new_resources: list[dict[str, str]] = []
        for name in policies.FUNCTIONS:
            new_resources += self._function(
                stage, name, stage_settings, zipped.read_bytes(), project, old_resources
            )
        new_resources.append(self._api(stage, old_resources.get("rest_api")))
        chalice_state.write(project, stage, new_resources)
        return "Creating\nUpdating"

    def _function(
        self,
        stage: str,
        name: str,
        stage_settings: Any,
        code: bytes,
        project: Path,
        old_resource: Any,
    ) -> list[dict[str, str]]:
        full = function_name(stage, function=name)
        role = f"{full}-api_handler" if name == policies.API else full
        iam, functions = self.aws.client("iam"), self.aws.client("lambda")
        with suppress(iam.exceptions.EntityAlreadyExistsException):
            trust = {"Statement": [{"Principal": {"Service": "lambda.amazonaws.com"}}]}
            iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(trust))
        policy = (project / ".chalice" / policies.file_name(name)).read_text()
        iam.put_role_policy(RoleName=role, PolicyName=role, PolicyDocument=policy)
        arn = iam.get_role(RoleName=role)["Role"]["Arn"]
        self._die("iam_role")
        settings = stage_settings["lambda_functions"][name].get("environment_variables", {})
        environment = {"Variables": stage_settings["environment_variables"] | settings}
        try:
            functions.update_function_code(FunctionName=full, ZipFile=code)
            functions.update_function_configuration(FunctionName=full, Environment=environment)
        except functions.exceptions.ResourceNotFoundException:
            functions.create_function(
                FunctionName=full,
                Runtime="python3.13",
                Role=arn,
                Handler="app.app",
                Code={"ZipFile": code},
                Environment=environment,
            )
        function = functions.get_function(FunctionName=full)["Configuration"]["FunctionArn"]
        runs = stage_settings["lambda_functions"][name].get("reserved_concurrency")
        if runs is None:
            functions.delete_function_concurrency(FunctionName=full)
        else:
            functions.put_function_concurrency(FunctionName=full, ReservedConcurrentExecutions=runs)
        self._die("lambda_function")
        return [
            {
                "name": f"{name}_role",
                "resource_type": "iam_role",
                "role_arn": arn,
                "role_name": role,
            },
            {"name": name, "resource_type": "lambda_function", "lambda_arn": function},
        ]

    def _api(self, stage: str, old_resource: dict[str, str] | None) -> dict[str, str]:
        client = self.aws.client("apigateway")
        api = (
            old_resource["rest_api_id"] if old_resource else client.create_rest_api(name=APP)["id"]
        )
        (root,) = client.get_resources(restApiId=api)["items"]
        where = {"restApiId": api, "resourceId": root["id"], "httpMethod": "GET"}
        if not old_resource:
            client.put_method(**where, authorizationType="NONE")
            function = function_name(stage, function=policies.API)
            uri = f"arn:aws:apigateway:x:lambda:path/functions/a:function:{function}/invocations"
            client.put_integration(**where, type="AWS_PROXY", integrationHttpMethod="POST", uri=uri)
        self._die("rest_api")
        client.create_deployment(restApiId=api, stageName=stage)
        url = f"https://{api}.execute-api.{REGION}.amazonaws.com/{stage}/"
        return {
            "name": "rest_api",
            "resource_type": "rest_api",
            "rest_api_id": api,
            "rest_api_url": url,
        }

    def _delete(self, resource: dict[str, str]) -> None:
        match resource["resource_type"]:
            case "rest_api":
                self.aws.client("apigateway").delete_rest_api(restApiId=resource["rest_api_id"])
            case "lambda_function":
                self.aws.client("lambda").delete_function(FunctionName=resource["lambda_arn"])
            case "iam_role":
                role = resource["role_name"]
                self.aws.client("iam").delete_role_policy(RoleName=role, PolicyName=role)
                self.aws.client("iam").delete_role(RoleName=role)
        self._die(f"deleted {resource['resource_type']}")

    def _die(self, kind: str) -> None:
        if self.dies_after == kind:
            raise Killed


class Killed(BaseException):
    """Replaces a signal that ends the process immediately."""


def hash_of(program: str) -> str:
    return hashlib.md5(program.encode(), usedforsecurity=False).hexdigest()


@pytest.fixture
def chalice(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> QuickChalice:
    """Deployments that take seconds, in this process."""
    return quick_chalice(aws, monkeypatch)


def quick_chalice(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> QuickChalice:
    quick = QuickChalice(aws)
    monkeypatch.setattr(package, "build", quick.build)
    monkeypatch.setattr(package, "prepare", quick.prepare)
    monkeypatch.setattr(package, "chalice", quick.run)
    monkeypatch.setattr(package, "environment", lambda python, *_, **__: python)
    python = package.Python(sys.executable, (3, 13))
    monkeypatch.setattr(package, "find_python", lambda *_: python)
    return quick


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with a one-line program and this project's Chalice configuration."""
    return new_checkout(tmp_path / "checkout")


def new_checkout(root: Path) -> Path:
    (root / ".chalice").mkdir(parents=True)
    shutil.copy(package.ROOT / ".chalice" / "config.json", root / ".chalice")
    (root / "app.py").write_text("app = 1\n")
    (root / "requirements.txt").write_text("chalice==1.34.0\n")
    shutil.copy(package.ROOT / ".gitignore", root)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    commit(root)
    return root


def commit(root: Path, program: str | None = None) -> str:
    """Commit a checkout, with another program if one is given. Return the commit."""
    if program is not None:
        (root / "app.py").write_text(program)
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    git = ("git", "-C", str(root), *who)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Change"], check=True)
    process = subprocess.run(
        [*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True
    )
    return process.stdout.strip()


def run_concurrently(*calls: Callable[[], Any]) -> list[Any]:
    """Make calls concurrently, and return the result or the exception of each."""
    outcomes: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index: int, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            outcomes[index] = call()
        except Exception as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=call) for call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.fixture
def operator(database: None, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """The operator's command line, connected to the test database."""

    def connect(stage: str | None, **options: str | None) -> None:
        assert stage is None
        assert not any(options.values())

    monkeypatch.setattr(command_line, "connect", connect)
    return Operator()


@pytest.fixture
def workspace(operator: Operator) -> str:
    """The id of a workspace on the Business plan."""
    operator.create_account("ann@example.com")
    created = operator.run("create-workspace", "--owner", "ann@example.com", "--name", "Пекарня")
    workspace_id: str = created["workspaceId"]
    return workspace_id


@pytest.fixture
def no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No database to connect to."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for name in ("AWS_ENDPOINT_URL_DYNAMODB", "DYNAMODB_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
