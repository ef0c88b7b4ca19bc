"""Handlers for tests of the streaming runtime. The request's body controls what each does."""

import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from chalicelib.core.errors import NotFoundError
from chalicelib.transports.http import HttpRequest, HttpResponse

SSE = {"Content-Type": "text/event-stream; charset=utf-8"}
_started = count(1)


def handle(request: HttpRequest) -> HttpResponse:
    """Send ``pieces`` events, with ``every`` seconds between them."""
    asked = json.loads(request.body or b"{}")
    if asked.get("missing"):
        raise NotFoundError("No such bot.")
    if asked.get("crash"):
        raise RuntimeError("the secret reason")
    seen: dict[str, object] = {
        "pid": os.getpid(),
        "started": next(_started),
        "ip": request.client_ip,
        "text": asked.get("text"),
        "query": dict(request.query),
        "id": request.request_id,
        "trace": os.environ.get("_X_AMZN_TRACE_ID", ""),
    }
    if asked.get("modules"):
        modules = list(sys.modules.items())
        seen["modules"] = {name: getattr(each, "__file__", None) for name, each in modules}
    return HttpResponse(200, _pieces(asked, seen), SSE)


def _pieces(asked: dict[str, object], seen: dict[str, object]) -> Iterator[bytes]:
    try:
        yield _event({"type": "start", **seen})
        for number in range(int(str(asked.get("pieces", 0)))):
            if number == asked.get("break"):
                raise RuntimeError("the secret reason")
            yield b""
            yield _event({"type": "chunk", "content": f"слово {number} ", "at": time.monotonic()})
            time.sleep(float(str(asked.get("every", 0))))
        yield _event({"type": "done"})
    finally:
        if mark := asked.get("mark"):
            Path(str(mark)).write_text("closed")
        if asked.get("unclosable"):
            raise RuntimeError("the secret reason")


def _event(value: dict[str, object]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
