"""Runs a function on untrusted input in a child process, with limits of time and memory.

The process has neither the service's credentials nor its settings in its environment, and cannot
read the memory and the environment of its parent (Linux). On AWS it shares the Lambda function's
memory.
"""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Lock
from typing import Any

MEMORY_BYTES = 768 * 2**20  # address space of the process, unless the caller gives it less
SECONDS = 20.0  # for the process, including its start

# The processes share the memory of the function that runs jobs, which has four threads.
_ONE_AT_A_TIME = Lock()
# Python itself needs these. The process gets no others, such as credentials.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4
# The third version of the sets of capabilities (``man 2 capset``).
_CAPABILITY_VERSION = 0x20080522
_CHILD = "from chalicelib.gateways import isolation; isolation.serve()"


class IsolationError(Exception):
    """The function failed. The message is the name of its error, or what ended the process."""


class RaisedError(IsolationError):
    """The function raised its own error, whose arguments this error has."""


class TooSlowError(IsolationError):
    """The function took more than ``SECONDS``."""


def call(
    function: str, body: bytes, *arguments: str | None, memory_bytes: int = MEMORY_BYTES
) -> str:
    """Call a function with arguments and a body in a separate process, and return its output.

    ``function`` is a module and a name, such as ``package.module:name``. It is called with the
    first argument, the untrusted body, and the other arguments.

    Raises:
        RaisedError: the function raised an error of its own module.
        TooSlowError: it took too long.
        IsolationError: it failed in another way, or needed too much memory.
    """
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", _CHILD, json.dumps([memory_bytes, function, *arguments])]
    options: dict[str, Any] = {"capture_output": True, "timeout": SECONDS, "env": environment}
    try:
        with _ONE_AT_A_TIME, _unreadable():
            process = subprocess.run(command, input=body, check=False, **options)  # noqa: S603  our own
    except subprocess.TimeoutExpired:
        msg = f"more than {SECONDS:g} seconds"
        raise TooSlowError(msg) from None
    try:
        outcome = json.loads(process.stdout)
    except ValueError:
        errors = process.stderr[-2000:].decode(errors="replace")
        msg = f"the process ended with {process.returncode}: {errors}"
        raise IsolationError(msg) from None
    if "text" in outcome:
        return str(outcome["text"])
    raise (
        RaisedError(*outcome["raised"])
        if "raised" in outcome
        else IsolationError(outcome["failed"])
    )


@contextmanager
def _unreadable() -> Iterator[None]:
    # Otherwise, processes of the same user can read ``/proc/<pid>/environ`` and the memory of this
    # one (``man 2 prctl``, PR_SET_DUMPABLE).
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:  # not on Linux
        yield
        return
    dumpable = prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_PR_SET_DUMPABLE, dumpable, 0, 0, 0)


def serve() -> None:
    """Run the function that the command line names, in the child process."""
    memory_bytes, function, *arguments = json.loads(sys.argv[1])
    _drop_privileges()
    _limit_memory(memory_bytes)
    # The privileges are dropped before the first untrusted byte is read.
    body = sys.stdin.buffer.read()
    module, _, name = function.partition(":")
    try:
        text = getattr(import_module(module), name)(arguments[0], body, *arguments[1:])
        outcome = {"text": text}
    except Exception as error:  # noqa: BLE001  the parent decides what it means
        # Only an error of the function's own module has arguments that are meant for the caller.
        is_declared = type(error).__module__ == module
        outcome = {"raised": error.args} if is_declared else {"failed": type(error).__name__}
    except BaseException as error:  # noqa: BLE001
        outcome = {"failed": type(error).__name__}
    sys.stdout.write(json.dumps(outcome))


def _drop_privileges() -> None:
    # The capabilities of root could read any process.
    capset = getattr(ctypes.CDLL(None), "capset", None)
    if capset is not None:
        capset((ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)())
    with suppress(ImportError, ValueError, OSError):
        import resource  # not on Windows

        # A process that the child leaves behind would outlive the protection of the parent.
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _limit_memory(memory_bytes: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        # A limit of zero bytes lets the child write to no file.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
