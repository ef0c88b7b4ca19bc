"""The fetcher's connections, against a fake internet on loopback."""

import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chalicelib import VERSION
from chalicelib.core import deadline
from chalicelib.gateways import dns, fetch, public_http
from chalicelib.gateways.public_http import (
    FetchError,
    RefusedUrlError,
    TooLargeError,
    UpstreamError,
)
from tests.factories.urls import HOSTILE, HTTP, HTTPS, INSIDE, MB
from tests.fakes.internet import (
    PUBLIC,
    Answer,
    Internet,
    Server,
    flood,
    http_response,
    to,
)
from tests.support.keyed import failed
from tests.support.patience import PATIENCE
from tests.support.sweep import sweep

REDIRECTS = [url for url in HOSTILE if re.fullmatch(r"https://[^/?#][!-~]*", url)]


class TestHostileUrls:
    def test_there_are_many_hostile_urls(self) -> None:
        assert len(set(HOSTILE)) == len(HOSTILE) >= 180
        assert len(REDIRECTS) >= 120

    @sweep("url", HOSTILE)
    def test_a_hostile_url_is_refused_clearly_before_any_connection(
        self, url: str, net: Internet
    ) -> None:
        net.forget()
        net.names = {"files.example.com": [PUBLIC]} | INSIDE
        with pytest.raises(RefusedUrlError) as refusal:
            fetch.fetch(url)
        assert net.connections == []
        reason = refusal.value.reason
        assert reason.startswith("expected ")
        assert 20 < len(reason) < 400
        for host in net.lookups:
            assert not any(address in reason.replace(host, "") for address in net.names[host])

    @sweep("url", [url for url in HOSTILE if url.startswith("https://")])
    def test_a_hostile_url_is_refused_where_http_is_allowed(self, url: str, net: Internet) -> None:
        net.forget()
        net.names = {"files.example.com": [PUBLIC]} | INSIDE
        with pytest.raises(RefusedUrlError):
            fetch.fetch(url.replace("https", "http", 1), allow_http=True)
        assert net.connections == []

    @sweep("location", REDIRECTS)
    def test_a_redirect_to_a_hostile_url_is_refused(self, location: str, net: Internet) -> None:
        net.forget()
        server = net.serve(HTTP, to(location))
        net.names |= INSIDE
        with pytest.raises(RefusedUrlError) as refusal:
            fetch.fetch(HTTP, allow_http=True)
        # A host that is not public is refused when its name is resolved.
        assert refusal.value.key in {"refused_redirect", "not_public"}
        assert net.connections == [(PUBLIC, 80)]
        assert server.paths == ["/"]


