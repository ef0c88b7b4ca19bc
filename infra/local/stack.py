"""The settings, data folder and database of the local stack."""

import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from infra.local import dynamodb, supervisor
from infra.local.data_dir import DataDir
from infra.local.demo.texts import LANGUAGES, Language
from infra.local.dynamodb import Database, DynamoDBLocalMissingError, SetupError

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
START_SECONDS = 180
"""Seconds that another local stack may take until its database responds, on a busy machine."""
ENDPOINT = "AWS_ENDPOINT_URL_DYNAMODB"
LOCAL_AWS = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Fake credentials, so that no local process can reach a real account."""
DEMO_BALANCE = "100000"
"""Kopecks in the balance of a new workspace's owner, so that its bots can answer."""
REAL_AWS = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
"""Variables of a developer's shell that would override the fake credentials."""


@dataclass(frozen=True)
class OpenDatabase:
    """A running database.

    ``note`` says where its data is. ``server`` is its process if this process started it.
    """

    endpoint: str
    note: str
    server: Database | None = None


@dataclass(frozen=True)
class LocalStack:
    """The settings from the environment."""

    port: int
    data: DataDir
    given_endpoint: str | None
    has_demo_records: bool = True
    """Whether the demo workspace gets records. With ``DEMO=empty`` it has only its key."""
    demo_language: Language = "en"
    """The language of a demo that this start creates."""
    is_patient: bool = True
    """Whether requests have more time than on AWS (``workarounds.be_patient``)."""

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{HOST}:{self.port}"

    @classmethod
    def from_environment(cls, port: str | None = None) -> "LocalStack":
        """Read the environment. A port from the command line takes precedence.

        Raises:
            SetupError: a value is invalid.
        """
        port = port or os.environ.get("PORT") or "8000"
        if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:  # noqa: PLR2004  TCP's range
            msg = f'PORT is "{port}"; expected a number from 1 to 65535, such as PORT=8001.'
            raise SetupError(msg)
        scale = os.environ.get("RATE_LIMIT_SCALE") or "1"
        if not re.fullmatch(r"[0-9]*\.?[0-9]+", scale) or not float(scale):
            msg = f'RATE_LIMIT_SCALE is "{scale}"; expected a number above 0, such as 10.'
            raise SetupError(msg)
        demo = os.environ.get("DEMO") or "full"
        if demo not in {"full", "empty", *LANGUAGES}:
            msg = (
                f'DEMO is "{demo}"; expected en or ru for its language, full for the language of'
                " the shell, or empty for a workspace without records."
            )
            raise SetupError(msg)
        endpoint = os.environ.get("DYNAMODB_ENDPOINT") or None
        if endpoint and not re.match(r"https?://[^/]", endpoint):
            msg = f'DYNAMODB_ENDPOINT is "{endpoint}"; expected a URL such as http://{HOST}:8001.'
            raise SetupError(msg)
        patience = os.environ.get("PATIENCE") or "1"
        if patience not in {"0", "1"}:
            msg = f'PATIENCE is "{patience}"; expected 0 for the time limits of AWS, or 1.'
            raise SetupError(msg)
        data = DataDir(Path(os.environ.get("DATA_DIR") or ".local"))
        language = demo if demo in LANGUAGES else _language_of_shell()
        return cls(int(port), data, endpoint, demo != "empty", language, patience == "1")

    def environment(self, endpoint: str) -> dict[str, str]:
        """Return the environment variables for the service."""
        environment = {name: value for name, value in os.environ.items() if name not in REAL_AWS}
        direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        return {
            **environment,
            **LOCAL_AWS,
            ENDPOINT: endpoint,
            "DATA_DIR": str(self.data.path),
            "DEMO_WORD_SECONDS": os.environ.get("DEMO_WORD_SECONDS") or "0.03",
            "DEMO_BALANCE": os.environ.get("DEMO_BALANCE") or DEMO_BALANCE,
            "MAIL": os.environ.get("MAIL") or "file",
            "MAIL_FOLDER": str(self.data.mail),
            "OBJECT_STORE": f"file://{self.data.objects}",
            "PORT": str(self.port),
            "PUBLIC_URL": self.url,
            "RATE_LIMIT_SCALE": os.environ.get("RATE_LIMIT_SCALE") or "1",
            "SIGN_UP_PLAN": os.environ.get("SIGN_UP_PLAN") or "business",
            "SITE_HOSTS": "local",
            "SMS": os.environ.get("SMS") or "file",
            "SMS_FOLDER": str(self.data.sms),
            "STAGE": "dev",
            **self._telegram(),
            **self._max(),
            "WEBHOOKS_TO_LOOPBACK": os.environ.get("WEBHOOKS_TO_LOOPBACK") or "1",
            "no_proxy": f"{direct},{HOST}" if direct else HOST,
        }

    def _telegram(self) -> dict[str, str]:
        """Return the settings for the Telegram of this stack, unless there is a bot's token."""
        if os.environ.get("TELEGRAM_BOT_TOKEN"):
            return {}
        here = f"{self.url}/dev/telegram"
        return {
            "TELEGRAM_BOT_TOKEN": "1:local",
            "TELEGRAM_LINKS": here,
            "TELEGRAM_URL": here,
        }

    def _max(self) -> dict[str, str]:
        """Return the settings for the MAX of this stack, unless there is a bot's token."""
        if os.environ.get("MAX_TOKEN"):
            return {}
        here = f"{self.url}/dev/max"
        return {"MAX_LINKS": here, "MAX_TOKEN": "local", "MAX_URL": here}


