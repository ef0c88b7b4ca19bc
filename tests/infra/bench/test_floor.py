"""What ``make bench`` measures is a successful request, and the bare function answers the same."""

import json
import logging
import sys
from pathlib import Path

import pytest

from infra.bench import bare_function, cold_start, floor, our_handler


def test_the_measured_calls_return_ten_sites_without_a_database() -> None:
    with our_handler.stubs():
        reply = our_handler.get_handler(floor.LIST)()
        text = our_handler.answer_text()
    assert logging.getLogger("chalicelib").level != logging.WARNING, "other tests read the log"
    assert reply["statusCode"] == 200
    assert len(json.loads(reply["body"])["data"]["projects"]) == 10
    assert json.loads(text) == json.loads(reply["body"])


@pytest.mark.parametrize("measured", floor.measured_calls().values(), ids=floor.measured_calls())
def test_the_bare_function_returns_what_the_application_returns(measured: floor.Measured) -> None:
    with our_handler.stubs():
        bodies = [json.loads(handler()["body"]) for handler in measured.handlers().values()]
    assert bodies[0] == bodies[1]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application as packaged."""
    return cold_start.packaged(tmp_path_factory.mktemp("packaged") / "project")


@pytest.mark.slow
@pytest.mark.parametrize("kind", bare_function.MODELS)
def test_whole_requests_of_both_succeed_in_processes_of_their_own(
    kind: str, project: Path, tmp_path: Path
) -> None:
    recording = str(tmp_path / "recording.json")
    for script, calls in (("first_answer", 2), ("bare_function", 3)):
        path = str(floor.FOLDER / f"{script}.py")
        cold_start.run(project, [sys.executable, path, kind, str(calls), recording])
