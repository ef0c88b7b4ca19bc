"""Forked processes: cheap copies of this process, in which anything may be changed or break."""

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterator

Report = Callable[[str], None]
"""Sends a line to the parent."""

RAISED = "raised"
MEMORY = 4 << 30
"""Bytes of address space of a child. An endless loop that collects values ends there."""
CPU_SECONDS, REAL_SECONDS, TIMES_LONGER = 5.0, 60.0, 10


def in_child(work: Callable[[Report], object]) -> list[str]:
    """Run a function in a forked process, and return the lines that it reports.

    If it raises an exception, the last line is ``RAISED`` and the exception.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(read)
            os.setsid()
            for descriptor in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            with os.fdopen(write, "w", buffering=1) as output:
                try:
                    work(lambda line: print(line, file=output))
                except BaseException as error:  # noqa: BLE001  such as the end of pytest
                    print(f"{RAISED} {error!r}", file=output)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as reported:
        lines = reported.read().splitlines()
    os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):  # what the child has started
        os.killpg(child, signal.SIGKILL)
    return lines


@contextlib.contextmanager
def time_limit(usual: float) -> Iterator[None]:
    """End this process if a block takes ten times its usual seconds, and some more.

    CPU time ends an endless loop, and real time a wait that never ends. The system ends the
    process, because a changed program may catch any exception.
    """
    limits = {
        signal.ITIMER_PROF: CPU_SECONDS + TIMES_LONGER * usual,
        signal.ITIMER_REAL: REAL_SECONDS + TIMES_LONGER * usual,
    }
    for timer, seconds in limits.items():
        signal.setitimer(timer, seconds)
    yield
    for timer in limits:
        signal.setitimer(timer, 0)