def _language_of_shell() -> Language:
    """Return the language of messages in the developer's shell: Russian, or English for all others.

    The first variable that is set counts (POSIX, 8.2).
    """
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next(filter(None, map(os.environ.get, names)), "")
    return "ru" if locale.startswith("ru") else "en"


class InUseError(SetupError):
    """Another process has locked the data folder."""

    def __init__(self, stack: LocalStack) -> None:
        port = stack.data.run.get("port")
        where = f" (http://{HOST}:{port})" if port else ""
        super().__init__(
            f"Another local stack{where} is using {stack.data.path}. Stop it, or give this one a"
            " port and a folder of its own: PORT=8001 DATA_DIR=.local2 make dev"
        )


def take_folder(stack: LocalStack, started: ExitStack) -> None:
    """Lock the data folder, and end processes of an earlier run that was killed.

    Raises:
        InUseError: another local stack has locked the folder.
    """
    lock = stack.data.try_lock()
    if lock is None:
        raise InUseError(stack)
    started.enter_context(lock)
    for pid in stack.data.run.get("pids", {}).values():
        supervisor.end_leftover(pid, str(stack.data.path))
    stack.data.delete_run()


def open_database(stack: LocalStack, started: ExitStack) -> OpenDatabase:
    """Return the database that the environment names. If the environment names none, start one.

    The database is written to ``dev.json``.
    """
    if stack.given_endpoint:
        database = _given_database(stack.given_endpoint)
    else:
        database = _start_database(stack.data.path, started)
    record(stack, database)
    # This runs before the database stops, so that no other process starts to use it.
    started.callback(stack.data.delete_run)
    return database


def _given_database(endpoint: str) -> OpenDatabase:
    if not dynamodb.answers(endpoint):
        msg = (
            f"No DynamoDB answers at DYNAMODB_ENDPOINT={endpoint}. Start it, or unset the variable"
            " to have DynamoDB Local fetched and started."
        )
        raise SetupError(msg)
    return OpenDatabase(endpoint, f"in the database at {endpoint}")


def _start_database(folder: Path, started: ExitStack) -> OpenDatabase:
    try:
        server = dynamodb.start(folder)
        note = f"{folder} (DynamoDB Local; it survives restarts)"
    except DynamoDBLocalMissingError as error:
        server = dynamodb.start_stand_in()
        note = f"IN MEMORY (moto's server): it will NOT survive a restart. {error}"
    # The exit stack closes in reverse order, so the database stops after the service.
    started.callback(server.stop)
    return OpenDatabase(server.endpoint, note, server)


def database_by_hand(stack: LocalStack, command: int) -> OpenDatabase:
    """Return the database of the data folder. If none runs, start one until ``command`` ends.

    ``command`` is the process that the developer started. A running database belongs to another
    local stack, or to the worker that this one replaces after an edit.

    Raises:
        SetupError: it cannot be started, or another local stack has the folder and does not
            respond.
    """
    if stack.given_endpoint:
        return _given_database(stack.given_endpoint)
    keeper: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + START_SECONDS
    while True:
        # A keeper that ended without an error has found the database of another local stack.
        if keeper is not None and (status := keeper.poll()) is not None:
            if status:
                raise SetupError("the database did not start; the reason is above.")
            keeper = None
        elif keeper is None and not stack.data.is_locked:
            keeper = _start_keeper(stack, command)
        elif (database := _running_database(stack)) is not None:
            return database
        elif keeper is None and time.monotonic() > deadline:
            raise InUseError(stack)
        time.sleep(0.1)


def _start_keeper(stack: LocalStack, command: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "infra.local.database_keeper", str(command)],
        cwd=ROOT,
        env={**os.environ, "DATA_DIR": str(stack.data.path), "PORT": str(stack.port)},
        stdin=subprocess.DEVNULL,
        process_group=0,  # Ctrl-C reaches only the command, which ends this process, too.
    )


def _running_database(stack: LocalStack) -> OpenDatabase | None:
    """Return the database of the stack with the lock, or None until that database responds."""
    run = stack.data.run
    endpoint = run.get("endpoint", "")
    if endpoint and dynamodb.answers(endpoint):
        return OpenDatabase(endpoint, run.get("note", str(stack.data.path)))
    return None


def record(stack: LocalStack, database: OpenDatabase, **pids: int) -> None:
    """Write ``dev.json``, in which the operator's commands and the next start find the database."""
    if database.server:
        pids["database"] = database.server.pid
    pids["stand"] = os.getpid()
    stack.data.run = {
        "endpoint": database.endpoint,
        "note": database.note,
        "port": stack.port,
        "pids": pids,
    }
