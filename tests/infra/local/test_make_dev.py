"""``make dev`` and ``chalice local``, and the processes left after they are killed."""

import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from infra.local import autoreload
from infra.local import dev as local
from infra.local.autoreload import SOURCES
from infra.local.data_dir import DataDir
from infra.local.demo.bakery import SITE
from infra.local.dynamodb import SetupError
from infra.local.stack import LocalStack
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

pytestmark = pytest.mark.timeout(3 * PATIENCE)


class RunningStack:
    """A local stack in a data folder of its own."""

    def __init__(
        self, data: Path, command: list[str], folder: Path, logs: Path, **environment: str
    ) -> None:
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        if folder == ROOT:  # A copy of the checkout keeps its data inside, without a setting.
            kept |= {"PORT": str(self.port), "DATA_DIR": str(data)}
        self.log = logs / f"{data.name}-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [argument.replace("{port}", str(self.port)) for argument in command],
                cwd=folder,
                env={**kept, MARK: str(data), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                # As from a terminal: background processes of a script ignore Ctrl-C.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
            )

    @property
    def said(self) -> str:
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
        keys = re.findall(r"API key +(svc_live_\w+)", self.said)
        assert keys, self.said
        return str(keys[-1])

    def wait_until_ready(self) -> "RunningStack":
        """Wait for the banner and the service."""
        wait_for(lambda: "Ctrl-C stops" in self.said or self.process.poll() is not None)
        assert self.process.poll() is None, self.said
        wait_for(self.healthy)
        return self

    def healthy(self) -> bool:
        """Whether the service answers."""
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
        found: set[str] = set()
        for page in itertools.count(1):
            query = {"page": page, "size": 100}
            sites = self.call("GET", "/api/projects/list", params=query)["projects"]
            found |= {site["title"] for site in sites}
            if not sites:
                return found
        raise AssertionError

    def stop(self, name: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(name)
        return self.process.wait(PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningStack]]:
    """Return a function that starts local stacks in one data folder.

    All are ended after the test.
    """
    runs = []

    def make(
        command: list[str] = DEV,
        data: str = "data",
        folder: Path = ROOT,
        **environment: str,
    ) -> RunningStack:
        run = RunningStack(tmp_path / data, command, folder, tmp_path, **environment)
        runs.append(run)
        return run

    yield make
    for run in runs:
        if run.process.poll() is None:
            run.stop()


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without Java and npm."""
    return {"PATH": str(tmp_path), "JAVA_HOME": "", "DYNAMODB_LOCAL_JAR": ""}


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("PORT", "eight"),
            ("PORT", "0"),
            ("PORT", "65536"),
            ("PORT", "-1"),
            ("RATE_LIMIT_SCALE", "fast"),
            ("RATE_LIMIT_SCALE", "0"),
            ("RATE_LIMIT_SCALE", "-2"),
            ("DYNAMODB_ENDPOINT", "localhost:8001"),
        ],
    )
    def test_an_invalid_value_is_named_with_the_expected_form(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, value)
        with pytest.raises(SetupError, match=f'^{name} is "{value}"; expected '):
            LocalStack.from_environment()

    def test_an_empty_value_means_the_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("PORT", "DATA_DIR", "RATE_LIMIT_SCALE", "DYNAMODB_ENDPOINT"):
            monkeypatch.setenv(name, "")
        stack = LocalStack.from_environment()
        assert stack.url == "http://127.0.0.1:8000"
        assert stack.data.path == Path.cwd() / ".local"
        assert stack.given_endpoint is None

    def test_the_service_gets_no_real_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREAL")
        monkeypatch.setenv("AWS_PROFILE", "production")
        environment = LocalStack.from_environment().environment("http://127.0.0.1:1")
        assert environment["AWS_ACCESS_KEY_ID"] == "local"
        assert "AWS_PROFILE" not in environment


class TestDataDir:
    def test_files_are_readable_by_their_owner_only(self, tmp_path: Path) -> None:
        data = DataDir(tmp_path)
        data.demo = {"key": "secret"}
        assert (tmp_path / "demo.json").stat().st_mode & 0o777 == 0o600
        assert data.demo == {"key": "secret"}

    @pytest.mark.parametrize("content", ["", "{", "[]", "null"])
    def test_a_damaged_file_counts_as_missing(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "dev.json").write_text(content)
        assert DataDir(tmp_path).run == {}

    def test_one_process_holds_the_folder_at_a_time(self, tmp_path: Path) -> None:
        data = DataDir(tmp_path)
        first = data.hold()
        assert first
        assert DataDir(tmp_path).hold() is None
        first.close()
        again = data.hold()
        assert again
        again.close()


class TestRefusals:
    def test_a_taken_port_is_refused(self, start: Callable[..., RunningStack]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            run = start(PORT=str(port))
            assert run.process.wait(PATIENCE) == 1
        assert f"make dev: Port {port} cannot be used: another program is using it" in run.said
        assert "PORT=8001 make dev" in run.said

    def test_a_data_folder_in_use_is_refused(
        self, start: Callable[..., RunningStack], tmp_path: Path
    ) -> None:
        data = DataDir(tmp_path / "data")
        lock = data.hold()
        assert lock
        with lock:
            data.run = {"endpoint": "http://127.0.0.1:1", "port": 8765, "pids": {}}
            run = start()
            assert run.process.wait(PATIENCE) == 1
        assert f"Another local stack (http://127.0.0.1:8765) is using {data.path}" in run.said
        assert data.run["port"] == 8765, "the living stand's file is left alone"

    def test_a_data_folder_that_cannot_be_written_is_refused(
        self, start: Callable[..., RunningStack], tmp_path: Path
    ) -> None:
        (tmp_path / "data").touch()
        run = start()
        assert run.process.wait(PATIENCE) == 1
        assert re.search(r"make dev: The data folder .*/data cannot be written", run.said)

    def test_an_endpoint_that_does_not_answer_is_refused(
        self, start: Callable[..., RunningStack]
    ) -> None:
        run = start(DYNAMODB_ENDPOINT="http://127.0.0.1:9")
        assert run.process.wait(PATIENCE) == 1
        assert "No DynamoDB answers at DYNAMODB_ENDPOINT=http://127.0.0.1:9. Start it" in run.said


class TestWithoutJava:
    """Without Java, moto's server is the database, with a notice."""

    @pytest.mark.slow
    def test_the_stack_serves_and_warns_that_data_is_not_kept(
        self, start: Callable[..., RunningStack], no_java: dict[str, str], tmp_path: Path
    ) -> None:
        run = start(**no_java).wait_until_ready()
        assert "it will NOT survive a restart. DynamoDB Local needs Java 17" in run.said
        assert run.titles() == {SITE}
        for command in re.findall(r"^    (curl (?:.*\\\n)?.*)$", run.said, re.MULTILINE):
            done = subprocess.run(
                [*shlex.split(command), "--silent", "--fail"], capture_output=True, check=True
            )
            if "chat-stream" in command:
                assert done.stdout.splitlines()[-2].startswith(b'data: {"type":"done"')
            else:
                assert json.loads(done.stdout)["data"]["status"] is True
        assert run.titles() == {SITE, "My site"}
        assert run.stop(signal.SIGINT) == 0
        assert processes_of(tmp_path / "data") == []
        assert not (tmp_path / "data" / "dev.json").exists()
        logged = [json.loads(line) for line in (run.data / "service.log").read_text().splitlines()]
        assert "/api/projects/list" in {line.get("route") for line in logged}

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [[], ["--no-autoreload"], ["--stage", "prod"]])
    def test_chalice_local_starts_a_database(
        self,
        start: Callable[..., RunningStack],
        no_java: dict[str, str],
        tmp_path: Path,
        options: list[str],
    ) -> None:
        run = start(by_hand(*options), **no_java).wait_until_ready()
        assert "it will NOT survive a restart. DynamoDB Local needs Java 17" in run.said
        assert run.titles() == {SITE}
        run.stop()
        wait_for(lambda: processes_of(tmp_path / "data") == [])
        assert not (tmp_path / "data" / "dev.json").exists()

    @pytest.mark.slow
    def test_chalice_local_without_a_port_option_serves_on_the_port_of_the_environment(
        self, start: Callable[..., RunningStack], no_java: dict[str, str]
    ) -> None:
        command = [part for part in by_hand() if part not in {"--port", "{port}"}]
        run = start(command, **no_java).wait_until_ready()
        assert run.titles() == {SITE}

    @pytest.mark.slow
    def test_a_process_that_ends_by_itself_ends_the_rest(
        self, start: Callable[..., RunningStack], no_java: dict[str, str], tmp_path: Path
    ) -> None:
        run = start(**no_java).wait_until_ready()
        os.kill(run.pids["database"], signal.SIGKILL)
        assert run.process.wait(PATIENCE) == 1
        assert "make dev: The database ended by itself" in run.said
        assert processes_of(tmp_path / "data") == []


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the checkout with the files that ``chalice local`` needs."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for source in (ROOT / source for source in SOURCES):
        target = folder / source.relative_to(ROOT)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    return folder


