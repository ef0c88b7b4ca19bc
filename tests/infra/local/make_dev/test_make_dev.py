"""Settings, data folder and database of ``make dev``."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from infra.local import dev
from infra.local.data_dir import DataDir
from infra.local.demo import bakery
from infra.local.devserver.inboxes import telegram
from infra.local.dynamodb import SetupError
from infra.local.stack import LocalStack, OpenDatabase
from tests.infra.local.make_dev.helpers import RunningStack, chalice_local, processes_of
from tests.support.patience import PATIENCE, wait_for

pytestmark = pytest.mark.timeout(3 * PATIENCE)


GATEWAY_SECONDS = 29
"""The time after which API Gateway answers for the service."""


class TestSettings:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("PORT", "eight"),
            ("PORT", "0"),
            ("PORT", "65536"),
            ("PORT", "-1"),
            ("RATE_LIMIT_SCALE", "fast"),
            ("RATE_LIMIT_SCALE", "0"),
            ("RATE_LIMIT_SCALE", "-2"),
            ("DEMO", "none"),
            ("PATIENCE", "2"),
            ("DYNAMODB_ENDPOINT", "localhost:8001"),
        ],
    )
    def test_an_invalid_value_is_named_with_the_expected_form(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, value)
        with pytest.raises(SetupError, match=f'^{name} is "{value}"; expected '):
            LocalStack.from_environment()

    def test_an_empty_value_means_the_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in (
            "PORT",
            "DATA_DIR",
            "RATE_LIMIT_SCALE",
            "DYNAMODB_ENDPOINT",
            "DEMO",
            "PATIENCE",
        ):
            monkeypatch.setenv(name, "")
        stack = LocalStack.from_environment()
        assert stack.url == "http://127.0.0.1:8000"
        assert stack.data.path == Path.cwd() / ".local"
        assert stack.given_endpoint is None
        assert stack.has_demo_records
        assert stack.is_patient

    @pytest.mark.parametrize(
        ("environment", "language"),
        [
            ({}, "en"),
            ({"LANG": "C.UTF-8"}, "en"),
            ({"LANG": "de_DE.UTF-8"}, "en"),
            ({"LANG": "ru_RU.UTF-8"}, "ru"),
            ({"LANG": "ru_RU.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "en"),
            ({"LANG": "ru_RU.UTF-8", "LC_MESSAGES": "ru", "LC_ALL": "C"}, "en"),
            ({"LANG": "en_US.UTF-8", "LC_ALL": "ru_RU"}, "ru"),
            ({"LANG": "ru_RU.UTF-8", "LC_ALL": ""}, "ru"),
            ({"LANG": "ru_RU.UTF-8", "DEMO": "full"}, "ru"),
            ({"LANG": "ru_RU.UTF-8", "DEMO": "en"}, "en"),
            ({"LANG": "en_US.UTF-8", "DEMO": "ru"}, "ru"),
        ],
    )
    def test_the_demo_has_the_language_of_the_shell_unless_one_is_chosen(
        self, environment: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("LANG", "LC_ALL", "LC_MESSAGES", "DEMO"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        stack = LocalStack.from_environment()
        assert (stack.demo_language, stack.has_demo_records) == (language, True)

    def test_e_mail_is_stored_and_the_banner_names_its_page(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("DATA_DIR", str(tmp_path))
        stack = LocalStack.from_environment()
        environment = stack.environment("http://127.0.0.1:1")
        assert environment["MAIL"] == "file"
        assert environment["MAIL_FOLDER"] == str(tmp_path / "mail")
        assert (environment["SMS"], environment["SMS_FOLDER"]) == ("file", str(tmp_path / "sms"))
        banner = dev.banner(stack, OpenDatabase("", ""), None)
        sent = "/dev/mail, /dev/sms, /dev/telegram, /dev/max, /dev/webhooks and /dev/pay"
        assert f"{stack.url}{sent}\n" in banner

    def test_the_stack_has_a_telegram_of_its_own_unless_a_bot_is_given(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("TELEGRAM_BOT_TOKEN", raising=False)
        stack = LocalStack.from_environment()
        environment = stack.environment("http://127.0.0.1:1")
        assert environment["TELEGRAM_URL"] == f"{stack.url}/dev/telegram"
        assert environment["MAX_URL"] == f"{stack.url}/dev/max"
        assert environment["TELEGRAM_BOT_TOKEN"] == telegram.TOKEN
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:real")
        environment = stack.environment("http://127.0.0.1:1")
        assert environment["TELEGRAM_BOT_TOKEN"] == "123:real"
        assert "TELEGRAM_URL" not in environment

    def test_another_provider_of_mail_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MAIL", "smtp")
        environment = LocalStack.from_environment().environment("http://127.0.0.1:1")
        assert environment["MAIL"] == "smtp"

    def test_the_service_gets_no_real_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREAL")
        monkeypatch.setenv("AWS_PROFILE", "production")
        environment = LocalStack.from_environment().environment("http://127.0.0.1:1")
        assert environment["AWS_ACCESS_KEY_ID"] == "local"
        assert "AWS_PROFILE" not in environment


class TestDataDir:
    def test_files_are_readable_by_their_owner_only(self, tmp_path: Path) -> None:
        data = DataDir(tmp_path)
        data.demo = {"key": "secret"}
        assert (tmp_path / "demo.json").stat().st_mode & 0o777 == 0o600
        assert data.demo == {"key": "secret"}

    @pytest.mark.parametrize("content", ["", "{", "[]", "null"])
    def test_a_damaged_file_counts_as_missing(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "dev.json").write_text(content)
        assert DataDir(tmp_path).run == {}

    def test_one_process_holds_the_folder_at_a_time(self, tmp_path: Path) -> None:
        data = DataDir(tmp_path)
        first = data.try_lock()
        assert first
        assert DataDir(tmp_path).try_lock() is None
        first.close()
        second_lock = data.try_lock()
        assert second_lock
        second_lock.close()


class TestRefusals:
    def test_a_taken_port_is_refused(self, start_stack: Callable[..., RunningStack]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            run = start_stack(PORT=str(port))
            assert run.process.wait(PATIENCE) == 1
        assert f"make dev: Port {port} cannot be used: another program is using it" in run.output
        assert "PORT=8001 make dev" in run.output

    def test_a_data_folder_in_use_is_refused(
        self, start_stack: Callable[..., RunningStack], tmp_path: Path
    ) -> None:
        data = DataDir(tmp_path / "data")
        lock = data.try_lock()
        assert lock
        with lock:
            data.run = {"endpoint": "http://127.0.0.1:1", "port": 8765, "pids": {}}
            run = start_stack()
            assert run.process.wait(PATIENCE) == 1
        assert f"Another local stack (http://127.0.0.1:8765) is using {data.path}" in run.output
        assert data.run["port"] == 8765, "the living stand's file is left alone"

    def test_a_data_folder_that_cannot_be_written_is_refused(
        self, start_stack: Callable[..., RunningStack], tmp_path: Path
    ) -> None:
        (tmp_path / "data").touch()
        run = start_stack()
        assert run.process.wait(PATIENCE) == 1
        assert re.search(r"make dev: The data folder .*/data cannot be written", run.output)

    def test_an_endpoint_that_does_not_answer_is_refused(
        self, start_stack: Callable[..., RunningStack]
    ) -> None:
        run = start_stack(DYNAMODB_ENDPOINT="http://127.0.0.1:9")
        assert run.process.wait(PATIENCE) == 1
        assert "No DynamoDB answers at DYNAMODB_ENDPOINT=http://127.0.0.1:9. Start it" in run.output


class TestWithoutJava:
    """Without Java, moto's server is the database, with a notice."""

    @pytest.mark.slow
    def test_the_stack_serves_and_warns_that_data_is_not_kept(
        self, start_stack: Callable[..., RunningStack], no_java: dict[str, str], tmp_path: Path
    ) -> None:
        run = start_stack(**no_java, DEMO="en").wait_until_ready()
        assert "it will NOT survive a restart. DynamoDB Local needs Java 17" in run.output
        assert run.titles() == {bakery.load("en").site}
        for command in re.findall(r"^    (curl (?:.*\\\n)?.*)$", run.output, re.MULTILINE):
            process = subprocess.run(
                [*shlex.split(command), "--silent", "--fail"], capture_output=True, check=True
            )
            if "chat-stream" in command:
                assert process.stdout.splitlines()[-2].startswith(b'data: {"type":"done"')
            else:
                assert json.loads(process.stdout)["data"]["status"] is True
        assert run.titles() == {bakery.load("en").site, "My site"}
        assert run.stop(signal.SIGINT) == 0
        assert processes_of(tmp_path / "data") == []
        assert not (tmp_path / "data" / "dev.json").exists()
        logged = [json.loads(line) for line in (run.data / "service.log").read_text().splitlines()]
        assert "/api/projects/list" in {line.get("route") for line in logged}

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [[], ["--no-autoreload"], ["--stage", "prod"]])
    def test_chalice_local_starts_a_database(
        self,
        start_stack: Callable[..., RunningStack],
        no_java: dict[str, str],
        tmp_path: Path,
        options: list[str],
    ) -> None:
        run = start_stack(chalice_local(*options), **no_java, DEMO="en").wait_until_ready()
        assert "it will NOT survive a restart. DynamoDB Local needs Java 17" in run.output
        assert run.titles() == {bakery.load("en").site}
        run.stop()
        wait_for(lambda: processes_of(tmp_path / "data") == [])
        assert not (tmp_path / "data" / "dev.json").exists()

    @pytest.mark.slow
    def test_chalice_local_without_a_port_option_uses_the_environment(
        self, start_stack: Callable[..., RunningStack], no_java: dict[str, str]
    ) -> None:
        command = [part for part in chalice_local() if part not in {"--port", "{port}"}]
        run = start_stack(command, **no_java, DEMO="en").wait_until_ready()
        assert run.titles() == {bakery.load("en").site}

    @pytest.mark.slow
    def test_a_process_that_ends_by_itself_ends_the_rest(
        self, start_stack: Callable[..., RunningStack], no_java: dict[str, str], tmp_path: Path
    ) -> None:
        run = start_stack(**no_java).wait_until_ready()
        os.kill(run.pids["database"], signal.SIGKILL)
        assert run.process.wait(PATIENCE) == 1
        assert "make dev: The database ended by itself" in run.output
        assert processes_of(tmp_path / "data") == []

    @pytest.mark.slow
    def test_without_patience_a_database_that_hangs_is_a_503_as_on_aws(
        self, start_stack: Callable[..., RunningStack], no_java: dict[str, str]
    ) -> None:
        run = start_stack(**no_java, PATIENCE="0").wait_until_ready()
        headers = {"Authorization": f"Bearer {run.key}"}
        database = run.pids["database"]  # It is a group of processes.
        os.killpg(database, signal.SIGSTOP)  # It takes requests, and answers none.
        try:
            for method, path, body in (
                ("GET", "/api/projects/list", None),
                ("POST", "/api/projects/create", {"title": "Shop"}),
            ):
                answer = requests.request(
                    method, run.url + path, headers=headers, json=body, timeout=GATEWAY_SECONDS
                )
                assert answer.status_code == 503
        finally:
            os.killpg(database, signal.SIGCONT)
        wait_for(run.healthy)
        assert run.titles() <= {"Shop"}
