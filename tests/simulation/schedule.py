"""Runs the threads of a simulation one at a time, in an order that a seed decides.

Exactly one thread has the baton. It gives the baton away only at a seam: a request to the database,
a pause, a wait for a lock or for another thread. So a seed decides the order of everything that
threads do to each other, and the same seed repeats it. Time is simulated. It passes at seams, and
jumps to the end of the shortest pause if all threads wait.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from math import inf
from random import Random
from threading import Semaphore, Thread, local
from typing import Any, Self

STEP = 0.003
"""Mean seconds that pass at a seam."""
STAYS = 0.5
"""Chance that the thread at a seam keeps the baton."""
MOST_SEAMS = 50_000
"""Seams after which a simulation counts as endless. A usual one has a few hundred."""


class ProcessDied(BaseException):
    """The simulated process was killed. It can no longer reach anything outside."""


class Endless(BaseException):
    """All threads wait for each other, or a simulation does not come to an end."""


@dataclass(eq=False)
class Process:
    """A process: its threads die together, and it shares no lock with another process."""

    name: str
    can_die: bool = True
    alive: bool = True


@dataclass(eq=False)
class Task:
    """A thread of a process, and what it waits for."""

    process: Process
    turn: Semaphore = field(default_factory=lambda: Semaphore(0))
    until: Callable[[], bool] = lambda: True
    wakes: float = 0.0
    ended: bool = False
    failure: BaseException | None = None


class Schedule:
    """The tasks of a simulation, its time, and the choices of its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.seams = 0
        self.trace: list[str] = []
        self._tasks: list[Task] = []
        self._own = local()
        self._idle = Semaphore(0)

    @property
    def task(self) -> Task | None:
        """The task of the calling thread, or None outside the simulation."""
        return getattr(self._own, "task", None)

    def start(self, process: Process, call: Callable[[], object]) -> Task:
        """Add a thread to a process. It begins when it gets the baton."""
        task, context = Task(process), copy_context()

        def run() -> None:
            task.turn.acquire()
            self._own.task = task
            try:
                context.run(call)
            except ProcessDied:
                pass
            except BaseException as error:
                task.failure = error
            task.ended = True
            self._pass_on()

        self._tasks.append(task)
        Thread(target=run, daemon=True).start()
        return task

    def run(self) -> None:
        """Give the baton away until all threads have ended.

        Raises:
            Endless: the threads wait for each other, or go on for too long.
            BaseException: the first error that ended a thread.
        """
        self._pass_on()
        self._idle.acquire()
        for task in self._tasks:
            if task.failure is not None:
                raise task.failure
        if not all(task.ended for task in self._tasks):
            raise Endless("all threads wait for each other")
        self._tasks.clear()

    def seam(self, what: str) -> None:
        """Let time pass, and perhaps other threads run.

        Raises:
            ProcessDied: the process of this thread was killed.
        """
        self.seams += 1
        if self.seams > MOST_SEAMS:
            msg = f"a simulation of more than {MOST_SEAMS:,} seams"
            raise Endless(msg)
        self.trace.append(what)
        self.now += self.random.expovariate(1 / STEP)
        task = self._current()
        if self.random.random() >= STAYS:
            self._switch(task)
        self._check_alive(task)

    def pause(self, seconds: float) -> None:
        """Let other threads run until a time has passed."""
        self.wait(lambda: False, seconds)

    def wait(self, until: Callable[[], bool], seconds: float = inf) -> bool:
        """Let other threads run until a condition holds. Returns False if the time passed first."""
        task = self._current()
        task.until, task.wakes = until, self.now + seconds
        self._switch(task)
        task.until, task.wakes = (lambda: True), 0.0
        self._check_alive(task)
        return until()

    def die(self) -> None:
        """Kill the process of this thread."""
        task = self._current()
        task.process.alive = False
        self.trace.append(f"{task.process.name} dies")
        raise ProcessDied

    def _current(self) -> Task:
        assert self.task is not None, "only threads of the simulation reach a seam"
        return self.task

    @staticmethod
    def _check_alive(task: Task) -> None:
        if not task.process.alive:
            raise ProcessDied

    def _switch(self, task: Task) -> None:
        self._pass_on()
        task.turn.acquire()

    def _pass_on(self) -> None:
        """Give the baton to a thread that can go on, or back to ``run`` if no thread can."""
        ready = self._ready()
        if not ready and (waits := [t.wakes for t in self._tasks if not t.ended]):
            soonest = min(waits)
            if soonest < inf:
                self.now = max(self.now, soonest)
                ready = self._ready()
        (self.random.choice(ready).turn if ready else self._idle).release()

    def _ready(self) -> list[Task]:
        return [
            task
            for task in self._tasks
            if not task.ended and (not task.process.alive or self.now >= task.wakes or task.until())
        ]


class SimulatedPool:
    """Stands for a pool of threads: the threads belong to the process that creates the pool."""

    schedule: Schedule

    def __init__(self, *_: object, **__: object) -> None:
        self._started: list[Future[Any]] = []

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a call in a thread of its own."""
        task = self.schedule.task
        assert task is not None
        future = _SimulatedFuture(self.schedule)

        def run() -> None:
            try:
                result = call(*args)
            except BaseException as error:
                future.set_exception(error)
                if isinstance(error, ProcessDied):
                    raise
            else:
                future.set_result(result)

        self.schedule.start(task.process, run)
        self._started.append(future)
        return future

    def map(self, call: Callable[..., Any], *items: Any) -> list[Any]:
        """Return the results of a call for each item, in order."""
        return [
            future.result()
            for future in [self.submit(call, *arguments) for arguments in zip(*items, strict=True)]
        ]

    def shutdown(self) -> None:
        """Wait for all calls."""
        for future in self._started:
            self.schedule.wait(future.done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


class _SimulatedFuture(Future[Any]):
    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def result(self, timeout: float | None = None) -> Any:
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        self._schedule.wait(self.done, inf if timeout is None else timeout)


class SimulatedLock:
    """A reentrant lock. Each process has its own."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._holders: dict[Process, list[Task]] = {}

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT002  threading's
        """Take the lock, and wait at most ``timeout`` seconds."""
        task = self._schedule.task
        if task is None:
            return True
        self._schedule.seam("lock")
        holders = self._holders.setdefault(task.process, [])
        patience = 0.0 if not blocking else inf if timeout < 0 else timeout
        if not self._schedule.wait(lambda: not holders or holders[0] is task, patience):
            return False
        holders.append(task)
        return True

    def release(self) -> None:
        """Give the lock back."""
        if (task := self._schedule.task) is not None:
            self._holders[task.process].pop()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
