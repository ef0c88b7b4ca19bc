"""Cancellation of a stream from another thread."""

import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock
from typing import Any


class Cancellation:
    """Cancels one stream. ``cancel`` may be called in any thread, at any time and repeatedly."""

    def __init__(self) -> None:
        self._cancelled = Event()
        self._lock = Lock()
        self._sockets: list[socket.socket] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """End the stream, even while it waits. It then raises ``ModelError("cancelled")``."""
        self._cancelled.set()
        # A generator cannot be closed while it runs. Shutting the socket wakes its thread, which
        # waits for the provider most of the time.
        self.shut()

    def shut(self) -> None:
        """Shut the sockets of the current attempt without cancelling the stream."""
        with self._lock:
            for sock in self._sockets:
                _shut(sock)

    def limit_reads(self, seconds: float) -> None:
        """Set how long a read of the current attempt may wait for data."""
        with self._lock:
            for sock in self._sockets:
                with suppress(OSError):  # The socket may be closed already.
                    sock.settimeout(seconds)

    def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until the stream is cancelled."""
        self._cancelled.wait(seconds)

    @contextmanager
    def register_sockets(self) -> Iterator[None]:
        """Register the sockets of all requests that this thread sends in the ``with`` block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def release(self) -> None:
        """Forget the sockets, because their connections may serve other requests from now on."""
        with self._lock:
            self._sockets.clear()

    def register(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.append(sock)
            # The stream may have been cancelled while the request was being sent.
            if self.cancelled:
                _shut(sock)


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def _shut(sock: socket.socket) -> None:
    with suppress(OSError):  # The socket may be closed already.
        # SSLSocket.shutdown would discard the TLS state while the other thread reads.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def watch(pools: MutableMapping[str, Any]) -> None:
    """Make the connections of urllib3's pool classes, keyed by scheme, register their sockets."""
    for scheme, pool in pools.items():
        pools[scheme] = _registering(pool)


@cache
def _registering(pool: Any) -> Any:  # noqa: ANN401  a pool class of urllib3, which mypy cannot subclass
    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        def endheaders(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  passed on
            super().endheaders(*args, **options)
            cancellation = _current.get()
            if cancellation is not None:
                cancellation.register(self.sock)

    class Pool(pool):  # type: ignore[misc]
        ConnectionCls = Connection

    return Pool
