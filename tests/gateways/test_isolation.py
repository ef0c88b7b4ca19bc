"""Functions that run in a process of their own, with limits."""

import pytest

from chalicelib.gateways import isolation
from chalicelib.gateways.isolation import IsolationError, RaisedError, TooSlowError

HERE = "tests.factories.isolated"


def test_a_function_gets_its_arguments_and_the_body() -> None:
    assert isolation.call(f"{HERE}:join", "Хлеб\0".encode(), "a", None) == "a None Хлеб\0"


def test_an_error_of_the_functions_own_module_keeps_its_message() -> None:
    with pytest.raises(RaisedError, match=r"^no bread$"):
        isolation.call(f"{HERE}:refuse", b"bread", "no")


def test_another_error_is_named_and_not_taken_for_an_answer() -> None:
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


def test_the_process_has_none_of_the_services_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("LLM_API_KEY", "secret")
    names = isolation.call(f"{HERE}:variables", b"", None).split()
    assert set(names) <= {*isolation._PASSED_ON, "PYTHONPATH", "LC_CTYPE"}
