"""The lock of a stage, stored as an object that only one process can create."""

import getpass
import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import click

from chalicelib.core import clock
from infra.deploy.aws.store import Store

KEY = "state/lock.json"


class LockedError(click.ClickException):
    """Another process deploys this stage, or has taken over the lock."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of the lock, a process on a host.

    ``run`` identifies one acquisition.
    """

    user: str
    host: str
    pid: int
    since: str
    run: str

    @property
    def ended(self) -> bool:
        """Whether the holder was a process of this machine, and has ended."""
        return self.host == socket.gethostname() and not _runs(self.pid)


@dataclass(frozen=True, slots=True)
class Lock:
    """The acquired lock of a stage."""

    store: Store
    etag: str

    def check(self) -> None:
        """Raise an error if the lock is lost.

        Raises:
            LockedError: another process has taken over the lock.
        """
        lock_file = self.store.get(KEY)
        if lock_file is None or lock_file[1] != self.etag:
            raise LockedError(
                "Stopped: the lock of this stage was taken over by another process. "
                "Run again once that one is done."
            )


@contextmanager
def locked(store: Store, *, break_lock: bool = False) -> Iterator[Lock]:
    """Hold the stage's lock, so that no other process deploys, rolls back or destroys the stage.

    Raises:
        LockedError: another process holds it, and ``break_lock`` is not given.
    """
    since = clock.now().isoformat(timespec="seconds")
    mine = Holder(_user(), socket.gethostname(), os.getpid(), since, secrets.token_hex(8))
    lock = Lock(store, _acquire(store, mine, break_lock=break_lock))
    try:
        yield lock
    finally:
        store.delete(KEY, IfMatch=lock.etag)


def _acquire(store: Store, mine: Holder, *, break_lock: bool) -> str:
    """Create the lock or take over a lock whose holder has ended, and return the ETag."""
    condition = {"IfNoneMatch": "*"}
    while (etag := store.put_if(KEY, asdict(mine), **condition)) is None:
        if (lock_file := store.get(KEY)) is None:  # It was released in the meantime.
            condition = {"IfNoneMatch": "*"}
            continue
        holder = Holder(**json.loads(lock_file[0]))
        if holder == mine:  # The response to the first try was lost, and S3 refused the second.
            return lock_file[1]
        if not (break_lock or holder.ended):
            msg = (
                f"{holder.user} on {holder.host} (process {holder.pid}) has been deploying this "
                f"stage since {holder.since}. Wait for it; if it is dead, give --break-lock."
            )
            raise LockedError(msg)
        condition = {"IfMatch": lock_file[1]}
    return etag


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        return str(os.getuid())


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # The process exists, but belongs to another user.
    except PermissionError:
        return True
    return True
