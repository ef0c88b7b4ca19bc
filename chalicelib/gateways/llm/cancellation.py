"""Ending a stream from another thread.

A generator cannot be closed while it runs, and the thread that runs it waits for a provider most
of the time. What wakes it is shutting the socket that it waits on, so connections tell here which
socket a request takes.
"""

import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock
from typing import Any


class Cancellation:
    """Cancels one stream. It may be cancelled in any thread, at any time, and more than once."""

    def __init__(self) -> None:
        self._cancelled = Event()
        self._lock = Lock()
        self._sockets: list[socket.socket] = []

    @property
    def cancelled(self) -> bool:
        """Whether the stream is to end."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """End the stream: it raises ``ModelError("cancelled")``, whatever it waits for."""
        self._cancelled.set()
        self.shut()

    def shut(self) -> None:
        """Shut the sockets of the attempt under way, as its deadline does."""
        with self._lock:
            for each in self._sockets:
                _shut(each)

    def pause(self, seconds: float) -> None:
        """Wait, unless it is cancelled meanwhile."""
        self._cancelled.wait(seconds)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have the connections that this thread uses in the ``with`` block tell their sockets."""
        before = _watching.set(self)
        try:
            yield
        finally:
            _watching.reset(before)

    def release(self) -> None:
        """Forget the sockets: their connections may serve others from now on."""
        with self._lock:
            self._sockets.clear()

    def take(self, taken: socket.socket) -> None:
        """Take a socket that a request has just gone out on."""
        with self._lock:
            self._sockets.append(taken)
            if self.cancelled:
                _shut(taken)


_watching: ContextVar[Cancellation | None] = ContextVar("watching", default=None)


def _shut(taken: socket.socket) -> None:
    with suppress(OSError):  # It may be closed already.
        # Not as TLS does: that would drop its state under the thread that reads.
        socket.socket.shutdown(taken, socket.SHUT_RDWR)


def watch(pools: MutableMapping[str, Any]) -> None:
    """Have the connections of urllib3's pools, by scheme, tell their sockets."""
    for scheme, pool in pools.items():
        pools[scheme] = _watched(pool)


@cache
def _watched(pool: Any) -> Any:  # noqa: ANN401  one of urllib3's pool classes, which mypy cannot derive from
    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        def endheaders(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  passed on
            super().endheaders(*args, **options)
            cancellation = _watching.get()
            if cancellation is not None:
                cancellation.take(self.sock)

    class Pool(pool):  # type: ignore[misc]
        ConnectionCls = Connection

    return Pool
