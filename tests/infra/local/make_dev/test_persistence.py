"""Data of the local stack survives a kill, and stacks can run side by side."""

import itertools
import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from infra.local.demo import bakery
from tests.infra.local.make_dev.helpers import (
    DEV,
    RunningStack,
    chalice_local,
    processes_of,
)
from tests.support.patience import PATIENCE, wait_for

pytestmark = pytest.mark.timeout(3 * PATIENCE)


@pytest.mark.dynamodb
class TestPersistence:
    @pytest.mark.parametrize("victim", ["stand", "make", "server", "database"])
    def test_every_acknowledged_write_survives_a_kill(
        self, start_stack: Callable[..., RunningStack], tmp_path: Path, victim: str
    ) -> None:
        makefile = tmp_path / "Makefile"
        makefile.write_text(f"dev:\n\t@exec {' '.join(DEV)}\n")
        run = start_stack(["make", "--file", str(makefile), "dev"]).wait_until_ready()
        key = run.key
        pid = run.process.pid if victim == "make" else run.pids[victim]
        acknowledged = write_until_killed(run, pid)

        wait_for(lambda: processes_of(tmp_path / "data") == [])
        second_run = start_stack().wait_until_ready()
        assert second_run.key == key
        assert acknowledged <= second_run.titles()

    def test_ctrl_c_ends_everything_and_the_next_start_has_the_data(
        self, start_stack: Callable[..., RunningStack], tmp_path: Path
    ) -> None:
        run = start_stack(DEMO="en").wait_until_ready()
        run.call("POST", "/api/projects/create", json={"title": "Kept"})
        assert run.stop(signal.SIGINT) == 0
        assert processes_of(tmp_path / "data") == []
        assert start_stack(DEMO="en").wait_until_ready().titles() == {
            bakery.load("en").site,
            "Kept",
        }

    def test_two_stacks_run_side_by_side(self, start_stack: Callable[..., RunningStack]) -> None:
        one, other = start_stack(data="one"), start_stack(data="other")
        for run in (one, other):
            run.wait_until_ready()
        one.call("POST", "/api/projects/create", json={"title": "Only here"})
        assert one.titles() == {"Only here"}
        assert other.titles() == set()
        assert one.key != other.key

    def test_chalice_local_shares_the_database_of_a_running_stack(
        self, start_stack: Callable[..., RunningStack]
    ) -> None:
        run = start_stack().wait_until_ready()
        by_its_side = start_stack(chalice_local()).wait_until_ready()
        assert by_its_side.key == run.key
        by_its_side.call("POST", "/api/projects/create", json={"title": "Seen by both"})
        assert run.titles() == {"Seen by both"}
        by_its_side.stop()
        assert run.titles() == {"Seen by both"}

    def test_a_given_endpoint_is_used_and_left_running(
        self, start_stack: Callable[..., RunningStack]
    ) -> None:
        run = start_stack(data="one").wait_until_ready()
        endpoint = json.loads((run.data / "dev.json").read_text())["endpoint"]
        guest = start_stack(data="other", DYNAMODB_ENDPOINT=endpoint).wait_until_ready()
        assert f"in the database at {endpoint}" in guest.output
        assert guest.stop() == 0
        assert run.titles() == set()


def write_until_killed(run: RunningStack, pid: int) -> set[str]:
    """Create sites in four threads and kill a process during the writes. Return the acknowledged
    titles."""
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
