"""Lock of a stage: an object that only one process can create, and that expires."""

import getpass
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta

import click
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core import clock
from infra.deploy.aws.store import Store, as_record
from infra.deploy.stacks.data import STATE

KEY = f"{STATE}lock.json"
LEASE = timedelta(minutes=5)
"""Lifetime of a lock without renewal. A lock of a machine that died expires after this time."""
RENEW_SECONDS = 60.0


class LockedError(click.ClickException):
    """Another process deploys this stage, or has taken over the lock."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of the lock and its expiry time; ``pid`` is a process on ``host``.

    ``run`` identifies one acquisition of the lock.
    """

    user: str
    host: str
    pid: int
    since: str
    until: str
    run: str

    @classmethod
    def me(cls, since: datetime, run: str) -> "Holder":
        """Return this process as the holder, for a lease that begins now."""
        until = clock.now() + LEASE
        return cls(_user(), socket.gethostname(), os.getpid(), _iso(since), _iso(until), run)

    @property
    def gone(self) -> bool:
        """Whether the lock is no longer valid: it has expired, or its process here has ended."""
        if datetime.fromisoformat(self.until) < clock.now():
            return True
        return self.host == socket.gethostname() and not _runs(self.pid)


@dataclass
class Lock:
    """The acquired lock of a stage. A thread renews it, and ``check`` raises once it is lost."""

    store: Store
    since: datetime
    run: str
    etag: str
    _lost: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise an error if the lock is lost.

        Raises:
            LockedError: another process has taken over the lock.
        """
        if self._lost:
            raise LockedError(
                "Stopped: the lock of this stage was taken over by another process. "
                "Run again once that one is done."
            )

    def renew(self) -> None:
        """Renew the lock for another lease, unless it is lost."""
        mine = Holder.me(self.since, self.run)
        etag = self.store.put_if(KEY, asdict(mine), IfMatch=self.etag) or _own_etag(
            self.store, mine
        )
        if etag is None:
            self._lost = True
        else:
            self.etag = etag

    def keep(self) -> None:
        """Renew the lock until stopped. After a network error, the next renewal tries again."""
        while not self._stop.wait(RENEW_SECONDS) and not self._lost:
            with suppress(BotoCoreError, ClientError):
                self.renew()

    def stop(self) -> None:
        """Stop renewing."""
        self._stop.set()

    def release(self) -> None:
        """Delete the lock, unless it is lost."""
        if not self._lost:
            self.store.delete(KEY, IfMatch=self.etag)


@contextmanager
def locked(store: Store, *, break_lock: bool = False) -> Iterator[Lock]:
    """Hold the stage's lock, so that no other process deploys, rolls back or destroys the stage.

    Raises:
        LockedError: another process holds it, and ``break_lock`` is not given.
    """
    lock = _acquire(store, break_lock=break_lock)
    thread = threading.Thread(target=lock.keep, name="deployment-lock", daemon=True)
    thread.start()
    try:
        yield lock
    finally:
        lock.stop()
        thread.join()  # A renewal after the release would leave a lock without a holder.
        lock.release()


def _own_etag(store: Store, mine: Holder) -> str | None:
    """Return the ETag of a lock that this process holds although S3 refused the write, or None.

    The response to a successful write may be lost. botocore then retries, and S3 refuses the retry.
    """
    found = store.get(KEY)
    if found is None or json.loads(found[0])["run"] != mine.run:
        return None
    return found[1]


def _acquire(store: Store, *, break_lock: bool, run: str | None = None) -> Lock:
    since, run = clock.now(), run or secrets.token_hex(8)
    mine = Holder.me(since, run)
    if etag := store.put_if(KEY, asdict(mine), IfNoneMatch="*") or _own_etag(store, mine):
        return Lock(store, since, run, etag)
    if (found := store.get(KEY)) is None:  # released in the meantime
        return _acquire(store, break_lock=break_lock, run=run)
    holder = as_record(json.loads(found[0]), Holder)
    if not (break_lock or holder.gone):
        msg = (
            f"{holder.user} on {holder.host} (process {holder.pid}) has been deploying this stage "
            f"since {holder.since}. Wait for it; if it is dead, the lock lapses at {holder.until}, "
            "or give --break-lock."
        )
        raise LockedError(msg)
    if etag := store.put_if(KEY, asdict(mine), IfMatch=found[1]):
        return Lock(store, since, run, etag)
    return _acquire(store, break_lock=break_lock, run=run)


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
    except PermissionError:
        return True
    return True


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