class TestResolving:
    def test_the_checked_address_is_used_even_if_the_next_lookup_differs(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTP, http_response(b"outside"))
        answers = iter([[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]])
        hosts = []

        def rebinding(host: str, seconds: float) -> list[str]:
            hosts.append(host)
            return next(answers)

        monkeypatch.setattr(dns, "lookup_addresses", rebinding)
        assert fetch.fetch(HTTP, allow_http=True).body == b"outside"
        assert hosts == ["files.example.com"]
        assert net.connections == [(PUBLIC, 80)]

    def test_a_redirect_to_the_same_host_is_checked_again(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTP, to("/again"))
        answers = iter([[PUBLIC], ["10.0.0.1"]])
        monkeypatch.setattr(dns, "lookup_addresses", lambda _host, _within: next(answers))
        with pytest.raises(RefusedUrlError):
            fetch.fetch(HTTP, allow_http=True)
        assert net.connections == [(PUBLIC, 80)]

    def test_the_next_address_is_tried_if_one_does_not_connect(self, net: Internet) -> None:
        net.serve(HTTP, http_response())
        net.names["files.example.com"] = ["8.8.8.8", "2606:4700::1111", PUBLIC]
        assert fetch.fetch(HTTP, allow_http=True).body == b"hello"
        assert net.connections == [("8.8.8.8", 80), ("2606:4700::1111", 80), (PUBLIC, 80)]

    def test_at_most_three_addresses_are_tried_in_five_seconds(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        timeouts: list[float] = []

        def refuse(place: tuple[str, int], timeout: float) -> socket.socket:
            timeouts.append(timeout)
            raise ConnectionRefusedError

        monkeypatch.setattr(public_http, "connect", refuse)
        net.names["files.example.com"] = [f"8.8.8.{n}" for n in range(200)]
        with pytest.raises(UpstreamError, check=failed("connection_closed")):
            fetch.fetch(HTTPS)
        assert len(timeouts) == 3
        assert sum(timeouts) == pytest.approx(public_http.STEP_SECONDS)

    def test_a_dead_host_is_tried_once_for_all_fetches_of_one_task(self, net: Internet) -> None:
        net.names["dead.example.com"] = [PUBLIC]
        hosts = public_http.Hosts()

        def reason(number: int) -> str:
            with pytest.raises(UpstreamError) as failure:
                fetch.fetch(f"http://dead.example.com/{number}", allow_http=True, hosts=hosts)
            return failure.value.reason

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(reason, range(50)))) == 1
        assert net.connections == [(PUBLIC, 80)]
        assert net.lookups == ["dead.example.com"]

    def test_an_ip_address_is_not_looked_up(self, net: Internet) -> None:
        net.serve(f"http://{PUBLIC}", http_response())
        net.serve("http://[2606:4700::1111]", http_response(b"six"), address="2606:4700::1111")
        assert fetch.fetch(f"http://{PUBLIC}", allow_http=True).body == b"hello"
        assert fetch.fetch("http://[2606:4700:0::1111]", allow_http=True).body == b"six"
        assert net.lookups == []

    def test_an_unknown_host_is_reported(self, net: Internet) -> None:
        with pytest.raises(UpstreamError, check=failed("unknown_host", "nowhere.example.com")):
            fetch.fetch("https://nowhere.example.com/")

    def test_an_unavailable_name_server_is_reported(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unavailable(host: str, seconds: float) -> list[str]:
            assert seconds == 1.5
            raise dns.DnsUnavailableError

        monkeypatch.setattr(dns, "lookup_addresses", unavailable)
        monkeypatch.setattr(deadline, "monotonic", lambda: 100.0)
        with pytest.raises(UpstreamError, check=failed("dns_unavailable")):
            fetch.fetch(HTTPS, timeout_seconds=1.5)

    def test_only_the_given_address_is_connected_to(self) -> None:
        server = Server(http_response())
        with public_http.connect(("127.0.0.1", server.port), 1.0) as sock:
            assert sock.getpeername() == ("127.0.0.1", server.port)
        server.close()


class TestRequest:
    def test_a_request_has_the_urls_host_and_no_data_of_the_service(self, net: Internet) -> None:
        server = net.serve(HTTP, http_response())
        fetch.fetch(HTTP + "/a b?c=ё#d", allow_http=True, accept="image/*")
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
    def test_a_request_names_a_non_default_port(
        self, url: str, address: str, host: str, net: Internet
    ) -> None:
        server = net.serve(url, http_response(), address=address)
        fetch.fetch(url, allow_http=True)
        assert f"\r\nHost: {host}\r\n" in server.requests[0]

    def test_tls_names_the_host_and_checks_its_certificate(self, net: Internet) -> None:
        server = net.serve(HTTPS, http_response(b"secret"))
        assert fetch.fetch(HTTPS).body == b"secret"
        assert server.names == ["files.example.com"]
        assert "Host: files.example.com\r\n" in server.requests[0]

    def test_the_certificate_of_an_ip_address_is_checked(self, net: Internet) -> None:
        server = net.serve(f"https://{PUBLIC}", http_response())
        assert fetch.fetch(f"https://{PUBLIC}").body == b"hello"
        assert server.names == [None]

    def test_a_host_in_another_script_is_named_in_punycode(self, net: Internet) -> None:
        server = net.serve("https://xn--e1afmkfd.xn--p1ai", http_response())
        assert fetch.fetch("https://Пример.рф./").url == "https://xn--e1afmkfd.xn--p1ai/"
        assert server.names == ["xn--e1afmkfd.xn--p1ai"]

    @pytest.mark.parametrize("other", ["evil.example.com", "example.com", "*.files.example.com"])
    def test_no_request_is_sent_to_a_server_with_another_hosts_certificate(
        self, other: str, net: Internet
    ) -> None:
        server = net.serve(HTTPS, http_response(), certified=other)
        with pytest.raises(UpstreamError, check=failed("invalid_certificate")):
            fetch.fetch(HTTPS)
        assert server.requests == []

    def test_no_request_is_sent_to_a_server_of_an_unknown_authority(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.undo()
        server = net.serve(HTTPS, http_response())
        monkeypatch.setattr(public_http, "connect", net.connect)
        monkeypatch.setattr(dns, "lookup_addresses", net.lookup)
        with pytest.raises(UpstreamError, check=failed("invalid_certificate")):
            fetch.fetch(HTTPS)
        assert server.requests == []

    def test_no_request_is_sent_to_a_server_without_tls(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\nhello")
        net.names["files.example.com"] = [PUBLIC]
        monkeypatch.setattr(public_http, "connect", lambda _place, _timeout: ours)
        with theirs:
            with pytest.raises(UpstreamError, check=failed("no_tls")):
                fetch.fetch(HTTPS)
            assert b"GET" not in theirs.recv(65536)

    def test_proxy_and_passwords_of_the_environment_are_not_used(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
            monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".netrc").write_text("default login me password secret")
        server = net.serve(HTTPS, http_response())
        assert fetch.fetch(HTTPS).body == b"hello"
        assert net.connections == [(PUBLIC, 443)]
        assert "uthorization" not in server.requests[0]

    def test_eight_threads_are_served_at_a_time(self, net: Internet) -> None:
        together = threading.Barrier(8, timeout=PATIENCE)

        def answer(body: bytes) -> Answer:
            def when_all_are_here(sock: socket.socket) -> None:
                together.wait()
                http_response(body)(sock)

            return when_all_are_here

        for n in range(8):
            net.serve(
                f"https://n{n}.example.com", answer(b"%d" % n * 100_000), address=f"8.8.8.{n}"
            )
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(fetch.fetch, (f"https://n{n}.example.com" for n in range(8))))
        assert [f.body for f in responses] == [b"%d" % n * 100_000 for n in range(8)]


class TestRedirects:
    def test_three_redirects_are_followed(self, net: Internet) -> None:
        first = net.serve(HTTP, to("/b", "301 Moved"), to(HTTPS + "/c", "308 Moved"))
        then = net.serve(
            HTTPS, to("//Files.example.com:443/d?e", "303 See"), http_response(b"there")
        )
        fetched = fetch.fetch(HTTP + "/a", allow_http=True)
        assert (fetched.url, fetched.body) == (HTTPS + "/d?e", b"there")
        assert (first.paths, then.paths) == (["/a", "/b"], ["/c", "/d?e"])
        assert len(net.lookups) == 4

    @pytest.mark.parametrize("location", ["/", "/?again", HTTP, "?"])
    def test_endless_redirects_are_not_followed(self, location: str, net: Internet) -> None:
        server = net.serve(HTTP, to(location))
        with pytest.raises(UpstreamError, check=failed("too_many_redirects", "3")):
            fetch.fetch(HTTP, allow_http=True)
        assert len(server.requests) == 4

    def test_redirects_to_http_need_the_callers_permission(self, net: Internet) -> None:
        net.serve(HTTPS, to(HTTP))
        net.serve(HTTP, http_response())
        with pytest.raises(RefusedUrlError, check=failed("refused_redirect", "http:")):
            fetch.fetch(HTTPS)
        assert net.connections == [(PUBLIC, 443)]
        assert fetch.fetch(HTTPS, allow_http=True).body == b"hello"

    @pytest.mark.parametrize(
        "location",
        ["file:///etc/passwd", "gopher://127.0.0.1/", "data:,x", "javascript:1", "//10.0.0.1/"],
    )
    def test_redirects_to_other_schemes_are_refused(self, location: str, net: Internet) -> None:
        net.serve(HTTP, to(location))
        with pytest.raises(RefusedUrlError):
            fetch.fetch(HTTP, allow_http=True)
        assert len(net.connections) == 1

    def test_a_redirect_without_a_location_is_refused(self, net: Internet) -> None:
        net.serve(HTTP, http_response(b"", "302 Found"))
        with pytest.raises(UpstreamError, check=failed("redirect_without_url")):
            fetch.fetch(HTTP, allow_http=True)

    def test_redirects_send_no_cookies_and_no_referer(self, net: Internet) -> None:
        answer = http_response(b"", "302 Found", location="/b", set_cookie="a=b; Path=/")
        server = net.serve(HTTP, answer, http_response())
        fetch.fetch(HTTP, allow_http=True)
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
    def test_a_redirect_cannot_inject_a_header(
        self, location: str, path: str, net: Internet
    ) -> None:
        server = net.serve(HTTP, to(location), http_response())
        fetch.fetch(HTTP, allow_http=True)
        assert server.paths == ["/", path]
        assert "\r\nX-Injected" not in server.requests[1]
        assert server.requests[0].count("\r\n") == server.requests[1].count("\r\n")

    def test_bodies_of_redirects_are_not_read(self, net: Internet) -> None:
        begin = b"HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n"
        net.serve(HTTP, flood(begin, bytes(MB)), http_response())
        assert fetch.fetch(HTTP, allow_http=True).body == b"hello"


@pytest.mark.parametrize("kind", [RefusedUrlError, TooLargeError, UpstreamError])
def test_every_failure_is_a_fetch_error_with_a_reason(kind: type[FetchError]) -> None:
    assert issubclass(kind, FetchError)
    error = kind("why", key="status")
    assert error.reason == str(error) == "why"
