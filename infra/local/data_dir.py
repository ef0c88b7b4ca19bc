"""The folder ``DATA_DIR`` of a local stack and the lock on it."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from infra.local.dynamodb_jar import SetupError


class DataDir:
    """The folder of a local stack.

    ``dev.json`` names the database and the processes of the running stack. ``demo.json`` holds the
    key and the password of the demo workspace, so only the owner of the file may read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.objects = self.path / "objects"
        self.mail = self.path / "mail"
        self.sms = self.path / "sms"
        self.log = self.path / "service.log"
        self._run = self.path / "dev.json"
        self._demo = self.path / "demo.json"

    def try_lock(self) -> IO[str] | None:
        """Lock the folder while the returned file is open. Return None if it is already locked.

        The system releases the lock when the process ends, even after ``kill -9``.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "dev.lock").open("a")
        except OSError as error:
            msg = (
                f"The data folder {self.path} cannot be written: {error.strerror}."
                " Fix its permissions, or choose another: DATA_DIR=/path/to/folder."
            )
            raise SetupError(msg) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock

    @property
    def is_locked(self) -> bool:
        """Whether another process has locked the folder."""
        lock = self.try_lock()
        if lock is None:
            return True
        lock.close()
        return False

    @property
    def run(self) -> dict[str, Any]:
        """The record of the running local stack, or of one that was killed."""
        return _read(self._run)

    @run.setter
    def run(self, value: dict[str, Any]) -> None:
        _write(self._run, value)

    def delete_run(self) -> None:
        """Remove the record of the local stack when it has stopped in an orderly way."""
        self._run.unlink(missing_ok=True)

    @contextmanager
    def lock_demo(self) -> Iterator[None]:
        """Allow one process at a time to create the demo, while others wait."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "demo.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @property
    def demo(self) -> dict[str, Any]:
        """The stored data of the demo workspace."""
        return _read(self._demo)

    @demo.setter
    def demo(self, value: dict[str, Any]) -> None:
        _write(self._demo, value)


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty object if the file is missing or damaged."""
    with suppress(FileNotFoundError, ValueError):
        value = json.loads(path.read_text())
        if isinstance(value, dict):
            return value
    return {}


def _write(path: Path, value: dict[str, Any]) -> None:
    """Replace a file atomically by one that only its owner may read."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    # The mode is set on creation, so no other user can open the file before a chmod.
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(value, stream, indent=2)
    # Readers see the old or the new file, but never a part of one.
    temporary.replace(path)