class EditedStack:
    """``chalice local``, started as Chalice documents it, in a copy of the checkout."""

    def __init__(self, start: Callable[..., RunningStack], clone: Path, **environment: str) -> None:
        self._module = clone / "chalicelib" / "__init__.py"
        self._begin = lambda: start(by_hand(), "clone/.local", clone, **environment)
        self.folder = clone
        self.run = self.starts()

    def starts(self) -> RunningStack:
        """Start the command."""
        self.run = self._begin().wait_until_ready()
        return self.run

    @property
    def restarts(self) -> int:
        """Return how many times it has started to serve."""
        return self.run.said.count("Serving on")

    @property
    def version(self) -> str:
        """Return the version in the service's answer, or an empty text while it does not answer."""
        try:
            answer = requests.get(f"{self.run.url}/api/health", timeout=PATIENCE)
        except requests.RequestException:
            return ""
        return str(answer.json()["data"]["version"])

    def edit(self, line: str) -> None:
        """Replace the line with the version in a module of the service."""
        self._module.write_text(
            re.sub(r"^VERSION.*$", line, self._module.read_text(), flags=re.MULTILINE)
        )


@pytest.fixture(
    params=[
        pytest.param("stand-in", marks=pytest.mark.slow),
        pytest.param("DynamoDB Local", marks=pytest.mark.dynamodb),
    ]
)
def edited(
    start: Callable[..., RunningStack],
    clone: Path,
    no_java: dict[str, str],
    request: pytest.FixtureRequest,
) -> EditedStack:
    """``chalice local`` in a copy of the checkout, on either database."""
    return EditedStack(start, clone, **(no_java if request.param == "stand-in" else {}))


