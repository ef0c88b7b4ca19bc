"""``chalice local`` serves any app, tested with a small one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from chalice.app import Response

from chalicelib.core import errors
from chalicelib.transports import chalice_app
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local.devserver import LocalRoute
from tests.transports.conftest import HEALTH, LocalServer, Records, serving


class TestOtherApps:
    @pytest.fixture
    def echo(self) -> chalice_app.App:
        other_app = chalice_app.App(app_name="echo", configure_logs=False)

        @other_app.route("/echo/{word}", methods=["POST"], content_types=[])
        def echo(word: str) -> Response:
            request = other_app.current_request
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

        @other_app.route("/open", methods=["GET"], cors=True)
        def open_to_all() -> Response:
            return Response("", status_code=304, headers={"ETag": '"a"'})

        return other_app

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

    def test_a_crash_is_500_in_the_envelope(self, log_records: Records) -> None:
        class Crashing(chalice_app.App):
            def __call__(self, *_: Any) -> Any:
                raise RuntimeError("out of order")

        with serving(Crashing(app_name="crashing", configure_logs=False)) as server:
            reply = server.request(HEALTH)
        assert (reply.status, reply.data["code"]) == (500, "internal_error")
        assert b"out of order" not in reply.body
        assert len(log_records.errors) == 1

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
