"""A running local stack, and its processes."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import requests

from infra.local import dev as local
from tests.support.patience import PATIENCE, wait_for

ROOT = Path(local.__file__).parents[2]
DEV = [sys.executable, "-m", "infra", "dev"]
MARK = "LOCAL_STACK_OF"
"""Environment variable that marks the processes of a test's stacks.

Its value is the data folder.
"""
VARIABLES = (
    "PORT",
    "DATA_DIR",
    "DYNAMODB_ENDPOINT",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "MAKELEVEL",
    "MAKEFLAGS",
)


class RunningStack:
    """A local stack in a data folder of its own. Its demo is empty, unless ``DEMO`` is set."""

    def __init__(
        self, data: Path, command: list[str], folder: Path, logs: Path, **environment: str
    ) -> None:
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        inherited = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        if folder == ROOT:  # A copy of the checkout keeps its data inside, without a setting.
            inherited |= {"PORT": str(self.port), "DATA_DIR": str(data)}
        self.log = logs / f"{data.name}-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [argument.replace("{port}", str(self.port)) for argument in command],
                cwd=folder,
                env={**inherited, MARK: str(data), "DEMO": "empty", **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                # As from a terminal: background processes of a script ignore Ctrl-C.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
            )

    @property
    def output(self) -> str:
        """The output so far."""
        return self.log.read_text()

    @property
    def pids(self) -> dict[str, int]:
        """The processes listed in ``dev.json``."""
        pids: dict[str, int] = json.loads((self.data / "dev.json").read_text())["pids"]
        return pids

    @property
    def key(self) -> str:
        """The demo key, as last printed."""
        keys = re.findall(r"API key +(svc_live_\w+)", self.output)
        assert keys, self.output
        return str(keys[-1])

    def wait_until_ready(self) -> "RunningStack":
        """Wait for the banner and the service."""
        wait_for(lambda: "Ctrl-C stops" in self.output or self.process.poll() is not None)
        assert self.process.poll() is None, self.output
        wait_for(self.healthy)
        return self

    def healthy(self) -> bool:
        """Whether the service responds."""
        try:
            return requests.get(f"{self.url}/api/health", timeout=PATIENCE).ok
        except requests.RequestException:
            return False

    def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request with the demo key, which must succeed."""
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = requests.request(
            method, self.url + path, headers=headers, timeout=PATIENCE, **options
        )
        answer.raise_for_status()
        return answer.json()["data"]

    def titles(self) -> set[str]:
        """The titles of all sites."""
        titles: set[str] = set()
        for page in itertools.count(1):
            query = {"page": page, "size": 100}
            sites = self.call("GET", "/api/projects/list", params=query)["projects"]
            titles |= {site["title"] for site in sites}
            if not sites:
                return titles
        raise AssertionError

    def stop(self, name: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(name)
        return self.process.wait(PATIENCE)


def chalice_local(*options: str) -> list[str]:
    """Return the command of a developer who runs ``chalice local``."""
    chalice = str(Path(sys.executable).with_name("chalice"))
    return [chalice, "local", "--port", "{port}", *options]


def processes_of(data: Path) -> list[str]:
    """Return the commands of all processes of a data folder's stacks. Works on Linux only."""
    return list(processes(data).values())


def processes(data: Path) -> dict[int, str]:
    """Return the same commands by process id."""
    processes_found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={data}\0" in (folder / "environ").read_bytes().decode(errors="replace"):
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
                processes_found[int(folder.name)] = command.replace("\0", " ")
        except OSError:
            continue  # The process has just ended, or belongs to another user.
    return processes_found


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