class TestAutoreload:
    """``chalice local`` with Chalice's default, which restarts when a file changes."""

    def test_writes_to_the_database_and_outside_the_sources_do_not_restart(
        self, edited: EditedStack
    ) -> None:
        restarts, worker = edited.restarts, edited.run.pids
        writes = 0
        end = time.monotonic() + 5 * autoreload.LOOK_SECONDS
        while time.monotonic() < end or writes < 20:
            writes += 1
            edited.run.call("POST", "/api/projects/create", json={"title": f"Site {writes}"})
            for place in (".git/index", "build/x", "tests/test_x.py", "infra/__pycache__/x.pyc"):
                path = edited.folder / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(writes))
        assert len(edited.run.titles()) == writes + 1
        assert (edited.restarts, edited.run.pids) == (restarts, worker)

    def test_an_edit_is_served_with_the_same_database(self, edited: EditedStack) -> None:
        edited.run.call("POST", "/api/projects/create", json={"title": "Before the edit"})
        before = edited.run.pids
        for version in ("edited once", "edited twice"):
            edited.edit(f'VERSION = "{version}"')
            wait_for(lambda version=version: edited.version == version)
        assert edited.run.titles() == {SITE, "Before the edit"}
        assert edited.run.pids == before
        os.killpg(edited.run.process.pid, signal.SIGINT)  # Ctrl-C as a terminal sends it
        assert edited.run.process.wait(PATIENCE) == 0
        wait_for(lambda: processes_of(edited.run.data) == [])
        assert not (edited.run.data / "dev.json").exists()

    def test_an_edit_that_cannot_be_imported_is_shown_and_fixed_by_the_next(
        self, edited: EditedStack
    ) -> None:
        edited.run.call("POST", "/api/projects/create", json={"title": "Before the mistake"})
        edited.edit("VERSION = ")
        wait_for(lambda: "SyntaxError" in edited.run.said)
        assert edited.run.process.poll() is None
        edited.edit('VERSION = "mended"')
        wait_for(lambda: edited.version == "mended")
        assert edited.run.titles() == {SITE, "Before the mistake"}

    @pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
    @pytest.mark.parametrize("victim", ["command", "worker", "keeper", "database"])
    def test_no_process_is_left_after_a_kill(self, edited: EditedStack, victim: str) -> None:
        pids = {
            "command": edited.run.process.pid,
            "worker": worker_of(edited.run),
            "keeper": edited.run.pids["stand"],
            "database": edited.run.pids["database"],
        }
        os.kill(pids[victim], signal.SIGKILL)
        if victim in {"keeper", "database"}:
            # The service continues without a database. An edit starts one.
            wait_for(lambda: pids["keeper"] not in processes(edited.run.data))
            edited.edit('VERSION = "edited"')
            wait_for(lambda: edited.version == "edited")
            assert SITE in edited.run.titles()
            edited.run.stop()
        edited.run.process.wait(PATIENCE)
        wait_for(lambda: processes_of(edited.run.data) == [])
        assert SITE in edited.starts().titles()

    @pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
    @pytest.mark.slow
    def test_a_worker_whose_command_is_killed_at_once_ends(
        self, start: Callable[..., RunningStack], no_java: dict[str, str]
    ) -> None:
        run = start(by_hand(), **no_java)
        wait_for(lambda: len(processes_of(run.data)) > 1)
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait(PATIENCE)
        wait_for(lambda: processes_of(run.data) == [])


