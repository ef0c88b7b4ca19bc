"""The receiver of docs/webhooks.md verifies requests of the service."""

import threading
from datetime import UTC, datetime
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.domains.webhooks.rules.signatures import signed_headers, webhook_secret
from chalicelib.gateways import post
from tests.docs.test_examples import BLOCK, DOCS

BODY = b'{"type": "webhook.test", "timestamp": "2026-11-23T09:00:00.000Z", "data": {"id": "1"}}'


@pytest.mark.usefixtures("real_clock")  # with which the receiver compares
@pytest.mark.parametrize(("body", "status"), [(BODY, 204), (BODY + b" ", 401)])
def test_it_accepts_what_is_signed_and_nothing_else(
    body: bytes,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret = webhook_secret(b"key", "workspace", webhook_id="webhook", version=1)
    monkeypatch.setenv("WEBHOOK_SECRET", secret)
    monkeypatch.setenv("WEBHOOKS_TO_LOOPBACK", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    reload_settings()
    (example,) = BLOCK.findall(Path(DOCS / "webhooks.md").read_text())
    names: dict[str, Any] = {}
    exec(compile(example, "webhooks.md", "exec"), names)  # noqa: S102  an example of the document
    with HTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        threading.Thread(target=server.handle_request).start()
        at = datetime.fromtimestamp(clock.now().timestamp(), UTC)
        headers = signed_headers([secret], "evt_1", at, BODY)
        reply = post.post(f"http://127.0.0.1:{server.server_port}/", body, headers)
    assert reply.status == status
    assert ("webhook.test 1" in capsys.readouterr().out) is (status == 204)
