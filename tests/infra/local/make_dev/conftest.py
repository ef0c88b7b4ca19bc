"""Local stacks that tests start and end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.infra.local.make_dev.helpers import DEV, ROOT, RunningStack


@pytest.fixture
def start_stack(tmp_path: Path) -> Iterator[Callable[..., RunningStack]]:
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
