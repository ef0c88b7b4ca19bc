"""The page of ``make dev`` to read the SMS that the service sends."""

from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.core.principals import PLATFORM
from chalicelib.gateways import sms
from tests.transports.conftest import LocalServer
from tests.transports.local.test_local_mail import get

HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(autouse=True)
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Path:
    monkeypatch.setenv("SMS", "file")
    monkeypatch.setenv("SMS_FOLDER", str(tmp_path))
    reload_settings()
    return tmp_path


def test_sms_are_shown_with_their_segments(local_server: LocalServer) -> None:
    assert "No SMS yet" in get(local_server, "/dev/sms").body.decode()
    text = f"Вы записаны на 30.11 {HOSTILE} http://127.0.0.1:8000/b/abc"
    sms.send("+79147001234", text, message_id="one", origin=PLATFORM)
    page = get(local_server, "/dev/sms").body.decode()
    assert "+79147001234" in page
    assert "<td>2</td>" in page
    assert HOSTILE not in page
    assert '<a href="http://127.0.0.1:8000/b/abc"' in page


def test_sms_are_only_read(local_server: LocalServer) -> None:
    assert get(local_server, "/dev/sms", "POST").status == 405
    assert get(local_server, "/dev/sms", "HEAD").status == 200


def test_there_is_no_page_without_the_folder(
    local_server: LocalServer,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    monkeypatch.setenv("SMS", "off")
    reload_settings()
    assert get(local_server, "/dev/sms").status == 404
