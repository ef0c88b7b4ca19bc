"""Starting ``chalice local`` with its scheduled jobs."""

import os
import re
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from typing import Any

import chalice.local
import pytest
from chalice.config import Config

import app as application
from chalicelib.transports import scheduled_functions
from infra.local import devserver
from infra.local.devserver.server import Server
from tests.support.patience import PATIENCE, wait_for
from tests.transports.conftest import Connection

SMALL_PROJECT = """
from chalicelib.core import logs
from chalicelib.transports import chalice_app, routes
from infra.local import devserver
logs.configure()
app = chalice_app.App(app_name="small", configure_logs=False)
routes.mount(app)
devserver.install()
"""


class TestServing:
    def test_scheduled_jobs_run_while_the_server_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs: list[str] = []
        monkeypatch.setattr(chalice.local, "LocalDevServer", chalice.local.LocalDevServer)
        monkeypatch.setattr(
            scheduled_functions, "run_in_background", lambda: runs.append("due work")
        )
        monkeypatch.setattr(Server, "prepare", lambda _: runs.append("prepare"))
        monkeypatch.setattr(Server, "serve", lambda _: runs.append("serve"))
        devserver.install()
        server: Any = chalice.local.LocalDevServer(application.app, Config(), "127.0.0.1", 0)
        assert runs == []
        server.serve_forever()
        assert runs == ["prepare", "due work", "serve"]

    def test_installing_the_server_starts_no_jobs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(chalice.local, "LocalDevServer", chalice.local.LocalDevServer)
        threads_before = set(threading.enumerate())
        devserver.install()
        assert set(threading.enumerate()) <= threads_before

    def test_chalices_own_command_uses_the_server_and_logs_no_key(self, tmp_path: Path) -> None:
        (tmp_path / ".chalice").mkdir()
        (tmp_path / ".chalice/config.json").write_text('{"app_name": "small"}')
        (tmp_path / "app.py").write_text(SMALL_PROJECT)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        home = Path(application.__file__).parent
        places = {"PYTHONPATH": str(home), "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9"}
        command = [Path(sys.executable).with_name("chalice"), "local", "--no-autoreload"]
        output = tmp_path / "written"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*command, "--port", str(port)],
                cwd=tmp_path,
                env={**os.environ, **places},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(lambda: _answers(port) or process.poll() is not None)
            assert process.poll() is None, output.read_text()
            with Connection(port) as connection:
                connection.send(
                    b"BREW /api/health?a HTTP/1.1\r\nHost: x\r\nAuthorization: hush\r\n\r\n"
                )
                reply = connection.reply()
            assert reply.status == 405
        finally:
            process.terminate()
            process.wait(PATIENCE)
        text = output.read_text()
        assert '"route": "/api/health"' in text
        assert "hush" not in text
        assert not re.search(r'"[A-Z]+ /\S* HTTP/1', text)


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except (OSError, RemoteDisconnected):
        return False
    finally:
        connection.close()
