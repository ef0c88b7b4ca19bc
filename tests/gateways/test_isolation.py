"""Functions that run in a process of their own, with limits."""

import ctypes
import os
import sys
from pathlib import Path

import pytest

from chalicelib.gateways import isolation
from chalicelib.gateways.isolation import IsolationError, RaisedError, TooSlowError

HERE = "tests.factories.isolated"


def test_a_function_gets_its_arguments_and_the_body() -> None:
    assert isolation.call(f"{HERE}:join", "Хлеб\0".encode(), "a", None) == "a None Хлеб\0"


def test_an_error_of_the_functions_own_module_keeps_its_message() -> None:
    with pytest.raises(RaisedError, match=r"^no bread$"):
        isolation.call(f"{HERE}:refuse", b"bread", "no")


def test_other_error_is_a_failure_with_its_name() -> None:
    with pytest.raises(IsolationError, match=r"^ZeroDivisionError$") as failed:
        isolation.call(f"{HERE}:divide", b"", None)
    assert not isinstance(failed.value, RaisedError)


def test_a_process_that_dies_is_a_failure() -> None:
    with pytest.raises(IsolationError, match="the process ended with -9"):
        isolation.call(f"{HERE}:die", b"", None)


def test_a_function_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "SECONDS", 1.0)
    with pytest.raises(TooSlowError):
        isolation.call(f"{HERE}:sleep", b"", None)


def test_memory_is_limited() -> None:
    with pytest.raises(IsolationError, match=r"^MemoryError$"):
        isolation.call(f"{HERE}:take_memory", b"x", None)


def test_nothing_can_be_written_to_the_disk() -> None:
    with pytest.raises(IsolationError):
        isolation.call(f"{HERE}:write_file", b"x", None)


def test_process_has_no_variables_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LLM_API_KEY", "secret")
    names = isolation.call(f"{HERE}:variables", b"", None).split()
    assert set(names) <= {*isolation._PASSED_ON, "PYTHONPATH", "LC_CTYPE"}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("name", ["environ", "mem", "maps", "auxv"])
def test_the_process_cannot_read_its_parent(name: str) -> None:
    with pytest.raises(IsolationError, match=r"^PermissionError$"):
        isolation.call(f"{HERE}:read_of_parent", b"", name)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_parent_is_readable_again_after_the_call() -> None:
    isolation.call(f"{HERE}:join", b"", "a")
    assert Path(f"/proc/{os.getpid()}/environ").read_bytes()
    assert ctypes.CDLL(None).prctl(isolation._PR_GET_DUMPABLE, 0, 0, 0, 0) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may start any number of processes")
def test_the_process_starts_no_other() -> None:
    with pytest.raises(IsolationError, match=r"^BlockingIOError$"):
        isolation.call(f"{HERE}:start_process", b"", None)
