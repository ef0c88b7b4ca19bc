"""Run the last release and this one in a process each.

The processes share one database and one folder of objects, which can be restored to a state.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import requests

from infra.local import dynamodb
from infra.proof.parts import KEPT, ROOT

FORMER_COMMIT = "c2fd23db91d2463534b79371a98b6990c2085946"
"""Release 0.2.0. It is the last release while no tag names one."""
SESSION = Path("tests", "proof", "release_session.py")
START = datetime(2027, 1, 15, 12, tzinfo=UTC)
"""The time that both releases read. Lists of both then have the same dates."""
CREDENTIAL = "Credential=test/20270101/eu-central-1/dynamodb/aws4_request"
"""The account of tests. DynamoDB Local keeps the data of each account apart."""

Json = Any
Rows = dict[str, dict[str, Any]]


class NotInCloneError(Exception):
    """The clone does not have the commit of the last release."""


def last_release() -> tuple[str, str]:
    """Return the name and the commit of the last release: the newest tag before this commit.

    Raises:
        NotInCloneError: the clone is shallow.
    """
    tags = _git("tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-creatordate").split()
    name = tags[0] if tags else FORMER_COMMIT
    try:
        return name, _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except subprocess.CalledProcessError:
        raise NotInCloneError(name) from None


def check_out(commit: str) -> Path:
    """Write the files of a commit to build/proof, with the session's file if it has none."""
    folder = KEPT / "last-release" / commit[:12]
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        with subprocess.Popen(
            ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE
        ) as archive:
            subprocess.run(["tar", "-x", "-C", str(unfinished)], stdin=archive.stdout, check=True)
        # The rename comes last, so that an interrupted extraction is not taken for a release.
        unfinished.rename(folder)
    if not _git("ls-tree", "--name-only", commit, str(SESSION)):
        (folder / SESSION).parent.mkdir(exist_ok=True)
        # A release before the session existed gets the session of this checkout.
        shutil.copy(ROOT / SESSION, folder / SESSION)
    return folder


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


class Release:
    """A release in a process of its own, with stderr in a file."""

    def __init__(self, folder: Path, *, log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(SESSION)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._commands = cast("IO[str]", self._process.stdin)
        self._answers = cast("IO[str]", self._process.stdout)

    def do(self, command: str, *, now: datetime = START, **arguments: Json) -> Json:
        """Run a command of the session at a time, and return its result."""
        line = {"do": command, "now": now.isoformat(), **arguments}
        self._commands.write(json.dumps(line) + "\n")
        self._commands.flush()
        answer = self._answers.readline()
        if not answer:
            msg = f"{command} ended the process; see {self._log.name}"
            raise RuntimeError(msg)
        return json.loads(answer)

    def stop(self) -> None:
        """End the process."""
        with suppress(BrokenPipeError):
            self._commands.close()
        self._process.wait(30)
        self._log.close()


class State(NamedTuple):
    """All rows of all tables by table and key, and all files of the object store by path."""

    rows: Rows
    files: dict[str, bytes]


class Stores:
    """The database and the object store that the releases share."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint, self.folder = endpoint, folder
        self._http = requests.Session()
        # A proxy of the environment cannot reach the local database.
        self._http.trust_env = False

    def state(self) -> State:
        """Return everything that is stored."""
        rows: Rows = {}
        for table in self._send("ListTables")["TableNames"]:
            page: Json = {}
            while page == {} or "LastEvaluatedKey" in page:
                start = {"ExclusiveStartKey": page["LastEvaluatedKey"]} if page else {}
                page = self._send("Scan", TableName=table, ConsistentRead=True, **start)
                for item in page["Items"]:
                    rows[json.dumps([table, item["pk"], item["sk"]])] = item
        objects = self.folder / "objects"
        files = {str(path): path.read_bytes() for path in objects.rglob("*") if path.is_file()}
        return State(rows, files)

    def restore(self, state: State) -> None:
        """Put back what was changed since ``state``."""
        now = self.state()
        for key in {*now.rows, *state.rows}:
            if now.rows.get(key) == state.rows.get(key):
                continue
            table, pk, sk = json.loads(key)
            if key in state.rows:
                self._send("PutItem", TableName=table, Item=state.rows[key])
            else:
                self._send("DeleteItem", TableName=table, Key={"pk": pk, "sk": sk})
        for path in {*now.files, *state.files}:
            if path not in state.files:
                Path(path).unlink(missing_ok=True)
            elif now.files.get(path) != state.files[path]:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(state.files[path])

    def _send(self, action: str, **body: Json) -> Json:
        """Send a request as raw JSON, which is quick and needs no signature for a local server."""
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{action}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": f"AWS4-HMAC-SHA256 {CREDENTIAL}, SignedHeaders=host, Signature=0",
        }
        answer = self._http.post(self.endpoint, json=body, headers=headers, timeout=60)
        answer.raise_for_status()
        return answer.json()


class Both(NamedTuple):
    """The last release, this one, and what they share."""

    last: Release
    this: Release
    stores: Stores
    database: str

    @property
    def releases(self) -> tuple[Release, Release]:
        """The last release and this one."""
        return self.last, self.this


@contextmanager
def side_by_side(commit: str) -> Iterator[Both]:
    """Run both releases on one empty database during a ``with`` block."""
    folder = KEPT / "upgrade"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("objects", "mail"):
        (folder / name).mkdir(parents=True)
    database, name = _database()
    running: list[Release] = []
    try:
        for tree, log in ((check_out(commit), "last.log"), (ROOT, "this.log")):
            running.append(Release(tree, log=folder / log))
        for release in running:
            release.do("prepare", endpoint=database.endpoint, folder=str(folder))
        last, this = running
        yield Both(last, this, Stores(database.endpoint, folder), name)
    finally:
        for release in running:
            release.stop()
        database.stop()


def _database() -> tuple[dynamodb.Database, str]:
    try:
        return dynamodb.start(None, in_memory=True), "DynamoDB Local"
    except dynamodb.DynamoDBLocalMissingError:
        return dynamodb.start_stand_in(), "moto's server"
