"""The fetcher, against an internet of the test's own: names, addresses and servers on loopback."""

import gzip
import http.client
import re
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib import VERSION
from chalicelib.core import deadline
from chalicelib.gateways import dns, fetch
from chalicelib.gateways.fetch import (
    FetchError,
    RefusedUrlError,
    TooLargeError,
    UpstreamError,
)
from tests.effort import examples, slow_but_for
from tests.fakes.internet import (
    PUBLIC,
    Answer,
    Internet,
    Server,
    drip,
    flood,
    raw,
    reset,
    says,
    silence,
    to,
)

MB = 2**20

HTTP = "http://files.example.com"
HTTPS = "https://files.example.com"

HOSTILE = [
    # loopback, in every way to write it
    "https://127.0.0.1/",
    "https://127.0.0.1:443/",
    "https://127.0.0.1./",
    "https://127.1/",
    "https://127.0.1/",
    "https://127.255.255.254/",
    "https://2130706433/",
    "https://4294967295/",
    "https://6425673729/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0x7f.0x0.0x0.0x1/",
    "https://0X7F.0.0.1/",
    "https://0177.0.0.1/",
    "https://0177.0.0.01/",
    "https://017700000001/",
    "https://00000177.0.0.1/",
    "https://127.0.0.0x1/",
    "https://127.0.0.1.0/",
    "https://127.0.0/",
    "https://0/",
    "https://0x/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://１２７.０.０.１/",
    "https://127。0。0。1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://𝟙𝟚𝟟.𝟘.𝟘.𝟙/",
    "https://%31%32%37.0.0.1/",
    "https://127.0.0.1%2f.example.com/",
    "https://127%2e0%2e0%2e1/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "https://localhost.localdomain/",
    "https://127.0.0.1.nip.io/",
    # the cloud's own
    "https://169.254.169.254/latest/meta-data/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://169.254.43518/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[fd00:ec2::254]/",
    "https://100.100.100.200/",
    "https://192.0.0.192/",
    "https://168.63.129.16/",
    "https://metadata.google.internal/",
    "https://169.254.170.2/v2/credentials",
    # private and special IPv4
    "https://10.0.0.1/",
    "https://10.255.255.255/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://198.51.100.1/",
    "https://203.0.113.1/",
    "https://224.0.0.1/",
    "https://239.255.255.255/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    # IPv6, and IPv4 inside it
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[0000::0001]:443/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:8.8.8.8]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[64:ff9b::127.0.0.1]/",
    "https://[64:ff9b::8.8.8.8]/",
    "https://[64:ff9b:1::a00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:808:808::1]/",
    "https://[2001:0:808:808::80ff:fffe]/",
    "https://[2a00:1450::5efe:127.0.0.1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[2606:4700::1111%25lo]/",
    "https://[2606:4700::1111%lo]/",
    "https://[fc00::1]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[127.0.0.1]/",
    "https://[v1.fe80::1]/",
    "https://[::1/",
    "https://::1/",
    "https://[::1]example.com/",
    "https://example.com[::1]/",
    # names that lead inside
    "https://inside.example.com/",
    "https://inside6.example.com/",
    "https://mapped.example.com/",
    "https://nat64.example.com/",
    "https://6to4.example.com/",
    "https://mixed.example.com/",
    "https://mixed6.example.com/",
    "https://last.example.com/",
    "https://METADATA.example.com./",
    "https://ｉｎｓｉｄｅ.example.com/",
    # schemes
    "http://files.example.com/",
    "ftp://files.example.com/",
    "file:///etc/passwd",
    "file://files.example.com/etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stats",
    "ldap://127.0.0.1/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "jar:https://127.0.0.1!/",
    "https+unix://files.example.com/",
    "//files.example.com/",
    "/etc/passwd",
    "files.example.com",
    # ports
    "https://files.example.com:22/",
    "https://files.example.com:8443/",
    "https://files.example.com:0/",
    "https://files.example.com:65979/",
    "https://files.example.com:4294967739/",
    "https://files.example.com:-443/",
    "https://files.example.com:+443/",
    "https://files.example.com:4 43/",
    "https://files.example.com:４４３/",
    "https://files.example.com:https/",
    "https://files.example.com:443:443/",
    "https://127.0.0.1:6379/",
    # user names
    "https://user@files.example.com/",
    "https://user:secret@files.example.com/",
    "https://@files.example.com/",
    "https://:@files.example.com/",
    "https://files.example.com@127.0.0.1/",
    "https://127.0.0.1@files.example.com/",
    "https://files.example.com%40127.0.0.1/",
    "https://files.example.com:443@127.0.0.1/",
    "https://a@b@files.example.com/",
    # what parsers disagree about
    "https://files.example.com\\@127.0.0.1/",
    "https://127.0.0.1\\files.example.com/",
    "https:\\\\127.0.0.1\\",
    "https:/\\127.0.0.1/",
    "https:127.0.0.1",
    "https:/127.0.0.1/",
    "https:///127.0.0.1/",
    "https:////127.0.0.1/",
    "https://",
    "https:///",
    "https://?",
    "https://#files.example.com",
    "https://./",
    "https://../",
    "https://.files.example.com/",
    "https://files..example.com/",
    "https://files.example.com../",
    "https://:443/",
    "https:// files.example.com/",
    "https://files .example.com/",
    "https://files.example.com /",
    "https://files.example.com\t.example.com/",
    "https://files.example.com\r\nHost: 127.0.0.1/",
    "https://files.example.com/\r\nX: y",
    "https://files.example.com/a\x00b",
    "https://files.example.com\x00.example.com/",
    "https://files.example.com/\x7f",
    "https://files.example.com/\x85",
    "https://files.example.com/\ud800",
    "ht\ntps://files.example.com/",
    "https://files\u200b.exam\u3000ple.com/",
    "https://files.example.com／@127.0.0.1/",
    "https://files.example.com℀.example.com/",
    "https://files.example.com;127.0.0.1/",
    "https://files.example.com,127.0.0.1/",
    "https://*.example.com/",
    "https://${jndi:ldap:127.0.0.1}/",
    "https://xn--\u0430.example.com/",
    "https://" + "a" * 64 + ".example.com/",
    "https://" + "a." * 127 + "com/",
    "https://files.example.com/" + "a" * 5000,
    "",
    " ",
]
INSIDE = {
    "localhost.localdomain": ["127.0.0.1"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "inside.example.com": ["10.1.2.3"],
    "inside6.example.com": ["fd12::3"],
    "mapped.example.com": ["::ffff:10.1.2.3"],
    "nat64.example.com": ["64:ff9b::a01:203"],
    "6to4.example.com": ["2002:a01:203::1"],
    "mixed.example.com": [PUBLIC, "10.1.2.3"],
    "mixed6.example.com": [PUBLIC, "fe80::3"],
    "last.example.com": [*(f"8.8.8.{n}" for n in range(20)), "192.168.3.3"],
    "metadata.example.com": ["169.254.169.254"],
}


REDIRECTS = [url for url in HOSTILE if re.fullmatch(r"https://[^/?#][!-~]*", url)]


class TestHostileUrls:
    def test_are_many(self) -> None:
        assert len(set(HOSTILE)) == len(HOSTILE) >= 180
        assert len(REDIRECTS) >= 120

    @pytest.mark.parametrize("url", HOSTILE)
    def test_are_refused_clearly_before_any_connection(self, url: str, net: Internet) -> None:
        net.names = {"files.example.com": [PUBLIC]} | INSIDE
        with pytest.raises(RefusedUrlError) as refusal:
            fetch.fetch(url)
        assert net.connections == []
        reason = refusal.value.reason
        assert reason.startswith("expected ")
        assert 20 < len(reason) < 400
        for host in net.lookups:
            assert not any(address in reason.replace(host, "") for address in net.names[host])

    @pytest.mark.parametrize("url", [url for url in HOSTILE if url.startswith("https://")])
    def test_are_refused_where_http_is_taken(self, url: str, net: Internet) -> None:
        net.names = {"files.example.com": [PUBLIC]} | INSIDE
        with pytest.raises(RefusedUrlError):
            fetch.fetch(url.replace("https", "http", 1), http_too=True)
        assert net.connections == []

    @pytest.mark.parametrize("location", REDIRECTS)
    def test_are_refused_as_redirects(self, location: str, net: Internet) -> None:
        server = net.serve(HTTP, to(location))
        net.names |= INSIDE
        with pytest.raises(RefusedUrlError, match=r"^files.example.com redirects to|^expected "):
            fetch.fetch(HTTP, http_too=True)
        assert net.connections == [(PUBLIC, 80)]
        assert server.paths == ["/"]


class TestResolving:
    def test_connects_to_the_address_that_was_checked_though_the_next_answer_differs(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTP, says(b"outside"))
        answers = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
        asked = []

        def rebinding(host: str, within: float) -> list[str]:
            asked.append(host)
            return next(answers)

        monkeypatch.setattr(dns, "lookup_addresses", rebinding)
        assert fetch.fetch(HTTP, http_too=True).body == b"outside"
        assert asked == ["files.example.com"]
        assert net.connections == [(PUBLIC, 80)]

    def test_checks_anew_when_a_redirect_leads_to_the_same_host_again(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTP, to("/again"))
        answers = iter([[PUBLIC], ["10.0.0.1"]])
        monkeypatch.setattr(dns, "lookup_addresses", lambda _host, _within: next(answers))
        with pytest.raises(RefusedUrlError):
            fetch.fetch(HTTP, http_too=True)
        assert net.connections == [(PUBLIC, 80)]

    def test_tries_the_next_address_if_one_does_not_connect(self, net: Internet) -> None:
        net.serve(HTTP, says())
        net.names["files.example.com"] = ["8.8.8.8", "2606:4700::1111", PUBLIC]
        assert fetch.fetch(HTTP, http_too=True).body == b"hello"
        assert net.connections == [("8.8.8.8", 80), ("2606:4700::1111", 80), (PUBLIC, 80)]

    def test_tries_no_more_than_three_addresses_in_five_seconds(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[float] = []

        def refuse(place: tuple[str, int], timeout: float) -> socket.socket:
            given.append(timeout)
            raise ConnectionRefusedError

        monkeypatch.setattr(fetch, "connect", refuse)
        net.names["files.example.com"] = [f"8.8.8.{n}" for n in range(200)]
        with pytest.raises(UpstreamError, match="does not accept the connection"):
            fetch.fetch(HTTPS)
        assert len(given) == 3
        assert sum(given) == pytest.approx(fetch.STEP_SECONDS)

    def test_asks_a_dead_host_once_for_all_fetches_of_one_work(self, net: Internet) -> None:
        net.names["dead.example.com"] = [PUBLIC]
        hosts = fetch.Hosts()

        def reason(number: int) -> str:
            with pytest.raises(UpstreamError) as failure:
                fetch.fetch(f"http://dead.example.com/{number}", http_too=True, hosts=hosts)
            return failure.value.reason

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(reason, range(50)))) == 1
        assert net.connections == [(PUBLIC, 80)]
        assert net.lookups == ["dead.example.com"]

    def test_asks_for_no_address_of_an_address(self, net: Internet) -> None:
        net.serve(f"http://{PUBLIC}", says())
        net.serve("http://[2606:4700::1111]", says(b"six"), address="2606:4700::1111")
        assert fetch.fetch(f"http://{PUBLIC}", http_too=True).body == b"hello"
        assert fetch.fetch("http://[2606:4700:0::1111]", http_too=True).body == b"six"
        assert net.lookups == []

    def test_says_so_if_there_is_no_such_host(self, net: Internet) -> None:
        with pytest.raises(UpstreamError, match=r"no host is called nowhere\.example\.com"):
            fetch.fetch("https://nowhere.example.com/")

    def test_says_so_if_no_name_server_answers(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unavailable(host: str, within: float) -> list[str]:
            assert within == 1.5
            raise dns.DnsUnavailableError

        monkeypatch.setattr(dns, "lookup_addresses", unavailable)
        monkeypatch.setattr(deadline, "monotonic", lambda: 100.0)
        with pytest.raises(UpstreamError, match="no name server could say where"):
            fetch.fetch(HTTPS, within=1.5)

    def test_connects_to_nothing_but_the_address_it_is_given(self) -> None:
        server = Server(says())
        with fetch.connect(("127.0.0.1", server.port), 1.0) as sock:
            assert sock.getpeername() == ("127.0.0.1", server.port)
        server.close()


class TestRequest:
    def test_carries_the_host_of_the_url_and_nothing_of_ours(self, net: Internet) -> None:
        server = net.serve(HTTP, says())
        fetch.fetch(HTTP + "/a b?c=ё#d", http_too=True, accept="image/*")
        agent = f"Workspace-Automation-API/{VERSION} (+http://127.0.0.1:8000)"
        assert server.requests[0].split("\r\n") == [
            "GET /a%20b?c=%D1%91 HTTP/1.1",
            "Host: files.example.com",
            f"User-Agent: {agent}",
            "Accept: image/*",
            "Accept-Encoding: gzip",
            "Connection: close",
            "",
            "",
        ]

    @pytest.mark.parametrize(
        ("url", "address", "host"),
        [
            ("http://files.example.com:80", PUBLIC, "files.example.com"),
            ("http://files.example.com:443", PUBLIC, "files.example.com:443"),
            ("http://[2606:4700::1111]:443", "2606:4700::1111", "[2606:4700::1111]:443"),
        ],
    )
    def test_names_a_port_that_is_not_the_schemes_own(
        self, url: str, address: str, host: str, net: Internet
    ) -> None:
        server = net.serve(url, says(), address=address)
        fetch.fetch(url, http_too=True)
        assert f"\r\nHost: {host}\r\n" in server.requests[0]

    def test_names_the_host_under_tls_and_checks_its_certificate(self, net: Internet) -> None:
        server = net.serve(HTTPS, says(b"secret"))
        assert fetch.fetch(HTTPS).body == b"secret"
        assert server.names == ["files.example.com"]
        assert "Host: files.example.com\r\n" in server.requests[0]

    def test_checks_the_certificate_of_an_address(self, net: Internet) -> None:
        server = net.serve(f"https://{PUBLIC}", says())
        assert fetch.fetch(f"https://{PUBLIC}").body == b"hello"
        assert server.names == [None]

    def test_names_a_host_of_another_script_in_punycode(self, net: Internet) -> None:
        server = net.serve("https://xn--e1afmkfd.xn--p1ai", says())
        assert fetch.fetch("https://Пример.рф./").url == "https://xn--e1afmkfd.xn--p1ai/"
        assert server.names == ["xn--e1afmkfd.xn--p1ai"]

    @pytest.mark.parametrize("other", ["evil.example.com", "example.com", "*.files.example.com"])
    def test_is_not_sent_to_a_server_certified_as_another(self, other: str, net: Internet) -> None:
        server = net.serve(HTTPS, says(), certified=other)
        with pytest.raises(UpstreamError, match="no valid certificate"):
            fetch.fetch(HTTPS)
        assert server.requests == []

    def test_is_not_sent_to_a_server_of_an_unknown_authority(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.undo()
        server = net.serve(HTTPS, says())
        monkeypatch.setattr(fetch, "connect", net.connect)
        monkeypatch.setattr(dns, "lookup_addresses", net.lookup)
        with pytest.raises(UpstreamError, match="no valid certificate"):
            fetch.fetch(HTTPS)
        assert server.requests == []

    def test_is_not_sent_to_a_server_without_tls(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
        net.names["files.example.com"] = [PUBLIC]
        monkeypatch.setattr(fetch, "connect", lambda _place, _timeout: ours)
        with theirs:
            with pytest.raises(UpstreamError, match="does not speak https as expected"):
                fetch.fetch(HTTPS)
            assert b"GET" not in theirs.recv(65536)

    def test_goes_past_the_proxy_and_the_passwords_of_the_environment(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
            monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".netrc").write_text("default login me password secret")
        server = net.serve(HTTPS, says())
        assert fetch.fetch(HTTPS).body == b"hello"
        assert net.connections == [(PUBLIC, 443)]
        assert "uthorization" not in server.requests[0]

    def test_serves_eight_threads_at_a_time(self, net: Internet) -> None:
        together = threading.Barrier(8, timeout=10)

        def answer(body: bytes) -> Answer:
            def when_all_are_here(sock: socket.socket) -> None:
                together.wait()
                says(body)(sock)

            return when_all_are_here

        for n in range(8):
            net.serve(
                f"https://n{n}.example.com", answer(b"%d" % n * 100_000), address=f"8.8.8.{n}"
            )
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(fetch.fetch, (f"https://n{n}.example.com" for n in range(8))))
        assert [f.body for f in found] == [b"%d" % n * 100_000 for n in range(8)]


class TestAnswer:
    @pytest.mark.parametrize("declared", ["image/png", "text/html; charset=windows-1251", ""])
    def test_has_the_final_url_the_declared_type_and_the_body(
        self, declared: str, net: Internet
    ) -> None:
        net.serve(HTTP, to("/b?c"), says(b"\x89PNG", content_type=declared))
        found = fetch.fetch(HTTP, http_too=True)
        assert found == fetch.Fetched(HTTP + "/b?c", declared, b"\x89PNG")

    def test_without_a_type_has_none(self, net: Internet) -> None:
        net.serve(HTTP, raw(b"HTTP/1.0 200 OK\n\nold"))
        assert fetch.fetch(HTTP, http_too=True) == fetch.Fetched(HTTP + "/", "", b"old")

    def test_comes_in_chunks_if_the_server_likes(self, net: Internet) -> None:
        chunks = b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n"
        net.serve(HTTP, raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks))
        assert fetch.fetch(HTTP, http_too=True).body == b"hello!"

    @pytest.mark.parametrize(
        "packed",
        [
            gzip.compress(b"hello " * 50_000),
            gzip.compress(b"hello " * 20_000) + gzip.compress(b"hello " * 30_000),
            gzip.compress(b"hello " * 50_000) + bytes(100),
        ],
    )
    def test_is_unpacked(self, packed: bytes, net: Internet) -> None:
        net.serve(HTTP, says(packed, content_encoding="GZIP"))
        assert fetch.fetch(HTTP, http_too=True).body == b"hello " * 50_000

    @pytest.mark.parametrize("status", ["204 No Content", "200 OK"])
    def test_may_be_empty(self, status: str, net: Internet) -> None:
        net.serve(HTTP, says(b"", status, content_encoding="gzip"))
        assert fetch.fetch(HTTP, http_too=True).body == b""

    @pytest.mark.parametrize(
        "status", ["404 Not Found", "403 No", "500 Oops", "304 Not Modified", "300 Choose", "999 ?"]
    )
    def test_of_failure_is_a_failure_that_names_the_status(
        self, status: str, net: Internet
    ) -> None:
        net.serve(HTTP, says(b"<html>", status))
        with pytest.raises(UpstreamError, match=f"answered with status {status[:3]}"):
            fetch.fetch(HTTP, http_too=True)

    @pytest.mark.parametrize(
        "answer",
        [
            raw(b""),
            raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
            raw(b"\xff\x00" * 500),
            raw(b"HTTP/1.1 abc\r\n\r\n"),
            raw(b"HTTP/9.9 200 OK\r\n\r\n"),
            raw(b"HTTP/1.1 200 " + b"x" * 70_000),
            raw(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000),
            raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
            says(b"short", content_length="500"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n"),
            says(b"not gzip", content_encoding="gzip"),
            says(gzip.compress(b"hello" * 99)[:-9], content_encoding="gzip"),
            says(gzip.compress(b"hello")[:-8] + bytes(8), content_encoding="gzip"),
            says(gzip.compress(b"hello")[:10] + b"\xff" * 9, content_encoding="gzip"),
        ],
    )
    def test_that_is_broken_is_a_failure_without_a_librarys_words(
        self, answer: Answer, net: Internet
    ) -> None:
        net.serve(HTTP, answer)
        with pytest.raises(UpstreamError) as failure:
            fetch.fetch(HTTP, http_too=True)
        assert failure.value.reason == (
            "files.example.com sent a broken or incomplete answer; expected HTTP"
        )

    @pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "identity, gzip"])
    def test_in_an_encoding_nobody_asked_for_is_a_failure(
        self, encoding: str, net: Internet
    ) -> None:
        net.serve(HTTP, says(zlib.compress(bytes(1000)), content_encoding=encoding))
        with pytest.raises(UpstreamError, match="expected gzip or none"):
            fetch.fetch(HTTP, http_too=True)

    @pytest.mark.parametrize(
        "answer",
        [
            says(),
            says(gzip.compress(b"hello"), content_encoding="gzip"),
            to("/again"),
            says(b"", "404 Not Found"),
            says(bytes(2 * MB)),
            says(bytes(2 * MB), content_length="0x"),
            says(b"", content_length="5"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            raw(b"SSH-2.0-x\r\n"),
            reset,
        ],
    )
    def test_is_closed_however_it_ends_and_not_left_to_the_garbage_collector(
        self, answer: Answer, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = []

        class Kept(http.client.HTTPResponse):
            def begin(self) -> None:
                answers.append(self)
                super().begin()

        monkeypatch.setattr(http.client, "HTTPResponse", Kept)
        net.serve(HTTP, answer)
        with suppress(FetchError):
            fetch.fetch(HTTP, http_too=True, max_bytes=MB)
        assert answers
        assert all(answer.closed for answer in answers)

    def test_that_breaks_off_is_a_failure(self, net: Internet) -> None:
        net.serve(HTTP, reset)
        with pytest.raises(UpstreamError, match="does not accept the connection or broke it"):
            fetch.fetch(HTTP, http_too=True)

    @given(
        st.one_of(
            st.binary(max_size=500),
            st.builds(
                lambda lines, body: b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", body]),
                st.lists(
                    st.one_of(
                        st.binary(max_size=50),
                        st.sampled_from(
                            [
                                b"Transfer-Encoding: chunked",
                                b"Content-Encoding: gzip",
                                b"Content-Length: 9",
                                b"Content-Length: -9",
                                b"Content-Length: " + b"9" * 5000,
                                b"HTTP/1.1 100 Continue",
                                b" folded: \xe9\x00",
                            ]
                        ),
                    ),
                    max_size=4,
                ),
                st.one_of(
                    st.binary(max_size=200),
                    st.binary(max_size=200).map(gzip.compress),
                    st.text("0123456789abcdef-_+x;\r\n ", max_size=60).map(str.encode),
                ),
            ),
        )
    )
    @examples(300)
    def test_of_any_bytes_is_a_body_or_a_clear_failure(self, data: bytes) -> None:
        def connect(_place: tuple[str, int], _timeout: float) -> socket.socket:
            ours, theirs = socket.socketpair()
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            peers.append(theirs)
            return ours

        peers: list[socket.socket] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fetch, "connect", connect)
            try:
                fetch.fetch(f"http://{PUBLIC}/", http_too=True, within=1.5)
            except FetchError as failure:
                assert failure.reason.startswith(PUBLIC)  # noqa: PT017  success is as good
        for peer in peers:
            peer.close()


class TestRedirects:
    def test_are_followed_three_times(self, net: Internet) -> None:
        first = net.serve(HTTP, to("/b", "301 Moved"), to(HTTPS + "/c", "308 Moved"))
        then = net.serve(HTTPS, to("//Files.example.com:443/d?e", "303 See"), says(b"there"))
        found = fetch.fetch(HTTP + "/a", http_too=True)
        assert (found.url, found.body) == (HTTPS + "/d?e", b"there")
        assert (first.paths, then.paths) == (["/a", "/b"], ["/c", "/d?e"])
        assert len(net.lookups) == 4

    @pytest.mark.parametrize("location", ["/", "/?again", HTTP, "?"])
    def test_are_not_followed_without_end(self, location: str, net: Internet) -> None:
        server = net.serve(HTTP, to(location))
        with pytest.raises(UpstreamError, match="at most 3 redirects"):
            fetch.fetch(HTTP, http_too=True)
        assert len(server.requests) == 4

    def test_do_not_leave_https_unless_the_caller_takes_http(self, net: Internet) -> None:
        net.serve(HTTPS, to(HTTP))
        net.serve(HTTP, says())
        with pytest.raises(RefusedUrlError, match=r"redirects to a URL that is refused: .*http:"):
            fetch.fetch(HTTPS)
        assert net.connections == [(PUBLIC, 443)]
        assert fetch.fetch(HTTPS, http_too=True).body == b"hello"

    @pytest.mark.parametrize(
        "location",
        ["file:///etc/passwd", "gopher://127.0.0.1/", "data:,x", "javascript:1", "//10.0.0.1/"],
    )
    def test_lead_to_no_other_scheme(self, location: str, net: Internet) -> None:
        net.serve(HTTP, to(location))
        with pytest.raises(RefusedUrlError):
            fetch.fetch(HTTP, http_too=True)
        assert len(net.connections) == 1

    def test_need_a_place_to_lead_to(self, net: Internet) -> None:
        net.serve(HTTP, says(b"", "302 Found"))
        with pytest.raises(UpstreamError, match="leads nowhere"):
            fetch.fetch(HTTP, http_too=True)

    def test_carry_no_cookies_and_no_referer(self, net: Internet) -> None:
        answer = says(b"", "302 Found", location="/b", set_cookie="a=b; Path=/")
        server = net.serve(HTTP, answer, says())
        fetch.fetch(HTTP, http_too=True)
        assert server.requests[0] == server.requests[1].replace("GET /b ", "GET / ")

    @pytest.mark.parametrize(
        ("location", "path"),
        [
            ("/a%0d%0aX-Injected:%20y", "/a%0d%0aX-Injected:%20y"),
            ("/a b\tc", "/a%20b%09c"),
            ("/пример".encode().decode("latin-1"), "/%D0%BF%D1%80%D0%B8%D0%BC%D0%B5%D1%80"),
            ("/a\x0bX-Injected: y", "/a%0BX-Injected:%20y"),
            ("/a\rX-Injected: y", "/a"),
            ("/a\x85X-Injected: y", "/a%85X-Injected:%20y"),
        ],
    )
    def test_inject_nothing(self, location: str, path: str, net: Internet) -> None:
        server = net.serve(HTTP, to(location), says())
        fetch.fetch(HTTP, http_too=True)
        assert server.paths == ["/", path]
        assert "\r\nX-Injected" not in server.requests[1]
        assert server.requests[0].count("\r\n") == server.requests[1].count("\r\n")

    def test_bodies_are_not_read(self, net: Internet) -> None:
        begin = b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n"
        net.serve(HTTP, flood(begin, bytes(MB)), says())
        assert fetch.fetch(HTTP, http_too=True).body == b"hello"


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\n\r\n"


def bomb(megabytes: int) -> bytes:
    """Return zeros in gzip, a thousandth of their size."""
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([*(pack.compress(bytes(MB)) for _ in range(megabytes)), pack.flush()])


ENDLESS: dict[str, Callable[[], Answer]] = {
    "bomb": lambda: says(bomb(300), content_encoding="gzip"),
    "endless body": lambda: flood(OK + b"\r\n", bytes(MB)),
    "endless chunks": lambda: flood(CHUNKED, b"100000\r\n" + bytes(MB) + b"\r\n"),
    "tiny chunks": lambda: flood(CHUNKED, b"1\r\n.\r\n" * 10_000),
    "negative chunk": lambda: flood(CHUNKED + b"-1\r\n", bytes(MB)),
    "endless trailers": lambda: flood(CHUNKED + b"0\r\n", b"Trailer: x\r\n" * 10_000),
    "endless empty members": lambda: flood(GZIP, gzip.compress(b"") * 10_000),
    "endless padding": lambda: flood(GZIP + gzip.compress(b""), bytes(MB)),
    "endless file name": lambda: flood(GZIP + b"\x1f\x8b\x08\x08" + bytes(6), b"x" * MB),
    "endless interim answers": lambda: flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000),
}


