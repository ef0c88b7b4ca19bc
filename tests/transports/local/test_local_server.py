"""``chalice local`` handles HTTP like the deployed system."""

import gzip
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from typing import Any

import chalice.local
import pytest
from chalice.app import Response
from chalice.config import Config

import app as application
from chalicelib.core import errors
from chalicelib.transports import chalice_app, schedules
from chalicelib.transports.http import MAX_BODY_BYTES, HttpRequest, HttpResponse
from infra.local import devserver
from infra.local.devserver import LocalRoute
from infra.local.devserver.server import Server
from tests.support.patience import PATIENCE, stretched, wait_for
from tests.transports.conftest import Connection, LocalServer, Records, WireReply, serving

HEALTH = b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
CREATE = b"POST /api/projects/create HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(autouse=True)
def _quiet(logged: Records, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Check that nothing is written outside the log, and that the log has no key."""
    yield
    assert "hush" not in "".join(logged.lines)
    written = capfd.readouterr()
    assert written.err == ""
    assert "Traceback" not in written.out


@pytest.fixture
def stalling(
    local_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[bytes], WireReply]:
    """Send part of a request to a server with a short read timeout, and return its answer.

    The server has closed the connection after the answer.
    """

    def send(sent: bytes) -> WireReply:
        def attempt(seconds: float) -> WireReply | None:
            monkeypatch.setattr(local_server.server, "timeout", seconds)
            # Without an answer, this thread was too slow to send the request.
            with local_server.connect() as connection, suppress(ConnectionError):
                connection.send(sent)
                reply = connection.reply() if connection.stream.peek(1) else None
                assert connection.at_end()
                return reply
            return None

        reply = stretched(attempt, 0.1, lambda reply: reply is not None)
        assert reply is not None
        return reply

    return send


class TestPathsAndMethods:
    def test_an_unknown_path_is_404_and_repeats_no_key(self, local_server: LocalServer) -> None:
        reply = local_server.request(
            b"GET /api/none HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hush\r\n\r\n"
        )
        assert (reply.status, reply.data["code"]) == (404, "not_found")
        assert b"hush" not in reply.body

    @pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "TRACE", "BREW"])
    def test_a_wrong_method_is_405_with_the_right_ones(
        self, local_server: LocalServer, method: str
    ) -> None:
        reply = local_server.request(f"{method} /api/health HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (reply.status, reply.header("Allow")) == (405, "GET, HEAD")

    def test_a_preflight_of_the_tool_server_is_answered_without_a_key(
        self, local_server: LocalServer
    ) -> None:
        preflight = (
            b"OPTIONS /api/mcp HTTP/1.1\r\nHost: x\r\nAccess-Control-Request-Method: POST\r\n"
            b"Access-Control-Request-Headers: authorization\r\nOrigin: %b\r\n\r\n"
        )
        with local_server.connect() as connection:
            connection.send(preflight % b"http://localhost:8000")
            assert connection.line() == b"HTTP/1.1 204 No Content\r\n"
            lines = list(iter(connection.line, b"\r\n"))
            assert b"Access-Control-Allow-Origin: http://localhost:8000\r\n" in lines
            connection.send(preflight % b"https://evil.example")
            refused = connection.reply()
        assert (refused.status, refused.data["code"]) == (403, "forbidden")
        assert refused.header("Access-Control-Allow-Origin") is None

    def test_path_and_method_are_checked_before_the_body(self, local_server: LocalServer) -> None:
        huge = b" HTTP/1.1\r\nHost: x\r\nContent-Length: 6000000\r\n\r\n"
        chunked = b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert local_server.request(b"POST /api/none" + huge).status == 404
        assert local_server.request(b"POST /api/none" + chunked).status == 404
        assert local_server.request(b"POST /api/health" + huge).status == 405
        assert local_server.request(b"POST /api/health" + chunked).status == 405

    def test_size_is_checked_before_the_type_and_the_type_before_the_key(
        self, local_server: LocalServer
    ) -> None:
        text = CREATE + b"Content-Type: text/plain\r\n"
        assert local_server.request(text + b"Content-Length: 6000000\r\n\r\n").status == 413
        assert local_server.request(text + b"Content-Length: 2\r\n\r\n{}").status == 415
        assert local_server.request(CREATE + b"Content-Length: 2\r\n\r\n{}").status == 401

    def test_head_has_no_body_and_leaves_the_connection_usable(
        self, local_server: LocalServer
    ) -> None:
        with local_server.connect() as connection:
            connection.send(HEALTH.replace(b"GET", b"HEAD"))
            head = connection.reply(to="HEAD")
            connection.send(HEALTH)
            assert connection.reply().status == 200
        assert head.status == 200
        assert int(head.header("Content-Length") or 0) > 0


class TestBodies:
    def test_a_client_that_sends_before_it_reads_still_receives_413(
        self, local_server: LocalServer
    ) -> None:
        with local_server.connect() as connection:
            head = CREATE + b"Content-Length: 60000000\r\n\r\n"
            connection.socket.sendall(
                head + b"a" * 60_000_000
            )  # Fails if the connection was reset.
            reply = connection.reply()
            assert connection.at_end()
        assert (reply.status, reply.data["code"]) == (413, "payload_too_large")
        assert reply.header("Connection") == "close"

    def test_a_body_at_the_limit_is_accepted(self, local_server: LocalServer) -> None:
        size = b"Content-Length: %d\r\n\r\n" % MAX_BODY_BYTES
        reply = local_server.request(CREATE + size + b" " * MAX_BODY_BYTES)
        assert reply.status == 401

    def test_chunks_are_joined_and_limited(self, local_server: LocalServer) -> None:
        chunked = CREATE + b"Transfer-Encoding: Chunked\r\n\r\n"
        with local_server.connect() as connection:
            connection.send(chunked + b"2;a=b\r\n{}\r\n0\r\nTrailer: a\r\n\r\n" + HEALTH)
            assert [connection.reply().status for _ in range(2)] == [401, 200]
        million = b"f4240\r\n" + b" " * 1_000_000 + b"\r\n"
        assert local_server.request(chunked + million * 5 + b"0\r\n\r\n").status == 401
        for chunks in (million * 5 + b"1\r\n \r\n0\r\n\r\n", b"f" * 20 + b"\r\n"):
            reply = local_server.request(chunked + chunks)
            assert (reply.status, reply.data["code"]) == (413, "payload_too_large")

    def test_a_client_that_waits_for_100_continue_gets_it(self, local_server: LocalServer) -> None:
        with local_server.connect() as connection:
            connection.send(CREATE + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert connection.line() == b"HTTP/1.1 100 Continue\r\n"
            assert connection.line() == b"\r\n"
            connection.send(b"{}")
            assert connection.reply().status == 401
            connection.send(HEALTH)
            assert connection.reply().status == 200

    @pytest.mark.parametrize(
        ("target", "status"), [("/api/projects/create", 413), ("/api/none", 404)]
    )
    def test_a_refused_body_gets_no_100_continue(
        self, local_server: LocalServer, target: str, status: int
    ) -> None:
        with local_server.connect() as connection:
            head = f"POST {target} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
            connection.send(head.encode() + b"Content-Length: 6000000\r\n\r\n")
            reply = connection.reply()
            assert connection.at_end()
        assert reply.status == status

    def test_a_stalled_body_is_408(self, stalling: Callable[[bytes], WireReply]) -> None:
        reply = stalling(CREATE + b'Content-Length: 20\r\n\r\n{"ti')
        assert (reply.status, reply.data["code"]) == (408, "request_timeout")

    def test_stalled_headers_are_408(self, stalling: Callable[[bytes], WireReply]) -> None:
        assert stalling(b"GET /api/health HTTP/1.1\r\nHo").status == 408


class TestConnections:
    def test_an_answer_is_sent_before_the_previous_one_is_acknowledged(
        self, local_server: LocalServer
    ) -> None:
        """Nagle's algorithm (RFC 896) is switched off. It would delay each answer by 44 ms."""
        with local_server.connect() as connection:
            connection.send(HEALTH)
            assert connection.reply().status == 200
            client = connection.socket.getsockname()
            (served,) = (
                each.socket
                for each in local_server.server._open
                if each.socket.fileno() >= 0 and (each.remote_addr, each.remote_port) == client
            )
            assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    def test_pipelined_requests_are_answered_in_order(self, local_server: LocalServer) -> None:
        post = CREATE + b"Content-Length: 2\r\n\r\n{}"
        with local_server.connect() as connection:
            connection.send(
                HEALTH + post + HEALTH.replace(b"health", b"none") + HEALTH.replace(b"GET", b"HEAD")
            )
            statuses = [connection.reply(to=to).status for to in ("GET", "POST", "GET", "HEAD")]
            connection.send(HEALTH)
            assert connection.reply().status == 200
        assert statuses == [200, 401, 404, 200]

    @pytest.mark.parametrize(
        "framing",
        [
            b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
            b"Content-Length: 2\r\nContent-Length: 30\r\n",
            b"Transfer-Encoding: chunked, chunked\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
            b"Content-Length: 6000000\r\n",
            b"Content-Length : 2\r\n",
        ],
    )
    def test_no_request_is_answered_after_one_with_an_unknown_end(
        self, local_server: LocalServer, framing: bytes
    ) -> None:
        with local_server.connect() as connection:
            connection.send(CREATE + framing + b"\r\n0\r\n\r\n" + HEALTH * 3)
            assert connection.reply().status in {400, 413}
            assert connection.at_end()

    def test_http_1_0_closes_unless_asked_to_keep_alive(self, local_server: LocalServer) -> None:
        with local_server.connect() as connection:
            connection.send(b"GET /api/health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
            assert connection.reply().header("Connection") == "Keep-Alive"
            connection.send(b"GET /api/health HTTP/1.0\r\n\r\n")
            assert connection.reply().status == 200
            assert connection.at_end()

    def test_connection_close_is_honoured(self, local_server: LocalServer) -> None:
        with local_server.connect() as connection:
            connection.send(HEALTH.replace(b"Host: x", b"Host: x\r\nConnection: TE, Close"))
            assert connection.reply().header("Connection") == "close"
            assert connection.at_end()

    def test_an_idle_connection_is_closed_without_an_answer(
        self, stalling: Callable[[bytes], WireReply]
    ) -> None:
        assert stalling(HEALTH).status == 200

    def test_disconnected_clients_leave_no_threads(
        self, local_server: LocalServer, logged: Records
    ) -> None:
        for sent in (
            b"",
            b"GET /api/hea",
            HEALTH[:-2],
            CREATE + b"Content-Length: 1000\r\n\r\n{",
            HEALTH * 200,
            b"GET /api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
        ):
            for reset in (False, True):
                with local_server.connect() as connection:
                    connection.send(sent)
                    if reset:
                        option = struct.pack("ii", 1, 0)
                        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        wait_for(lambda: local_server.busy == 0)
        assert logged.errors == []
        assert local_server.healthy()

    def test_a_burst_of_connections_is_accepted(self, local_server: LocalServer) -> None:
        connections = [local_server.connect() for _ in range(100)]
        for connection in connections:
            connection.send(HEALTH)
        assert {connection.reply().status for connection in connections} == {200}
        for connection in connections:
            connection.__exit__()


class TestOtherApps:
    """The server's behaviour with any app, tested with a small one."""

    @pytest.fixture
    def echo(self) -> chalice_app.App:
        made = chalice_app.App(app_name="echo", configure_logs=False)

        @made.route("/echo/{word}", methods=["POST"], content_types=[])
        def echo(word: str) -> Response:
            request = made.current_request
            assert request is not None
            body = {
                "word": word,
                "body": request.raw_body.hex(),
                "query": {name: request.query_params.getlist(name) for name in request.query_params}
                if request.query_params
                else {},
                "address": request.context["identity"]["sourceIp"],
                "headers": dict(request.headers),
            }
            return Response({"data": {"status": True, **body}})

        @made.route("/open", methods=["GET"], cors=True)
        def open_to_all() -> Response:
            return Response("", status_code=304, headers={"ETag": '"a"'})

        return made

    def post(self, server: LocalServer, target: str, body: bytes = b"", more: bytes = b"") -> Any:
        head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n".encode()
        return server.request(head + more + b"\r\n" + body).data

    def test_binary_bodies_arrive_byte_for_byte(self, echo: chalice_app.App) -> None:
        body = bytes(range(256)) * 100
        with serving(echo) as server:
            for kind in (
                b"multipart/form-data; boundary=a",
                b"application/octet-stream",
                b"image/png",
            ):
                data = self.post(server, "/echo/a", body, b"Content-Type: " + kind + b"\r\n")
                assert bytes.fromhex(data["body"]) == body

    def test_path_query_headers_and_address_arrive(self, echo: chalice_app.App) -> None:
        with serving(echo) as server:
            data = self.post(
                server, "/echo/%D0%B0%2Fb;c?p=1&p=2&q=%D0%BF&r", more=b"X: 1\r\nx: 2\r\n"
            )
        assert (
            data["word"] == "%D0%B0%2Fb%3Bc"
        )  # As on API Gateway, whose adapter unquotes the path.
        assert data["query"] == {"p": ["1", "2"], "q": ["п"], "r": [""]}
        assert data["headers"]["x"] == "1, 2"
        assert data["address"] == "127.0.0.1"

    def test_concurrent_requests_do_not_mix(self, echo: chalice_app.App) -> None:
        with serving(echo) as server, ThreadPoolExecutor(16) as pool:
            words = [f"w{i}" for i in range(200)]
            answers = pool.map(lambda word: self.post(server, f"/echo/{word}")["word"], words)
            assert list(answers) == words

    def test_a_preflight_is_answered_if_the_route_allows_other_origins(
        self, echo: chalice_app.App
    ) -> None:
        with serving(echo) as server:
            reply = server.request(
                b"OPTIONS /open HTTP/1.1\r\nHost: x\r\nOrigin: https://y\r\n\r\n"
            )
        assert reply.status == 200
        assert reply.header("Access-Control-Allow-Origin") == "*"
        assert reply.header("X-Request-Id")

    def test_an_answer_without_a_body_has_no_content_length(self, echo: chalice_app.App) -> None:
        with serving(echo) as server, server.connect() as connection:
            connection.send(b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.line() == b"HTTP/1.1 304 Not Modified\r\n"
            lines = list(iter(connection.line, b"\r\n"))
        assert b'ETag: "a"\r\n' in lines
        assert not any(line.startswith(b"Content-Length") for line in lines)

    def test_a_crash_is_500_in_the_envelope(self, logged: Records) -> None:
        class Crashing(chalice_app.App):
            def __call__(self, *_: Any) -> Any:
                raise RuntimeError("out of order")

        with serving(Crashing(app_name="crashing", configure_logs=False)) as server:
            reply = server.request(HEALTH)
        assert (reply.status, reply.data["code"]) == (500, "internal_error")
        assert b"out of order" not in reply.body
        assert len(logged.errors) == 1

    def test_a_local_route_takes_precedence_over_the_app(self, echo: chalice_app.App) -> None:
        def shout(request: HttpRequest) -> HttpResponse:
            if request.method != "POST":
                raise errors.MethodNotAllowedError("Only POST.")
            prefix = f"{request.path['proxy']} {request.query} {request.client_ip} ".encode()
            return HttpResponse(200, prefix + request.body.upper())

        route = LocalRoute("/say/", shout, max_body_bytes=2)
        with serving(echo, route) as server, server.connect() as connection:
            connection.send(
                b"POST /say/%D0%B0/b?q=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
            )
            assert connection.reply().body.decode() == "а/b {'q': ['1']} 127.0.0.1 HI"
            connection.send(HEALTH)
            assert connection.reply().status == 404
            connection.send(HEALTH.replace(b"/api/health", b"/say/"))
            assert connection.reply().status == 405
            connection.send(b"POST /say/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n")
            assert connection.reply().status == 413


SMALL_PROJECT = """
from chalicelib.core import logs
from chalicelib.transports import chalice_app
from infra.local import devserver
logs.configure()
app = chalice_app.App(app_name="small", configure_logs=False)
chalice_app.mount(app)
devserver.install()
"""


class TestServing:
    def test_scheduled_jobs_run_while_the_server_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done: list[str] = []
        monkeypatch.setattr(chalice.local, "LocalDevServer", chalice.local.LocalDevServer)
        monkeypatch.setattr(schedules, "run_in_background", lambda: done.append("due work"))
        monkeypatch.setattr(Server, "prepare", lambda _: done.append("prepare"))
        monkeypatch.setattr(Server, "serve", lambda _: done.append("serve"))
        devserver.install()
        server: Any = chalice.local.LocalDevServer(application.app, Config(), "127.0.0.1", 0)
        assert done == []
        server.serve_forever()
        assert done == ["prepare", "due work", "serve"]

    def test_installing_the_server_starts_no_jobs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(chalice.local, "LocalDevServer", chalice.local.LocalDevServer)
        before = set(threading.enumerate())
        devserver.install()
        assert set(threading.enumerate()) <= before

    def test_chalices_own_command_uses_the_server_and_logs_no_key(self, tmp_path: Path) -> None:
        (tmp_path / ".chalice").mkdir()
        (tmp_path / ".chalice/config.json").write_text('{"app_name": "small"}')
        (tmp_path / "app.py").write_text(SMALL_PROJECT)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        home = Path(application.__file__).parent
        places = {"PYTHONPATH": str(home), "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9"}
        command = [Path(sys.executable).with_name("chalice"), "local", "--no-autoreload"]
        written = tmp_path / "written"
        with written.open("wb") as file:
            process = subprocess.Popen(
                [*command, "--port", str(port)],
                cwd=tmp_path,
                env={**os.environ, **places},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(lambda: _answers(port) or process.poll() is not None)
            assert process.poll() is None, written.read_text()
            with Connection(port) as connection:
                connection.send(
                    b"BREW /api/health?a HTTP/1.1\r\nHost: x\r\nAuthorization: hush\r\n\r\n"
                )
                reply = connection.reply()
            assert reply.status == 405
        finally:
            process.terminate()
            process.wait(PATIENCE)
        text = written.read_text()
        assert '"route": "/api/health"' in text
        assert "hush" not in text
        assert not re.search(r'"[A-Z]+ /\S* HTTP/1', text)


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except (OSError, RemoteDisconnected):
        return False
    finally:
        connection.close()


class TestCompression:
    """Compression as in API Gateway (``minimum_compression_size``)."""

    def test_a_large_answer_is_compressed_for_clients_that_accept_gzip(
        self, local_server: LocalServer
    ) -> None:
        request = b"GET /api/docs/errors HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %b\r\n\r\n"
        plain = local_server.request(request % b"identity")
        for accepted in (b"gzip", b"br, gzip;q=0.5", b"deflate, gzip"):
            small = local_server.request(request % accepted)
            assert small.header("Content-Encoding") == "gzip"
            assert gzip.decompress(small.body) == plain.body
            assert len(small.body) * 2 < len(plain.body)
            assert small.header("ETag") == plain.header("ETag")
        for refused in (b"gzip;q=0", b"gzip; q=0.0, br", b"br"):
            assert local_server.request(request % refused).header("Content-Encoding") is None

    def test_a_small_answer_is_not_compressed(self, local_server: LocalServer) -> None:
        request = b"GET /api/health HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"
        assert local_server.request(request).header("Content-Encoding") is None
