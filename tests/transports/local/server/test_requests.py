"""``chalice local`` handles requests like the deployed system."""

import json
from collections.abc import Callable

import pytest

from chalicelib.transports.http import MAX_BODY_BYTES
from tests.transports.conftest import CREATE, HEALTH, LocalServer, WireReply


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
            refusal = connection.reply()
        refused = json.loads(refusal.body)
        assert (refusal.status, refused["data"]["code"]) == (403, "forbidden")
        assert refusal.header("Access-Control-Allow-Origin") is None

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
            assert connection.has_ended()
        assert (reply.status, reply.data["code"]) == (413, "payload_too_large")
        assert reply.header("Connection") == "close"

    @pytest.mark.parametrize("target", ["/api/mcp", "/book/salon/mcp"])
    def test_a_tool_server_refuses_a_large_body_with_a_json_rpc_error(
        self, local_server: LocalServer, target: str
    ) -> None:
        head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 6000000\r\n\r\n"
        reply = local_server.request(head.encode())
        content = json.loads(reply.body)
        assert (reply.status, content["error"]["code"]) == (413, -32000)
        codes = {content["error"]["data"]["code"], content["data"]["code"]}
        assert codes == {"payload_too_large"}

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
            assert connection.has_ended()
        assert reply.status == status

    def test_a_stalled_body_is_408(
        self, send_partial_request: Callable[[bytes], WireReply]
    ) -> None:
        reply = send_partial_request(CREATE + b'Content-Length: 20\r\n\r\n{"ti')
        assert (reply.status, reply.data["code"]) == (408, "request_timeout")

    def test_stalled_headers_are_408(
        self, send_partial_request: Callable[[bytes], WireReply]
    ) -> None:
        assert send_partial_request(b"GET /api/health HTTP/1.1\r\nHo").status == 408
