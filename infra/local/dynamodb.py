"""Runs DynamoDB Local, or moto's server in its place, on a free port of the loopback interface."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import requests

from infra.local import supervisor
from infra.local.dynamodb_jar import DynamoDBLocalMissingError, SetupError, find_jar, find_java

__all__ = [
    "Database",
    "DynamoDBLocalMissingError",
    "SetupError",
    "answers",
    "start",
    "start_stand_in",
]

HERE = Path(__file__).parent
READY_SECONDS = 60
IN_MEMORY = "in-memory"
"""The label of servers without a folder. No files of theirs can be left behind."""
MAX_LOG_BYTES = 100_000


@dataclass(frozen=True)
class Database:
    """A running database server, whose data survives the server if ``persistent`` is true."""

    endpoint: str
    persistent: bool
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The id of the process to stop."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """Stop the process and wait for its end."""
        supervisor.stop(self.process)


def start(data_dir: Path | None, *, in_memory: bool = False) -> Database:
    """Start DynamoDB Local with data in ``data_dir`` or in memory, and wait for a response.

    Raises:
        DynamoDBLocalMissingError: Java is missing, or the jar is missing and cannot be fetched.
        SetupError: another reason prevents the start.
    """
    java, jar = find_java(), find_jar()
    folder = None if in_memory or data_dir is None else _database_folder(data_dir)
    label = str(data_dir.absolute()) if data_dir else IN_MEMORY
    return _serve(
        "DynamoDB Local", label=label, command=_java_command(java, jar, folder), folder=folder
    )


def start_stand_in() -> Database:
    """Start moto's server, which stores data in memory, and wait until the server responds."""
    command = [sys.executable, "-I", str(HERE / "moto_server.py")]
    return _serve(
        "moto's server, the stand-in for DynamoDB Local,",
        label=IN_MEMORY,
        command=command,
        folder=None,
    )


def answers(endpoint: str) -> bool:
    """Whether a DynamoDB responds at the endpoint."""
    return _refusal(endpoint) == ""


def _serve(name: str, *, label: str, command: Sequence[str], folder: Path | None) -> Database:
    """Start a server that prints its port, and wait until the server responds."""
    with _log(folder) as log:
        process = supervisor.spawn(label, command, output=log)
        failure: str | None = "it was interrupted"
        try:
            endpoint, failure = _wait_until_ready(process, log)
        finally:
            if failure:
                supervisor.stop(process)
    if failure:
        hint = f" Its files and log: {folder}. Move them away to begin again." if folder else ""
        msg = f"{name} did not start: {failure}{hint}"
        raise SetupError(msg)
    return Database(endpoint, folder is not None, process)


def _wait_until_ready(process: subprocess.Popen[bytes], log: IO[bytes]) -> tuple[str, str]:
    """Wait until the server responds, and return its endpoint and the failure, if any, or ""."""
    deadline = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        printed = re.search(r"^(?:Port:\s*)?(\d+)$", _text(log), re.MULTILINE)
        endpoint = f"http://127.0.0.1:{printed[1]}" if printed else ""
        # DynamoDB Local prints its port before it accepts connections.
        refusal = _refusal(endpoint) if endpoint else None
        if refusal is not None:
            return endpoint, refusal
        time.sleep(0.05)
    lines = [line.strip() for line in _text(log).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by:", "Error"))]
    return "", (causes or lines or [f"no answer within {READY_SECONDS} seconds"])[-1]


def _refusal(endpoint: str) -> str | None:
    """Send a request. Returns "" for a response, the reason of a refusal, or None without a server.

    The local servers accept an unsigned header, which saves the 0.2 s of creating a client.
    """
    credential = "Credential=local/20250101/us-east-1/dynamodb/aws4_request"
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0",
    }
    with requests.Session() as session:
        session.trust_env = False  # A local address needs no proxy from the environment.
        try:
            answer = session.post(endpoint, headers=headers, data=b"{}", timeout=10)
        except requests.RequestException:
            return None
    with contextlib.suppress(ValueError):
        if answer.ok and "TableNames" in answer.json():
            return ""
    return f"it answered {answer.status_code}: {answer.text[:300]}"


def _log(folder: Path | None) -> IO[bytes]:
    """Open the file for the server's output, next to its data or in a temporary folder."""
    if folder is None:
        return tempfile.TemporaryFile()
    return folder.with_suffix(".log").open("w+b")


def _text(log: IO[bytes]) -> str:
    """Return the output so far.

    The server shares the position of the open file, so reading must not move it.
    """
    return os.pread(log.fileno(), MAX_LOG_BYTES, 0).decode(errors="replace")


def _database_folder(data_dir: Path) -> Path:
    """Return the folder for the database's files, created if missing and checked for writing."""
    folder = data_dir.absolute() / "dynamodb"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A file is written, because permissions do not show a read-only or full disk.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        msg = (
            f"The database folder {folder} cannot be written: {error.strerror}."
            " Fix its permissions, or choose another DATA_DIR."
        )
        raise SetupError(msg) from error
    return folder


def _java_command(java: str, jar: Path, folder: Path | None) -> list[str]:
    """Return the command that starts DynamoDB Local.

    Versions 1.x include Jetty 9, which reads dynamodb_local.xml. Other versions have only a command
    line of their own, which needs a port and listens on every interface.
    """
    libraries = jar.parent / "DynamoDBLocal_lib"
    options = [java, f"-Djava.library.path={libraries}", "-Dorg.eclipse.jetty.LEVEL=WARN"]
    if any(libraries.glob("jetty-xml-9.*.jar")):
        launcher = "org.eclipse.jetty.xml.XmlConfiguration"
        where = ["inMemory=false", f"dbPath={folder}"] if folder else ["inMemory=true"]
        return [*options, "-cp", str(jar), launcher, str(HERE / "dynamodb_local.xml"), *where]
    where = ["-dbPath", str(folder)] if folder else ["-inMemory"]
    port = str(_free_port())
    return [*options, "-jar", str(jar), "-port", port, "-sharedDb", "-disableTelemetry", *where]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