class TestOtherChaliceCommands:
    @pytest.mark.parametrize(
        "arguments",
        [["package", "out"], ["deploy"], ["--project-dir", "local", "deploy"], ["--debug"], []],
    )
    def test_other_commands_start_no_database_and_keep_their_environment(
        self, arguments: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["chalice", *arguments])
        before = dict(os.environ)
        local.use_local_database()
        assert dict(os.environ) == before


@pytest.mark.dynamodb
class TestPersistence:
    @pytest.mark.parametrize("victim", ["stand", "make", "server", "database"])
    def test_every_acknowledged_write_survives_a_kill(
        self, start: Callable[..., RunningStack], tmp_path: Path, victim: str
    ) -> None:
        makefile = tmp_path / "Makefile"
        makefile.write_text(f"dev:\n\t@exec {' '.join(DEV)}\n")
        run = start(["make", "--file", str(makefile), "dev"]).wait_until_ready()
        key = run.key
        pid = run.process.pid if victim == "make" else run.pids[victim]
        acknowledged = write_until_killed(run, pid)

        wait_for(lambda: processes_of(tmp_path / "data") == [])
        again = start().wait_until_ready()
        assert again.key == key
        assert acknowledged <= again.titles()

    def test_ctrl_c_ends_everything_and_the_next_start_has_the_data(
        self, start: Callable[..., RunningStack], tmp_path: Path
    ) -> None:
        run = start().wait_until_ready()
        run.call("POST", "/api/projects/create", json={"title": "Kept"})
        assert run.stop(signal.SIGINT) == 0
        assert processes_of(tmp_path / "data") == []
        assert start().wait_until_ready().titles() == {SITE, "Kept"}

    def test_two_stacks_run_side_by_side(self, start: Callable[..., RunningStack]) -> None:
        one, other = start(data="one"), start(data="other")
        for run in (one, other):
            run.wait_until_ready()
        one.call("POST", "/api/projects/create", json={"title": "Only here"})
        assert one.titles() == {SITE, "Only here"}
        assert other.titles() == {SITE}
        assert one.key != other.key

    def test_chalice_local_shares_the_database_of_a_running_stack(
        self, start: Callable[..., RunningStack]
    ) -> None:
        run = start().wait_until_ready()
        by_its_side = start(by_hand()).wait_until_ready()
        assert by_its_side.key == run.key
        by_its_side.call("POST", "/api/projects/create", json={"title": "Seen by both"})
        assert run.titles() == {SITE, "Seen by both"}
        by_its_side.stop()
        assert run.titles() == {SITE, "Seen by both"}

    def test_a_given_endpoint_is_used_and_left_running(
        self, start: Callable[..., RunningStack]
    ) -> None:
        run = start(data="one").wait_until_ready()
        endpoint = json.loads((run.data / "dev.json").read_text())["endpoint"]
        guest = start(data="other", DYNAMODB_ENDPOINT=endpoint).wait_until_ready()
        assert f"in the database at {endpoint}" in guest.said
        assert guest.stop() == 0
        assert run.titles() == {SITE}


