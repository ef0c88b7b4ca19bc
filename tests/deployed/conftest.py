"""Fixtures with a clone of the checkout that is deployed to an emulator of AWS.

The clone differs from the checkout only in its config: the functions of the stage use the
emulator, and may send webhooks to this machine.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import boto3
import pytest
import requests
import trustme

from infra.deploy.package import build as package
from infra.local import supervisor
from tests.conftest import Answer, Api
from tests.support.clone import clone, commit
from tests.support.patience import PATIENCE
from tests.support.with_server import free_port

BUILD = package.ROOT / "build"
RUN = BUILD / "test-deployed"
"""Folder of the latest run: the emulator's log, the clone, and the rights that functions used."""
MEMORY = Path("/dev/shm")  # noqa: S108  mkdtemp creates a folder of our own there
HERE = Path(__file__).parent
STAGE, REGION = "dev", "eu-central-1"
API = "workspace-api-dev"
JOBS, EVENTS, CHAT = f"{API}-run-jobs", f"{API}-run-events", f"{API}-chat-stream"
HOSTS = (f"*.execute-api.{REGION}.amazonaws.com", f"*.lambda-url.{REGION}.on.aws")
ROOTS = "/etc/ssl/certs/ca-certificates.crt"
EMAIL, PASSWORD = "owner@example.com", "correct horse battery"
T = TypeVar("T")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Look at the whole run after all else, and destroy the stage last."""
    order = {HERE / "test_rights.py": 1, HERE / "test_destruction.py": 2}
    items.sort(key=lambda item: order.get(item.path, 0))


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.deployed)


def say(line: str) -> None:
    """Write a line of the run's log. Deployments write theirs to the same place."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def eventually(find: Callable[[], T], pause: float = 0.2) -> T:
    """Return the first true result of a function that is called again and again."""
    deadline = time.monotonic() + PATIENCE
    while not (found_value := find()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(pause)
    return found_value


class DeployedApi(Api):
    """The deployed API as a caller with one key uses it, over HTTPS."""

    def __init__(self, stage: "Stage", token: str | None) -> None:
        super().__init__(token)
        self.stage = stage

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        request = {
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            **(headers or {}),
        }
        kind = "data" if isinstance(body, bytes) else "json"
        answer = self.stage.send(method, path, headers=request, **{kind: body})
        return Answer(answer.status_code, dict(answer.headers), answer.content)


@dataclass
class Stage:
    """The stage, and what its operator and its visitors do with the stage."""

    clone: Path
    environment: dict[str, str]
    emulator: "subprocess.Popen[bytes]"
    result: dict[str, Any] = field(default_factory=dict)
    web: requests.Session = field(default_factory=requests.Session)

    def infra(self, *words: str, at: Path | None = None, **variables: str) -> dict[str, Any]:
        """Run ``python -m infra`` in the clone, and return what it prints on stdout."""
        say(f"$ python -m infra {' '.join(words)}")
        began = time.monotonic()
        process = subprocess.run(
            [sys.executable, "-m", "infra", *words],
            cwd=at or self.clone,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            check=False,
        )
        say(f"  exit {process.returncode} after {time.monotonic() - began:.0f} s")
        assert process.returncode == 0
        printed: dict[str, Any] = json.loads(process.stdout)
        return printed

    def admin(self, *words: str, **variables: str) -> dict[str, Any]:
        """Run a command of the operator for the stage."""
        return self.infra("admin", "--stage", STAGE, *words, **variables)

    def deploy(self, *options: str) -> None:
        self.result = self.infra("deploy", "--stage", STAGE, "--yes", *options)
        assert self.result["smoke"] == "ok"

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request to a path of the base URL, or to a whole URL, and log it."""
        url = path if path.startswith("http") else self.result["baseUrl"] + path
        began = time.monotonic()
        answer = self.web.request(method, url, timeout=PATIENCE, **options)
        took = (time.monotonic() - began) * 1000
        say(f"  {method} {url.partition('?')[0]} {answer.status_code} {took:.0f} ms")
        return answer

    def api(self, token: str | None) -> DeployedApi:
        return DeployedApi(self, token)

    def client(self, service: str) -> Any:
        """Return a client of AWS's library, with the rights of an administrator."""
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.environment["AWS_ENDPOINT_URL"]
        )

    def chat(self, agent: str, message: str) -> requests.Response:
        url = self.result["chatUrl"].rstrip("/") + "/api/agents/public/chat-stream"
        return self.send("POST", url, json={"agentId": agent, "message": message})

    def log_lines(self, function: str) -> list[dict[str, Any]]:
        """Return the lines of JSON that a function has logged."""
        pages = self.client("logs").get_paginator("filter_log_events")
        lines = [
            event["message"]
            for page in pages.paginate(logGroupName=f"/aws/lambda/{function}")
            for event in page["events"]
        ]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def rights(self) -> Counter[tuple[str, str, str, bool]]:
        """Return the rights that functions have used: name, action, resource, and if allowed."""
        lines = (RUN / "calls.jsonl").read_text().splitlines()
        return Counter(tuple(json.loads(line)) for line in lines)


