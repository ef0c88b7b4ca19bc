"""POST requests to URLs from users, against a fake internet."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from chalicelib.core import clock, deadline
from chalicelib.core.settings import settings
from chalicelib.gateways import dns, public_http
from chalicelib.gateways.post import MAX_KEPT, MAX_READ, PostReply, post
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
    drip,
    flood,
    http_response,
    raw,
    reset,
    silence,
    to,
)
from tests.support.keyed import failed
from tests.support.patience import PATIENCE, stretched
from tests.support.sweep import sweep

HOOK = f"{HTTPS}/hook?of=shop"
JSON = {"Content-Type": "application/json"}
OK = b"HTTP/1.1 200 OK\r\n"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def send(url: str = HOOK, body: bytes = b'{"a":1}', seconds: float = 15.0) -> PostReply:
    return post(url, body, JSON, timeout_seconds=seconds)


class TestRequest:
    def test_a_request_has_the_body_its_length_and_the_given_headers(self, net: Internet) -> None:
        server = net.serve(HTTPS, http_response())
        post(HOOK, "Ёлка".encode(), {**JSON, "webhook-id": "msg_1"})
        head, _, body = server.requests[0].partition("\r\n\r\n")
        request, host, agent, *others = head.split("\r\n")
        assert (request, host) == ("POST /hook?of=shop HTTP/1.1", "Host: files.example.com")
        assert agent.startswith("User-Agent: Workspace-Automation-API/")
        assert others == [
            "Accept-Encoding: identity",
            "Content-Type: application/json",
            "webhook-id: msg_1",
            "Content-Length: 8",
            "Connection: close",
        ]
        assert body == "Ёлка"

    @sweep("url", HOSTILE)
    def test_a_hostile_url_is_refused_before_any_connection(self, url: str, net: Internet) -> None:
        net.forget()
        net.names = {"files.example.com": [PUBLIC]} | INSIDE
        with pytest.raises(RefusedUrlError, match=r"^expected "):
            send(url)
        assert net.connections == []

    def test_a_public_url_without_https_is_refused(self, net: Internet) -> None:
        net.serve(HTTP, http_response())
        with pytest.raises(RefusedUrlError, check=failed("invalid_url", "https://")):
            send(HTTP)
        assert net.connections == []

    def test_host_with_an_internal_address_is_refused(self, net: Internet) -> None:
        net.names["files.example.com"] = [PUBLIC, "10.20.30.40"]
        with pytest.raises(RefusedUrlError, check=failed("not_public", "files.example.com")):
            send()
        assert net.connections == []

    def test_the_checked_address_is_used_even_if_the_next_lookup_differs(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTPS, http_response(b"outside"))
        answers = iter([[PUBLIC], ["127.0.0.1"]])
        monkeypatch.setattr(dns, "lookup_addresses", lambda _host, _within: next(answers))
        assert send().body == b"outside"
        with pytest.raises(RefusedUrlError):
            send()
        assert net.connections == [(PUBLIC, 443)]

    def test_nothing_is_sent_to_a_server_with_another_hosts_certificate(
        self, net: Internet
    ) -> None:
        server = net.serve(HTTPS, http_response(), certified="evil.example.com")
        with pytest.raises(UpstreamError, check=failed("invalid_certificate")):
            send()
        assert server.requests == []

    @pytest.mark.parametrize("port", [1, 80, 9999])
    def test_loopback_is_refused_by_default(self, port: int, net: Internet) -> None:
        for host in ("localhost", "127.0.0.1"):
            with pytest.raises(RefusedUrlError):
                send(f"http://{host}:{port}/")
        assert net.connections == []


class TestReply:
    @pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 404, 410, 500, 503, 999])
    def test_any_status_is_a_reply(self, status: int, net: Internet) -> None:
        body = b"" if status in {204, 304} else b"why"
        net.serve(HTTPS, http_response(body, f"{status} Some"))
        reply = send()
        assert (reply.status, reply.body, reply.retry_after) == (status, body, None)

    @pytest.mark.parametrize(
        "location",
        ["http://127.0.0.1/", "https://169.254.169.254/", "/again", "https://else.example"],
    )
    def test_a_redirect_is_a_reply_and_is_not_followed(self, location: str, net: Internet) -> None:
        server = net.serve(HTTPS, to(location, "307 Temporary Redirect"))
        assert send().status == 307
        assert len(server.requests) == len(net.connections) == 1

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("120", 120),
            ("9999999", 86_400),
            ("Mon, 23 Nov 2026 12:00:30 GMT", 30),
            ("Wed, 25 Nov 2026 12:00:00 GMT", 86_400),
            ("Mon, 23 Nov 2026 11:00:00 GMT", 1),
            ("0", 1),
            ("soon", None),
            ("", None),
            ("-5", None),
            ("9" * 5000, None),
            ("1 Jan " + "9" * 30 + " 00:00:00 +0000", None),
        ],
    )
    def test_retry_after_is_read_in_both_forms_and_is_at_most_a_day(
        self, header: str, seconds: int | None, net: Internet
    ) -> None:
        net.serve(HTTPS, http_response(b"", "429 Too Many Requests", retry_after=header))
        with clock.using(lambda: NOW):
            reply = send()
        assert (reply.status, reply.retry_after) == (429, seconds)

    def test_the_reply_has_the_duration_of_the_call(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [100.0]

        def slowly(sock: socket.socket) -> None:
            now[0] += 7.25
            http_response()(sock)

        net.serve(HTTPS, slowly)
        monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
        assert send().milliseconds == 7250

    @pytest.mark.parametrize("size", [MAX_KEPT, MAX_KEPT + 1, MAX_READ + 1, 10 * MB])
    def test_a_reply_keeps_one_kilobyte_of_a_body_of_any_size(
        self, size: int, net: Internet
    ) -> None:
        net.serve(HTTPS, http_response(b"x" * size))
        reply = send()
        assert (reply.status, reply.body) == (200, b"x" * MAX_KEPT)

    def test_at_most_64_kilobytes_are_read(self, net: Internet) -> None:
        class Counted(socket.socket):
            received = 0

            def recv_into(self, *args: object) -> int:  # type: ignore[override]
                count = super().recv_into(*args)  # type: ignore[arg-type]
                Counted.received += count
                return count

        ours, theirs = socket.socketpair()
        counted_socket = Counted(fileno=ours.detach())
        with theirs, counted_socket:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MB)
            theirs.setblocking(False)  # noqa: FBT003
            theirs.send(OK + b"\r\n" + b"x" * 10 * MB)
            limit = public_http.StrictDeadline(15)
            sock = public_http.BoundedSocket(counted_socket, limit, MAX_READ, step=15)
            with pytest.raises(TooLargeError):
                sock.makefile("rb").read()
        assert MAX_READ < Counted.received <= 2 * MAX_READ

    @pytest.mark.parametrize(
        "answer",
        [
            flood(OK + b"\r\n", bytes(MB)),
            http_response(b"short", content_length="500"),
            raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
            raw(OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n"),
            raw(OK + b"Content-Length: 5\r\n\r\n"),
        ],
        ids=["endless", "short", "bad chunk", "negative chunk", "absent"],
    )
    def test_a_bad_body_does_not_change_the_status(self, answer: Answer, net: Internet) -> None:
        net.serve(HTTPS, answer)
        reply = send(seconds=PATIENCE)
        assert reply.status == 200
        assert len(reply.body) <= MAX_KEPT

    def test_a_body_that_exceeds_the_time_limit_does_not_change_the_status(
        self, net: Internet
    ) -> None:
        def attempt(seconds: float) -> int | None:
            try:
                return send(seconds=seconds).status
            except UpstreamError:
                return None  # The headers did not arrive in time on a busy machine.

        net.serve(HTTPS, drip(OK + b"\r\n", b"."))
        assert stretched(attempt, 0.5, lambda status: status is not None) == 200


"""A reset is either of both: the reset can arrive after the end of the response."""


class TestFailure:
    def test_endless_headers_are_refused(self, net: Internet) -> None:
        net.serve(HTTPS, flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000))
        with pytest.raises(TooLargeError):
            send()

    @pytest.mark.parametrize(
        "answer", [silence, drip(b"", b"HTTP/1.1 200 OK" + b" " * 60_000)], ids=["hangs", "drips"]
    )
    def test_the_time_limit_ends_a_server_that_sends_no_status(
        self, answer: Answer, net: Internet
    ) -> None:
        net.serve(HTTPS, answer)
        with pytest.raises(UpstreamError, check=failed("too_slow", "files.example.com")):
            send(seconds=0.5)

    def test_a_server_may_think_for_longer_than_a_fetch_waits_for_a_read(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waits: list[float | None] = []

        def answer(sock: socket.socket) -> None:
            http_response()(sock)

        real = public_http.BoundedSocket.readinto

        def readinto(self: public_http.BoundedSocket, buffer: bytearray) -> int:
            count = real(self, buffer)
            waits.append(self._sock.gettimeout())
            return count

        monkeypatch.setattr(public_http.BoundedSocket, "readinto", readinto)
        net.serve(HTTPS, answer)
        assert send(seconds=300.0).status == 200
        assert max(filter(None, waits)) > public_http.STEP_SECONDS

    @pytest.mark.parametrize(
        ("answer", "keys"),
        [
            (reset, {"connection_closed", "malformed_response"}),
            (raw(b"SSH-2.0-x\r\n"), {"malformed_response"}),
            (raw(b""), {"malformed_response"}),
        ],
    )
    def test_a_failure_has_a_reason_without_an_address(
        self, answer: Answer, keys: set[str], net: Internet
    ) -> None:
        net.serve(HTTPS, answer)
        with pytest.raises(FetchError) as failure:
            send()
        assert isinstance(failure.value, UpstreamError)
        assert failure.value.key in keys
        assert failure.value.reason.startswith("files.example.com ")
        assert PUBLIC not in failure.value.reason

    def test_a_host_that_accepts_no_connection_is_a_failure(self, net: Internet) -> None:
        net.names["files.example.com"] = [PUBLIC]
        with pytest.raises(UpstreamError, check=failed("connection_closed")):
            send()


class TestLocalReceiver:
    @pytest.fixture
    def _to_loopback(
        self, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("WEBHOOKS_TO_LOOPBACK", "1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
        reload_settings()
        assert settings().webhooks_to_loopback

    @pytest.mark.usefixtures("_to_loopback")
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LOCALHOST"])
    def test_a_receiver_on_this_machine_is_reached_on_any_port(self, host: str) -> None:
        server = Server(http_response(b"thanks"))
        assert send(f"http://{host}:{server.port}/hook?a=b c").body == b"thanks"
        assert server.paths == ["/hook?a=b%20c"]
        server.close()

    @pytest.mark.usefixtures("_to_loopback")
    @pytest.mark.parametrize(
        "url",
        [
            "https://127.0.0.1/",
            "http://127.0.0.2/",
            "http://localhost.example.com/",
            "http://10.0.0.1/",
            "http://user@localhost/",
            "http://localhost:0/",
            "http://localhost:65536/",
            "http://169.254.169.254/",
            "http://localhost/\\",
            HTTP,
        ],
    )
    def test_other_addresses_are_refused(self, url: str, net: Internet) -> None:
        net.names = {"files.example.com": [PUBLIC], "localhost.example.com": ["127.0.0.1"]}
        with pytest.raises(RefusedUrlError):
            send(url)
        assert net.connections == []

    @pytest.mark.usefixtures("_to_loopback")
    def test_public_host_that_resolves_to_loopback_is_refused(self, net: Internet) -> None:
        net.names = {"files.example.com": ["127.0.0.1"]}
        with pytest.raises(RefusedUrlError):
            send()
        assert net.connections == []
