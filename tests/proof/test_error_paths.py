"""The attack on error paths finds planted defects, and nothing in a few real paths."""

import inspect
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.core import deadline
from chalicelib.engine import connection, idempotency
from chalicelib.transports import http
from tests.proof.call_sites import Injection
from tests.proof.error_paths import Attack
from tests.proof.faults import DETAIL
from tests.proof.gateway_faults import GATEWAYS, Gateway
from tests.proof.observers import MAX_GROWTH, BrokenPromiseError, Memory, cycle_in
from tests.proof.service_requests import ServiceRequest

READ = "list_sites"
WRITE = "create_site"


def paths(attack: Attack, name: str, fault: str, *, always: bool) -> list[Injection]:
    """Return the pairs of an operation's call sites with a fault."""
    request = request_of(attack, name)
    attack._send(request)
    return [
        Injection(site, kind, always)
        for site, faults in attack.seams.seen.items()
        for kind in faults
        if kind.name.startswith(fault)
    ]


def request_of(attack: Attack, name: str) -> ServiceRequest:
    (request,) = [request for request in attack.requests if request.name == name]
    return request


def found_by(attack: Attack, name: str, fault: str, *, always: bool = True) -> list[str]:
    """Return what the attack finds in an operation."""
    injections = paths(attack, name, fault, always=always)
    assert injections
    for injection in injections:
        attack.attack(request_of(attack, name), injection)
    assert attack.reached == len(injections)
    return list(attack.broken.values())


def test_every_failure_of_a_read_ends(small_attack: Attack) -> None:
    assert found_by(small_attack, READ, "") == []


def test_a_write_that_was_not_confirmed_is_repeated_with_success(small_attack: Attack) -> None:
    assert found_by(small_attack, WRITE, "answer lost", always=False) == []
    assert small_attack.request_count > 1 + small_attack.pairs


def test_unstored_response_to_a_repeated_request_is_found(
    small_attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "find", lambda *_: None)
    problems = found_by(small_attack, WRITE, "answer lost", always=False)
    assert any("a repetition is answered with 409" in problem for problem in problems)


def test_retries_after_the_deadline_are_found(
    small_attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "passed", lambda: False)
    monkeypatch.setattr(connection, "ATTEMPTS", 20)
    problems = found_by(small_attack, READ, "read time-out")
    assert all(re.fullmatch(r"it took \d+\.\d of 29 seconds", problem) for problem in problems)
    assert problems


def test_retries_without_end_are_found(
    small_attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "passed", lambda: False)
    monkeypatch.setattr(connection, "ATTEMPTS", 10**9)
    problems = found_by(small_attack, READ, "read time-out")
    assert "the request goes on without end" in problems


def test_a_key_in_the_log_is_found(small_attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    token = small_attack.log.secrets[0]
    monkeypatch.setattr(http, "log_fields", lambda error: {"cause": f"{error}: {token}"})
    problems = found_by(small_attack, READ, "ValidationException")
    assert problems
    assert all("a secret is in the log" in problem for problem in problems)
    assert not any(token in problem for problem in problems)


def test_error_message_in_a_response_is_found(
    small_attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = http.envelope

    def add_detail(error: Any, request_id: str) -> bytes:
        error.message = DETAIL
        return envelope(error, request_id)

    monkeypatch.setattr(http, "envelope", add_detail)
    problems = found_by(small_attack, READ, "ValidationException")
    assert any("the answer has the text of an error" in problem for problem in problems)


def test_undocumented_response_is_found(
    small_attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http.InternalError, "code", "surprise")
    problems = found_by(small_attack, READ, "ValidationException")
    assert any("expected a documented answer" in problem for problem in problems)


def test_objects_that_a_request_deleted_are_put_back(small_attack: Attack) -> None:
    state = small_attack.seams.state
    objects = dict(state._read())
    small_attack._send(request_of(small_attack, "delete_file"))
    assert dict(state._read()).keys() < objects.keys()
    state.restore()
    assert dict(state._read()) == objects


def test_growth_of_memory_is_found() -> None:
    memory = Memory()
    memory.begin()
    held_bytes = b"x" * (MAX_GROWTH + 2**23)
    del held_bytes
    with pytest.raises(BrokenPromiseError, match="the process grew by"):
        memory.check()


class TestChains:
    def test_a_chain_that_ends_is_finite(self) -> None:
        one, other = ValueError(), OSError()
        one.__cause__ = one.__context__ = other
        assert not cycle_in(one)

    @pytest.mark.parametrize("link", ["__cause__", "__context__"])
    def test_a_chain_that_leads_back_is_found(self, link: str) -> None:
        one, other = ValueError(), OSError()
        one.__cause__ = other
        setattr(other, link, one)
        assert cycle_in(one)

    def test_a_chain_that_grows_without_bound_is_found(self) -> None:
        chain = [ValueError() for _ in range(1000)]
        for error, cause in pairwise(chain):
            error.__cause__ = cause
        assert cycle_in(chain[0])


@pytest.mark.parametrize("gateway", GATEWAYS, ids=str)
def test_every_error_that_a_gateway_declares_is_raised(gateway: Gateway) -> None:
    declared = set(declared_errors(getattr(gateway.owner, gateway.name)))
    declared -= {"InTestWorkspaceError"}  # no fault: a caller that did not keep the message
    assert declared <= {name.partition(" ")[0] for name in gateway.errors}


def declared_errors(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of errors under ``Raises:`` in a docstring."""
    _, _, raised = (inspect.getdoc(function) or "").partition("Raises:\n")
    for line in raised.splitlines():
        if match := re.match(r"    (\w+): ", line):
            yield match[1]
