"""The lock on a stage: an object that only one can create, and that lapses by itself."""

import getpass
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta

import click
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core import clock
from infra.data_stack import STATE
from infra.deploy.store import Store

KEY = f"{STATE}lock.json"
LEASE = timedelta(minutes=5)
"""How long a lock holds whose owner does not renew it: a machine that died frees it by itself."""
RENEW_SECONDS = 60.0


class LockedError(click.ClickException):
    """Someone else deploys this stage, or has taken the lock over."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock, and until when unless renewed; ``pid`` is of ``host``."""

    user: str
    host: str
    pid: int
    since: str
    until: str

    @classmethod
    def me(cls, since: datetime) -> "Holder":
        """Return this process as the holder, from now on for a lease."""
        until = clock.now() + LEASE
        return cls(_user(), socket.gethostname(), os.getpid(), _iso(since), _iso(until))

    @property
    def gone(self) -> bool:
        """Whether the lock holds no longer: it has lapsed, or its process here has ended."""
        if datetime.fromisoformat(self.until) < clock.now():
            return True
        return self.host == socket.gethostname() and not _runs(self.pid)


@dataclass
class Lock:
    """The stage's lock, held: a thread renews it, and ``check`` says when it was lost."""

    store: Store
    since: datetime
    etag: str
    _lost: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Go on only while the lock is ours.

        Raises:
            LockedError: someone has taken it over.
        """
        if self._lost:
            raise LockedError(
                "Stopped: the lock of this stage was taken over by another process. "
                "Run again once that one is done."
            )

    def renew(self) -> None:
        """Hold the lock for another lease, unless it is not ours any more."""
        etag = self.store.put_if(KEY, asdict(Holder.me(self.since)), IfMatch=self.etag)
        if etag is None:
            self._lost = True
        else:
            self.etag = etag

    def keep(self) -> None:
        """Renew until stopped; a network that fails is tried again until the lease ends."""
        while not self._stop.wait(RENEW_SECONDS) and not self._lost:
            with suppress(BotoCoreError, ClientError):
                self.renew()

    def release(self) -> None:
        """Let the next one in, unless the lock is not ours any more."""
        self._stop.set()
        if not self._lost:
            self.store.delete(KEY, IfMatch=self.etag)


@contextmanager
def locked(store: Store, *, break_lock: bool = False) -> Iterator[Lock]:
    """Hold the stage's lock: nobody else deploys, rolls back or destroys meanwhile.

    Raises:
        LockedError: another process holds it, and ``break_lock`` is not given.
    """
    lock = _acquire(store, break_lock=break_lock)
    thread = threading.Thread(target=lock.keep, name="deployment-lock", daemon=True)
    thread.start()
    try:
        yield lock
    finally:
        lock.release()
        thread.join()


def _acquire(store: Store, *, break_lock: bool) -> Lock:
    since = clock.now()
    mine = asdict(Holder.me(since))
    if etag := store.put_if(KEY, mine, IfNoneMatch="*"):
        return Lock(store, since, etag)
    if (found := store.get(KEY)) is None:  # released between the two
        return _acquire(store, break_lock=break_lock)
    holder = Holder(**json.loads(found[0]))
    if not (break_lock or holder.gone):
        msg = (
            f"{holder.user} on {holder.host} (process {holder.pid}) has been deploying this stage "
            f"since {holder.since}. Wait for it; if it is dead, the lock lapses at {holder.until}, "
            "or give --break-lock."
        )
        raise LockedError(msg)
    if etag := store.put_if(KEY, mine, IfMatch=found[1]):
        return Lock(store, since, etag)
    return _acquire(store, break_lock=break_lock)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
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
