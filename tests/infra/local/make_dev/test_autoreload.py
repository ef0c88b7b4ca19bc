"""``chalice local`` with Chalice's default, which restarts when a file changes."""

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from infra.deploy import chalice_commands
from infra.local import autoreload
from infra.local.autoreload import SOURCES
from tests.infra.local.make_dev.helpers import (
    ROOT,
    RunningStack,
    chalice_local,
    processes,
    processes_of,
)
from tests.support.patience import PATIENCE, wait_for

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the checkout with the files that ``chalice local`` needs."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for source in (ROOT / source for source in SOURCES):
        target = folder / source.relative_to(ROOT)
        if source.is_dir():
            shutil.copytree(source, target)  # with the byte code, which takes seconds to make
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    return folder


class EditedStack:
    """``chalice local``, started as Chalice documents it, in a copy of the checkout."""

    def __init__(
        self,
        start: Callable[..., RunningStack],
        clone: Path,
        *,
        keeps_data: bool,
        **environment: str,
    ) -> None:
        self.keeps_data = keeps_data
        self._module = clone / "chalicelib" / "__init__.py"
        self._begin = lambda: start(chalice_local(), "clone/.local", clone, **environment)
        self.folder = clone
        self.run = self.starts()

    def starts(self) -> RunningStack:
        """Start the command."""
        self.run = self._begin().wait_until_ready()
        return self.run

    @property
    def restarts(self) -> int:
        """Return how many times it has started to serve."""
        return self.run.output.count("Serving on")

    @property
    def version(self) -> str:
        """Return the version in the service's response, or "" while no response comes."""
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
def edited_stack(
    start_stack: Callable[..., RunningStack],
    clone: Path,
    no_java: dict[str, str],
    request: pytest.FixtureRequest,
) -> EditedStack:
    """``chalice local`` in a copy of the checkout, on either database."""
    keeps_data = request.param == "DynamoDB Local"
    return EditedStack(start_stack, clone, keeps_data=keeps_data, **({} if keeps_data else no_java))


class TestAutoreload:
    """``chalice local`` with Chalice's default, which restarts when a file changes."""

    def test_writes_to_the_database_and_outside_the_sources_do_not_restart(
        self, edited_stack: EditedStack
    ) -> None:
        restarts, worker = edited_stack.restarts, edited_stack.run.pids
        writes = 0
        end = time.monotonic() + 5 * autoreload.LOOK_SECONDS
        while time.monotonic() < end or writes < 20:
            writes += 1
            edited_stack.run.call("POST", "/api/projects/create", json={"title": f"Site {writes}"})
            for place in (".git/index", "build/x", "tests/test_x.py", "infra/__pycache__/x.pyc"):
                path = edited_stack.folder / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(writes))
        assert len(edited_stack.run.titles()) == writes
        assert (edited_stack.restarts, edited_stack.run.pids) == (restarts, worker)

    def test_an_edit_is_served_with_the_same_database(self, edited_stack: EditedStack) -> None:
        edited_stack.run.call("POST", "/api/projects/create", json={"title": "Before the edit"})
        old_pids = edited_stack.run.pids
        for version in ("edited once", "edited twice"):
            edited_stack.edit(f'VERSION = "{version}"')
            wait_for(lambda version=version: edited_stack.version == version)
        assert edited_stack.run.titles() == {"Before the edit"}
        assert edited_stack.run.pids == old_pids
        os.killpg(edited_stack.run.process.pid, signal.SIGINT)  # Ctrl-C as a terminal sends it
        assert edited_stack.run.process.wait(PATIENCE) == 0
        wait_for(lambda: processes_of(edited_stack.run.data) == [])
        assert not (edited_stack.run.data / "dev.json").exists()

    def test_an_edit_that_cannot_be_imported_is_shown_and_fixed_by_the_next(
        self, edited_stack: EditedStack
    ) -> None:
        edited_stack.run.call("POST", "/api/projects/create", json={"title": "Before the mistake"})
        edited_stack.edit("VERSION = ")
        wait_for(lambda: "SyntaxError" in edited_stack.run.output)
        assert edited_stack.run.process.poll() is None
        edited_stack.edit('VERSION = "mended"')
        wait_for(lambda: edited_stack.version == "mended")
        assert edited_stack.run.titles() == {"Before the mistake"}

    @pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
    @pytest.mark.parametrize("victim", ["command", "worker", "keeper", "database"])
    def test_no_process_is_left_after_a_kill(self, edited_stack: EditedStack, victim: str) -> None:
        pids = {
            "command": edited_stack.run.process.pid,
            "worker": worker_of(edited_stack.run),
            "keeper": edited_stack.run.pids["stand"],
            "database": edited_stack.run.pids["database"],
        }
        edited_stack.run.call("POST", "/api/projects/create", json={"title": "Before the kill"})
        kept_titles = {"Before the kill"} if edited_stack.keeps_data else set()
        os.kill(pids[victim], signal.SIGKILL)
        if victim in {"keeper", "database"}:
            # The service continues without a database. An edit starts one.
            wait_for(lambda: pids["keeper"] not in processes(edited_stack.run.data))
            edited_stack.edit('VERSION = "edited"')
            wait_for(lambda: edited_stack.version == "edited")
            assert edited_stack.run.titles() == kept_titles
            edited_stack.run.stop()
        edited_stack.run.process.wait(PATIENCE)
        wait_for(lambda: processes_of(edited_stack.run.data) == [])
        assert edited_stack.starts().titles() == kept_titles

    @pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
    @pytest.mark.slow
    def test_a_worker_whose_command_is_killed_at_once_ends(
        self, start_stack: Callable[..., RunningStack], no_java: dict[str, str]
    ) -> None:
        run = start_stack(chalice_local(), **no_java)
        wait_for(lambda: len(processes_of(run.data)) > 1)
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait(PATIENCE)
        wait_for(lambda: processes_of(run.data) == [])


class TestOtherChaliceCommands:
    @pytest.mark.parametrize(
        "arguments",
        [["url"], ["--project-dir", "local", "url", "--stage", "local"], ["--debug"], []],
    )
    def test_other_commands_start_no_database_and_keep_their_environment(
        self, arguments: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["chalice", *arguments])
        old_environment = dict(os.environ)
        chalice_commands.start()
        assert dict(os.environ) == old_environment


def worker_of(run: RunningStack) -> int:
    """Return the process that serves for ``chalice local`` with autoreload. Works on Linux only."""
    for pid in processes(run.data):
        status = Path(f"/proc/{pid}/stat").read_text()
        if int(status.rpartition(")")[2].split()[1]) == run.process.pid:
            return pid
    raise AssertionError(run.output)