def peak_of(work: Callable[[], object]) -> int:
    """Return the bytes of memory that were taken at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestSize:
    def test_of_exactly_the_limit_is_taken_and_held_once(self, net: Internet) -> None:
        body = bytes(10 * MB)
        net.serve(HTTP, says(body))
        found: list[bytes] = []
        peak = peak_of(lambda: found.append(fetch.fetch(HTTP, http_too=True).body))
        assert found == [body]
        assert peak < 14 * MB

    @pytest.mark.parametrize("packed", [False, True])
    def test_has_a_limit_to_the_byte(self, packed: bool, net: Internet) -> None:
        def serve(body: bytes) -> Answer:
            if packed:
                return says(gzip.compress(body), content_encoding="gzip")
            return raw(OK + b"\r\n" + body)

        net.serve(HTTP, serve(b"x" * 1000), serve(b"x" * 1001))
        assert len(fetch.fetch(HTTP, http_too=True, max_bytes=1000).body) == 1000
        with pytest.raises(TooLargeError):
            fetch.fetch(HTTP, http_too=True, max_bytes=1000)

    def test_that_is_declared_is_refused_before_it_is_read(self, net: Internet) -> None:
        net.serve(HTTP, says(b"", content_length=str(10 * MB + 1)))
        with pytest.raises(TooLargeError, match="expected at most 10 MB; there is more"):
            fetch.fetch(HTTP, http_too=True)

    @pytest.mark.parametrize(
        "name", slow_but_for(["bomb", "endless body", "tiny chunks", "endless padding"], ENDLESS)
    )
    def test_without_end_is_refused_in_bounded_memory_and_time(
        self, name: str, net: Internet
    ) -> None:
        net.serve(HTTP, ENDLESS[name]())

        def refused() -> None:
            with pytest.raises(FetchError) as refusal:
                fetch.fetch(HTTP, http_too=True, max_bytes=MB, within=1.5)
            assert isinstance(refusal.value, TooLargeError) or "too slow" in refusal.value.reason

        began = time.monotonic()
        assert peak_of(refused) < 8 * MB
        assert time.monotonic() - began < 2.5


class TestTime:
    @pytest.mark.parametrize(
        ("url", "answer"),
        [
            (HTTP, drip(b"", b"HTTP/1.1 200 OK" + b" " * 60_000)),
            pytest.param(HTTP, drip(OK, b"A: b\r\n"), marks=pytest.mark.slow),
            (HTTP, drip(OK + b"\r\n", b".")),
            pytest.param(HTTP, drip(CHUNKED, b"1\r\n.\r\n"), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(CHUNKED + b"5", b";x"), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(CHUNKED + b"0\r\n", b"A: b\r\n"), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(GZIP, gzip.compress(b"")), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), marks=pytest.mark.slow),
            pytest.param(
                HTTPS, drip(b"", b"HTTP/1.1 200 OK" + b" " * 60_000), marks=pytest.mark.slow
            ),
            (HTTPS, drip(OK + b"\r\n", b".")),
            pytest.param(HTTP, silence, marks=pytest.mark.slow),
            (HTTPS, silence),
        ],
    )
    def test_is_up_for_a_server_that_drips_or_says_nothing(
        self, url: str, answer: Answer, net: Internet
    ) -> None:
        net.serve(url, answer)
        began = time.monotonic()
        with pytest.raises(UpstreamError, match=r"too slow: .* all of it within 0\.3$"):
            fetch.fetch(url, http_too=True, within=0.3)
        assert 0.25 < time.monotonic() - began < 1

    def test_is_up_for_a_handshake_that_drips(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A TLS record of 16 KB that comes byte by byte.
        ours, theirs = socket.socketpair()
        script = drip(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03", b"x")

        def serve() -> None:
            try:
                script(theirs)
            except OSError:
                theirs.close()

        dripping = threading.Thread(target=serve)
        dripping.start()
        net.names["files.example.com"] = [PUBLIC]
        monkeypatch.setattr(fetch, "connect", lambda _place, _timeout: ours)
        began = time.monotonic()
        with pytest.raises(UpstreamError, match="too slow"):
            fetch.fetch(HTTPS, within=0.5)
        assert 0.45 < time.monotonic() - began < 1
        dripping.join(timeout=2)
        assert not dripping.is_alive(), "the connection was left open"

    def test_is_up_for_a_step_before_it_is_up_for_all(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fetch, "STEP_SECONDS", 0.3)
        net.serve(HTTP, silence)
        began = time.monotonic()
        with pytest.raises(UpstreamError, match=r"expected an answer within 0\.3 seconds"):
            fetch.fetch(HTTP, http_too=True)
        assert 0.25 < time.monotonic() - began < 1

    def test_runs_on_across_redirects(self, net: Internet) -> None:
        def slowly(sock: socket.socket) -> None:
            time.sleep(0.25)
            to("/")(sock)

        server = net.serve(HTTP, slowly)
        with pytest.raises(UpstreamError, match="too slow"):
            fetch.fetch(HTTP, http_too=True, within=0.6)
        assert len(server.requests) == 3

    def test_runs_on_while_a_name_is_looked_up(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTP, says())
        now = [100.0]

        def slowly(host: str, within: float) -> list[str]:
            assert within == dns.TIMEOUT_SECONDS
            now[0] += 15.1
            return [PUBLIC]

        monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
        monkeypatch.setattr(dns, "lookup_addresses", slowly)
        with pytest.raises(UpstreamError, match="too slow"):
            fetch.fetch(HTTP, http_too=True)
        assert net.connections == []

    def test_is_up_for_a_connection_that_nobody_takes(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def never(_place: tuple[str, int], _timeout: float) -> socket.socket:
            raise TimeoutError

        net.names["files.example.com"] = [PUBLIC]
        monkeypatch.setattr(fetch, "connect", never)
        with pytest.raises(UpstreamError, match="too slow"):
            fetch.fetch(HTTPS)


@pytest.mark.parametrize("kind", [RefusedUrlError, TooLargeError, UpstreamError])
def test_every_failure_is_a_fetch_error_with_a_reason(kind: type[FetchError]) -> None:
    assert issubclass(kind, FetchError)
    assert kind("why").reason == str(kind("why")) == "why"
