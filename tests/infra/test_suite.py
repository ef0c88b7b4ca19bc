"""Checks of the test suite itself."""

import socket

import pytest

from tests.support.loopback import OutsideError

OUTSIDE = ("192.0.2.1", 9)
"""An address that is not in use (RFC 5737)."""


class TestNetwork:
    @pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["TCP", "UDP"])
    def test_the_network_cannot_be_reached(self, kind: socket.SocketKind) -> None:
        with socket.socket(socket.AF_INET, kind) as sock:
            for reach in (sock.connect, sock.connect_ex, lambda place: sock.sendto(b"x", place)):
                with pytest.raises(OutsideError, match=r"192\.0\.2\.1"):
                    reach(OUTSIDE)

    def test_names_cannot_be_resolved(self) -> None:
        with pytest.raises(OutsideError):
            socket.create_connection(("example.com", 80))

    def test_loopback_can_be_reached(self) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(("localhost", server.getsockname()[1])),
        ):
            pass
        one, other = socket.socketpair()
        with one, other:
            one.sendall(b"x")
