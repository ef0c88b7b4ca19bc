"""A fake internet with names, addresses and servers on loopback."""

import itertools
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
import trustme

from chalicelib.gateways import dns, public_http

Answer = Callable[[socket.socket], None]

PUBLIC = "93.184.216.34"


class Server:
    """A server on loopback that follows a script for each connection and records the requests.

    ``pages`` are responses for single paths, for any number of requests.
    """

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self.names: list[str | None] = []
        self.pages: dict[str, Answer] = {}
        self._answers = itertools.chain(answers, itertools.repeat(answers[-1]))
        self._tls = tls
        if tls:
            tls.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        # Closing alone does not end a thread that waits for a connection: it would wait for ever,
        # and could take a connection of a later server that gets the same file descriptor.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client, next(self._answers))).start()

    def _talk(self, client: socket.socket, answer: Answer) -> None:
        try:
            with client, self._tls.wrap_socket(client, True) if self._tls else client as sock:  # noqa: FBT003
                received = b""
                while b"\r\n\r\n" not in received:
                    piece = sock.recv(65536)
                    if not piece:
                        return
                    received += piece
                if length := re.search(rb"\r\nContent-Length: (\d+)\r\n", received):
                    end = received.index(b"\r\n\r\n") + 4 + int(length[1])
                    while len(received) < end:
                        received += sock.recv(65536)
                self.requests.append(received.decode())
                self.pages.get(received.decode().split(" ")[1], answer)(sock)
        except OSError:
            pass  # the client has disconnected

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]


class Internet:
    """Names with addresses, and addresses with servers. Records lookups and connections."""

    def __init__(self, authority: trustme.CA) -> None:
        self.names: dict[str, list[str]] = {}
        self.lookups: list[str] = []
        self.connections: list[tuple[str, int]] = []
        self._servers: dict[tuple[str, int], Server] = {}
        self._authority = authority

    def serve(
        self, url: str, *answers: Answer, address: str = PUBLIC, certified: str | None = None
    ) -> Server:
        """Serve a URL. The certificate is for the URL's host, unless another name is given."""
        parts = urlsplit(url)
        tls, host = None, str(parts.hostname)
        if parts.scheme == "https":
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._authority.issue_cert(certified or host).configure_cert(tls)
        server = Server(*answers, tls=tls)
        self.names.setdefault(host, [address])
        self._servers[address, parts.port or (443 if tls else 80)] = server
        return server

    def lookup(self, host: str, seconds: float) -> list[str]:
        self.lookups.append(host)
        return self.names.get(host, [])

    def connect(self, place: tuple[str, int], timeout: float) -> socket.socket:
        assert 0 < timeout <= public_http.STEP_SECONDS
        self.connections.append(place)
        if place not in self._servers:
            raise ConnectionRefusedError
        return socket.create_connection(("127.0.0.1", self._servers[place].port), timeout)

    def forget(self) -> None:
        """Make the internet empty again, for the next case of a sweep."""
        self.close()
        for collection in (self.names, self.lookups, self.connections, self._servers):
            collection.clear()

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


@pytest.fixture
def net(
    authority: trustme.CA, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Internet]:
    """An empty internet with a trusted certificate authority."""
    internet = Internet(authority)
    monkeypatch.setattr(public_http, "_tls", lambda: trusting)
    monkeypatch.setattr(public_http, "connect", internet.connect)
    monkeypatch.setattr(dns, "lookup_addresses", internet.lookup)
    yield internet
    internet.close()


def http_response(body: bytes = b"hello", status: str = "200 OK", **headers: str) -> Answer:
    """Send a valid response."""
    headers = {"content_length": str(len(body))} | headers
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    return raw(f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode("latin-1") + body)


def raw(data: bytes) -> Answer:
    """Respond with these bytes."""
    return lambda sock: sock.sendall(data)


def to(location: str, status: str = "302 Found") -> Answer:
    """Redirect to a URL."""
    return http_response(b"", status, location=location)


def drip(begin: bytes, forever: bytes, pause: float = 0.02) -> Answer:
    """Send a little at a time, without end."""

    def answer(sock: socket.socket) -> None:
        sock.sendall(begin)
        for byte in itertools.cycle(forever):
            sock.sendall(bytes([byte]))
            time.sleep(pause)

    return answer


def flood(begin: bytes, forever: bytes) -> Answer:
    """Send as fast as possible, without end."""

    def answer(sock: socket.socket) -> None:
        sock.sendall(begin)
        while True:
            sock.sendall(forever)

    return answer


def silence(sock: socket.socket) -> None:
    """Send nothing until the client disconnects."""
    sock.recv(1)


def reset(sock: socket.socket) -> None:
    """Reset the connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