def prepare_clone(folder: Path, variables: dict[str, str]) -> Path:
    """Clone the checkout, and give the functions of the stage these variables."""
    file = clone(folder) / ".chalice" / "config.json"
    config = json.loads(file.read_text())
    config["stages"][STAGE] = {"environment_variables": variables}
    file.write_text(json.dumps(config, indent=2) + "\n")
    commit(folder, "Deploy to an emulator")
    return folder


@pytest.fixture(scope="session")
def emulated_account() -> Iterator[Stage]:
    """An empty account on the emulator, and a clone that is not deployed yet."""
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    # The emulator unpacks the zip for each process of a function: thousands of files.
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 * 2**30
    unpacked = tempfile.mkdtemp(prefix="deployed-", dir=MEMORY if roomy else RUN)
    port, tls, proxy = free_port(), free_port(), free_port()
    authority = trustme.CA()
    served = authority.issue_cert(*HOSTS)
    served.cert_chain_pems[0].write_to_path(RUN / "server.pem")
    served.private_key_pem.write_to_path(RUN / "server.key")
    trusted = Path(os.environ.get("SSL_CERT_FILE", ROOTS)).read_bytes() + authority.cert_pem.bytes()
    (RUN / "trusted.pem").write_bytes(trusted)
    endpoint = f"http://127.0.0.1:{port}"
    python = BUILD / "deployed" / "bin" / "python"
    with (RUN / "emulator.log").open("wb") as log:
        emulator = supervisor.spawn(
            str(RUN),
            [str(python), str(HERE / "emulator.py"), str(port), str(tls), str(proxy)],
            {
                "PATH": os.environ["PATH"],
                "HOME": unpacked,
                "TMPDIR": unpacked,
                "EMULATOR_FOLDER": str(RUN),
                "FUNCTION_PYTHON": str(python),
                "GATEWAY_PORT": str(port),
                "MINISTACK_ACCOUNT_ID": "123456789012",
                "MINISTACK_REGION": REGION,
                "AUTH": "true",
            },
            log,
        )
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "HTTPS_PROXY": f"http://127.0.0.1:{proxy}",
        "REQUESTS_CA_BUNDLE": str(RUN / "trusted.pem"),
        "SSL_CERT_FILE": str(RUN / "trusted.pem"),
    }
    for name in ("STAGE", "OBJECT_STORE", "RATE_LIMIT_SCALE", "BARCODE_SOURCES", "PHOTO_SOURCE"):
        environment.pop(name)  # They are the suite's.
    try:
        variables = {"AWS_ENDPOINT_URL": endpoint, "WEBHOOKS_TO_LOOPBACK": "1"}
        stage = Stage(prepare_clone(RUN / "clone", variables), environment, emulator)
        stage.web.proxies = {"https": environment["HTTPS_PROXY"]}
        stage.web.verify = environment["REQUESTS_CA_BUNDLE"]
        stage.web.trust_env = False
        eventually(lambda: _answers(endpoint))
        yield stage
    finally:
        supervisor.stop(emulator)
        shutil.rmtree(unpacked, ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/_ministack/health", timeout=PATIENCE).ok
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="session")
def stage(emulated_account: Stage) -> Stage:
    """The deployed stage."""
    emulated_account.deploy("--no-edge")
    return emulated_account


@dataclass
class Owner:
    """A workspace with money, and a key with all scopes."""

    workspace: str
    api: DeployedApi

    def bot(self) -> str:
        """Create a bot, and return its id."""
        body = {"name": "Baker", "systemPrompt": "You sell bread.", "model": "nova-lite"}
        return str(self.api.post("/api/agents/create", body)["agent"]["id"])


@pytest.fixture(scope="session")
def owner(stage: Stage) -> Owner:
    stage.admin("create-account", "--email", EMAIL, "--password", PASSWORD)
    created = stage.admin("create-workspace", "--owner", EMAIL, "--name", "Bakery")
    workspace = created["workspaceId"]
    money = ("--kopecks", "100000", "--reason", "test", "--idempotency-key", "1")
    stage.admin("credit", "--account", EMAIL, *money)
    key = ("--workspace", workspace, "--name", "test", "--scopes", "*:read,*:write")
    return Owner(workspace, stage.api(stage.admin("create-key", *key)["token"]))


def balance(stage: Stage) -> dict[str, int]:
    """Return the owner's money: available and reserved kopecks, and the number of entries."""
    return stage.admin("balance", "--account", EMAIL)
