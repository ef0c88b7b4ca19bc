"""Handlers for tests of the streaming runtime. The request's body controls what each does."""

import json
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from threading import Thread

from chalicelib.core.errors import NotFoundError
from chalicelib.transports.http import HttpRequest, HttpResponse

SSE = {"Content-Type": "text/event-stream; charset=utf-8"}
_started = count(1)


class _Unraisable:
    def __del__(self) -> None:
        raise ValueError("in a finalizer")


def _die() -> None:
    raise ValueError("in a thread")


def _run_in_thread(target: Callable[[], object]) -> None:
    thread = Thread(target=target)
    thread.start()
    thread.join()


NOISE: dict[str, Callable[[], object]] = {
    "warning": lambda: warnings.warn("an old name", FutureWarning, stacklevel=1),
    "library": lambda: logging.getLogger("botocore.somewhere").warning("a library's words"),
    "thread": lambda: _run_in_thread(_die),
    "exit of a thread": lambda: _run_in_thread(sys.exit),
    "finalizer": _Unraisable,
    "print": lambda: sys.stderr.write("two\nlines\n"),
    "traceback": traceback.print_stack,
    "bad record": lambda: logging.getLogger("chalicelib.x").info("%d", "no number"),
}
"""Ways to write to stderr without the log."""


def handle(request: HttpRequest) -> HttpResponse:
    """Send ``pieces`` events, with ``every`` seconds between them."""
    arguments = json.loads(request.body or b"{}")
    if arguments.get("missing"):
        raise NotFoundError("No such bot.")
    if arguments.get("crash"):
        raise RuntimeError("the secret reason")
    for kind in arguments.get("noise", ()):
        NOISE[kind]()
    seen: dict[str, object] = {
        "pid": os.getpid(),
        "started": next(_started),
        "ip": request.client_ip,
        "text": arguments.get("text"),
        "query": dict(request.query),
        "id": request.request_id,
        "trace": os.environ.get("_X_AMZN_TRACE_ID", ""),
    }
    if arguments.get("modules"):
        modules = list(sys.modules.items())
        seen["modules"] = {name: getattr(module, "__file__", None) for name, module in modules}
    return HttpResponse(200, _pieces(arguments, seen), SSE)


def _pieces(arguments: dict[str, object], seen: dict[str, object]) -> Iterator[bytes]:
    try:
        yield _event({"type": "start", **seen})
        for number in range(int(str(arguments.get("pieces", 0)))):
            if number == arguments.get("break"):
                raise RuntimeError("the secret reason")
            yield b""
            yield _event({"type": "chunk", "content": f"слово {number} ", "at": time.monotonic()})
            time.sleep(float(str(arguments.get("every", 0))))
        yield _event({"type": "done"})
    finally:
        if mark := arguments.get("mark"):
            Path(str(mark)).write_text("closed")
        if arguments.get("unclosable"):
            raise RuntimeError("the secret reason")


def _event(value: dict[str, object]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
