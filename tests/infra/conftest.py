"""AWS as moto's server has it, in a process of its own, and what a deployment of ours needs there."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from infra import package, stacks
from infra.deploy.account import Account, sign_in
from infra.deploy.deployment import Deployment
from infra.deploy.progress import Progress

REGION = "eu-central-1"
STAND_INS = {
    "edge-global": {"WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/ours/1"},
    "edge": {
        "BaseUrl": "https://d1.cloudfront.example",
        "DistributionId": "D1",
        "ChatFunctionUrl": "https://chat.lambda-url.eu-central-1.on.aws/",
    },
}
"""moto makes neither CloudFront functions nor function URLs nor web ACLs of CloudFormation. In their
stacks' place it makes these: the parameters of the real template, no resources but a parameter of
the Systems Manager, and outputs as AWS would give them. cfn-lint reads the real ones."""


@contextmanager
def moto(**environment: str) -> Iterator[str]:
    """Run the server; yields its address."""
    with subprocess.Popen(
        # Not as __main__: moto sorts its models by their modules' names.
        [sys.executable, "-W", "ignore", "-c", "from tests.infra import moto_aws as m; m.main()"],
        cwd=package.ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        server.kill()


@pytest.fixture(scope="session")
def _moto() -> Iterator[str]:
    with moto() as address:
        yield address


def stand_in(stack: str) -> str:
    """Return the template that moto makes in place of a stack that it cannot make."""
    from cfnlint.decode import cfn_yaml

    real: dict[str, Any] = cfn_yaml.loads(template(stack))
    outputs = {name: {"Value": value} for name, value in STAND_INS[stack].items()}
    if stack == "edge":
        outputs["BaseUrl"]["Value"] = {
            "Fn::If": ["HasDomain", {"Fn::Sub": "https://${Domain}"}, STAND_INS[stack]["BaseUrl"]]
        }
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
            "Conditions": {"HasDomain": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Domain"}, ""]}]}},
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
    said: list[str] = field(default_factory=list)

    def client(self, service: str, region: str = REGION) -> Any:
        return self.account.client(service, region)

    def deployment(self, root: Path = package.ROOT, stage: str = "dev") -> Deployment:
        """Return a stage's deployment, whose progress is in ``said``."""
        return Deployment(self.account, stage, Progress(self.said.append), root)

    def code_of(self, function: str) -> bytes:
        """Return the zip that a function was made of."""
        return requests.get(f"{self.address}/moto-code/{REGION}/{function}", timeout=10).content

    def apis(self) -> list[str]:
        """Return the ids of all REST APIs."""
        return [api["id"] for api in self.client("apigateway").get_rest_apis()["items"]]

    def given(self, stack: str, stage: str = "dev") -> str:
        """Return the values of the parameters that a stand-in was given, in the template's order."""
        region = stacks.region_of(stack, REGION)
        answer = self.client("ssm", region).get_parameter(Name=f"/stand-in/{stage}/{stack}")
        return str(answer["Parameter"]["Value"])


@pytest.fixture
def aws(_moto: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """An empty account, and the stacks that moto can make."""
    requests.post(f"{_moto}/moto-api/reset", timeout=10)
    return connected(_moto, monkeypatch)


def connected(address: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """Lead everything that talks to AWS, processes included, to a server of moto's."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setattr(
        stacks, "template", lambda name: stand_in(name) if name in STAND_INS else template(name)
    )
    return Aws(address, sign_in())


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Make calls at the same time; return what each returned or raised."""
    outcomes: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index: int, call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            outcomes[index] = call()
        except Exception as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
