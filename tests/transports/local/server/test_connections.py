"""``chalice local`` handles connections as HTTP/1.1 requires."""

import socket
import struct
from collections.abc import Callable

import pytest

from tests.support.patience import wait_for
from tests.transports.conftest import CREATE, HEALTH, LocalServer, Records, WireReply


class TestConnections:
    def test_an_answer_is_sent_before_the_previous_one_is_acknowledged(
        self, local_server: LocalServer
    ) -> None:
        """Nagle's algorithm (RFC 896) is switched off. It would delay each response by 44 ms."""
        with local_server.connect() as connection:
            connection.send(HEALTH)
            assert connection.reply().status == 200
            client = connection.socket.getsockname()
            (served,) = (
                connection.socket
                for connection in local_server.server._open
                if connection.socket.fileno() >= 0
                and (connection.remote_addr, connection.remote_port) == client
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
            assert connection.has_ended()

    def test_http_1_0_closes_unless_asked_to_keep_alive(self, local_server: LocalServer) -> None:
        with local_server.connect() as connection:
            connection.send(b"GET /api/health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
            assert connection.reply().header("Connection") == "Keep-Alive"
            connection.send(b"GET /api/health HTTP/1.0\r\n\r\n")
            assert connection.reply().status == 200
            assert connection.has_ended()

    def test_connection_close_is_honoured(self, local_server: LocalServer) -> None:
        with local_server.connect() as connection:
            connection.send(HEALTH.replace(b"Host: x", b"Host: x\r\nConnection: TE, Close"))
            assert connection.reply().header("Connection") == "close"
            assert connection.has_ended()

    def test_an_idle_connection_is_closed_without_an_answer(
        self, send_partial_request: Callable[[bytes], WireReply]
    ) -> None:
        assert send_partial_request(HEALTH).status == 200

    def test_disconnected_clients_leave_no_threads(
        self, local_server: LocalServer, log_records: Records
    ) -> None:
        for request in (
            b"",
            b"GET /api/hea",
            HEALTH[:-2],
            CREATE + b"Content-Length: 1000\r\n\r\n{",
            HEALTH * 200,
            b"GET /api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
        ):
            for reset in (False, True):
                with local_server.connect() as connection:
                    connection.send(request)
                    if reset:
                        option = struct.pack("ii", 1, 0)
                        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        wait_for(lambda: local_server.busy == 0)
        assert log_records.errors == []
        assert local_server.healthy()

    def test_a_burst_of_connections_is_accepted(self, local_server: LocalServer) -> None:
        connections = [local_server.connect() for _ in range(100)]
        for connection in connections:
            connection.send(HEALTH)
        assert {connection.reply().status for connection in connections} == {200}
        for connection in connections:
            connection.__exit__()
