"""The DNS gateway, against a fake name server on loopback."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dns.message
import dns.rcode
import dns.rdatatype
import dns.resolver
import dns.rrset
import pytest

from chalicelib.gateways import dns as gateway
from tests.support.patience import PATIENCE, stretched

Answering = Callable[[dns.message.Message], bytes | None]


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Answering]]:
    """A name server that replies to every query with the test's function under ``answer``."""
    rules: dict[str, Answering] = {}
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                data, client = server.recvfrom(4096)
            except OSError:
                return
            reply = rules["answer"](dns.message.from_wire(data))
            if reply is not None:
                server.sendto(reply, client)

    threading.Thread(target=serve, daemon=True).start()
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = server.getsockname()[1]
    monkeypatch.setattr(dns.resolver, "default_resolver", resolver)
    monkeypatch.setattr(gateway, "TIMEOUT_SECONDS", PATIENCE)
    yield rules
    server.close()


def texts(*values: str) -> Answering:
    def answer(question: dns.message.Message) -> bytes:
        reply = dns.message.make_response(question)
        if values:
            name = question.question[0].name
            reply.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *values))
        return reply.to_wire()

    return answer


def code(rcode: dns.rcode.Rcode) -> Answering:
    def answer(question: dns.message.Message) -> bytes:
        reply = dns.message.make_response(question)
        reply.set_rcode(rcode)
        return reply.to_wire()

    return answer


def test_txt_records_are_found_and_their_parts_joined(name_server: dict[str, Answering]) -> None:
    name_server["answer"] = texts('"one"', '"svc-" "verify=x"')
    assert gateway._lookup_txt("x.example.com") == {"one", "svc-verify=x"}


@pytest.mark.parametrize("answer", [texts(), code(dns.rcode.NXDOMAIN)])
def test_missing_record_or_name_has_no_values(
    answer: Answering, name_server: dict[str, Answering]
) -> None:
    name_server["answer"] = answer
    assert gateway._lookup_txt("x.example.com") == frozenset()


@pytest.mark.parametrize("answer", [code(dns.rcode.SERVFAIL), lambda _: None, lambda _: b"?"])
def test_a_broken_or_silent_server_is_not_mistaken_for_a_missing_record(
    answer: Answering, name_server: dict[str, Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "TIMEOUT_SECONDS", 0.5)
    name_server["answer"] = answer
    with pytest.raises(gateway.DnsUnavailableError):
        gateway._lookup_txt("x.example.com")


def addresses(**by_kind: Answering) -> Answering:
    def answer(question: dns.message.Message) -> bytes | None:
        return by_kind[dns.rdatatype.to_text(question.question[0].rdtype)](question)

    return answer


def records(kind: str, *values: str) -> Answering:
    def answer(question: dns.message.Message) -> bytes:
        reply = dns.message.make_response(question)
        if values:
            name = question.question[0].name
            reply.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *values))
        return reply.to_wire()

    return answer


FAILING = code(dns.rcode.SERVFAIL)
NO_NAME = code(dns.rcode.NXDOMAIN)


@pytest.mark.parametrize(
    ("a", "aaaa", "expected"),
    [
        (records("A", "8.8.8.8"), records("AAAA", "2606::1"), ["8.8.8.8", "2606::1"]),
        (records("A", "8.8.8.8"), records("AAAA"), ["8.8.8.8"]),
        (records("A"), records("AAAA", "2606::1"), ["2606::1"]),
        (records("A", "8.8.8.8"), FAILING, ["8.8.8.8"]),
        (records("A", "8.8.8.8"), lambda _: None, ["8.8.8.8"]),
        (NO_NAME, NO_NAME, []),
        (records("A"), records("AAAA"), []),
    ],
)
def test_a_host_has_its_known_addresses_of_both_kinds(
    a: Answering, aaaa: Answering, expected: list[str], name_server: dict[str, Answering]
) -> None:
    name_server["answer"] = addresses(A=a, AAAA=aaaa)
    stretched(
        lambda seconds: gateway._lookup_addresses("x.example.com", seconds),
        0.5,
        lambda addresses: addresses == expected,
    )


@pytest.mark.parametrize("answer", [FAILING, lambda _: None, lambda _: b"?"])
def test_a_failed_query_is_not_mistaken_for_no_addresses_and_ends_in_time(
    answer: Answering, name_server: dict[str, Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve, lifetimes = dns.resolver.resolve, []

    def granting(*args: Any, lifetime: float, **options: Any) -> Any:
        lifetimes.append(lifetime)
        return resolve(*args, lifetime=lifetime, **options)

    monkeypatch.setattr(dns.resolver, "resolve", granting)
    name_server["answer"] = answer
    with pytest.raises(gateway.DnsUnavailableError):
        gateway._lookup_addresses("x.example.com", 0.5)
    assert 0 <= lifetimes[1] < lifetimes[0] <= 0.5


def test_the_local_hosts_file_is_not_used(
    name_server: dict[str, Answering],
) -> None:
    name_server["answer"] = NO_NAME
    assert gateway._lookup_addresses("localhost", PATIENCE) == []
