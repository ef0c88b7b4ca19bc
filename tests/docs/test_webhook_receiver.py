"""The receivers of docs/webhooks.md and docs/javascript.md verify requests of the service."""

import json
import subprocess
import threading
from datetime import UTC, datetime
from http.server import HTTPServer
from typing import Any

import pytest
from playwright._impl._driver import compute_driver_executable

from chalicelib.core import clock
from chalicelib.domains.webhooks.rules.signatures import signed_headers, webhook_secret
from chalicelib.gateways import post
from tests.docs.samples import samples

BODY = b'{"type": "webhook.test", "timestamp": "2026-11-23T09:00:00.000Z", "data": {"id": "1"}}'


def blocks_of(page: str, language: str) -> list[str]:
    return [s.code for s in samples() if (s.page, s.language) == (page, language)]


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
    (example,) = blocks_of("docs/webhooks.md", "python")
    names: dict[str, Any] = {}
    exec(compile(example, "webhooks.md", "exec"), names)  # noqa: S102  an example of the document
    with HTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        threading.Thread(target=server.handle_request).start()
        at = datetime.fromtimestamp(clock.now().timestamp(), UTC)
        headers = signed_headers([secret], "evt_1", at, BODY)
        reply = post.post(f"http://127.0.0.1:{server.server_port}/", body, headers)
    assert reply.status == status
    assert ("webhook.test 1" in capsys.readouterr().out) is (status == 204)


@pytest.mark.usefixtures("real_clock")  # with which the function compares
@pytest.mark.parametrize(
    ("body", "minutes", "is_signed"), [(BODY, 0, True), (BODY + b" ", 0, False), (BODY, -6, False)]
)
def test_the_javascript_accepts_what_is_signed_and_recent(
    body: bytes, minutes: int, is_signed: bool
) -> None:
    blocks = blocks_of("docs/javascript.md", "js")
    (function,) = [block for block in blocks if "function isSigned" in block]
    secrets = [webhook_secret(b"key", "workspace", webhook_id="webhook", version=n) for n in (2, 1)]
    at = datetime.fromtimestamp(clock.now().timestamp() + 60 * minutes, UTC)
    headers = {name.lower(): v for name, v in signed_headers(secrets, "evt_1", at, BODY).items()}
    arguments = ", ".join(json.dumps(value) for value in (secrets[1], headers, body.decode()))
    node, _ = compute_driver_executable()
    process = subprocess.run(
        [node, "--input-type=module", "--eval", f"{function}\nconsole.log(isSigned({arguments}));"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == f"{json.dumps(is_signed)}\n"