def write_until_killed(run: RunningStack, pid: int) -> set[str]:
    """Create sites in four threads and kill a process meanwhile. Return the acknowledged titles."""
    acknowledged: set[str] = set()
    headers = {"Authorization": f"Bearer {run.key}"}

    def write(thread: int) -> None:
        with requests.Session() as session:
            for number in itertools.count():
                title = f"Site {thread}-{number}"
                try:
                    answer = session.post(
                        f"{run.url}/api/projects/create",
                        headers=headers,
                        json={"title": title},
                        timeout=PATIENCE,
                    )
                except requests.RequestException:
                    return
                if answer.ok:
                    acknowledged.add(title)

    with ThreadPoolExecutor(4) as pool:
        for thread in range(4):
            pool.submit(write, thread)
        wait_for(lambda: len(acknowledged) >= 100)
        os.kill(pid, signal.SIGKILL)
        run.process.wait(PATIENCE)
    assert len(acknowledged) >= 100
    return acknowledged


def by_hand(*options: str) -> list[str]:
    """Return the command of a developer who runs ``chalice local``."""
    chalice = str(Path(sys.executable).with_name("chalice"))
    return [chalice, "local", "--port", "{port}", *options]


def processes_of(data: Path) -> list[str]:
    """Return the commands of all processes of a data folder's stacks. Works on Linux only."""
    return list(processes(data).values())


def processes(data: Path) -> dict[int, str]:
    """Return the same commands by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={data}\0" in (folder / "environ").read_bytes().decode(errors="replace"):
                command = (folder / "cmdline").read_bytes().decode(errors="replace")
                found[int(folder.name)] = command.replace("\0", " ")
        except OSError:
            continue  # The process has just ended, or belongs to another user.
    return found


def worker_of(run: RunningStack) -> int:
    """Return the process that serves for ``chalice local`` with autoreload. Works on Linux only."""
    for pid in processes(run.data):
        status = Path(f"/proc/{pid}/stat").read_text()
        if int(status.rpartition(")")[2].split()[1]) == run.process.pid:
            return pid
    raise AssertionError(run.said)


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
