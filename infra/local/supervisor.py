"""Child processes that end with the process that started them, even if it was killed.

``spawn`` starts a command under a supervisor, which is this file run as a script. The supervisor
holds the reading end of a pipe and kills the command when the writing end closes. The system closes
that end when the starter ends, even by ``kill -9``, so no process is left behind. If the supervisor
itself is killed, Linux kills its command (``PR_SET_PDEATHSIG``).
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
"""``prctl(2)``: the signal a process gets when its parent dies."""
STOP_SECONDS = 10
"""Seconds until a process that does not end by itself is killed."""
LOOK_SECONDS = 0.5
"""Seconds between checks of the other process in ``end_with``."""


def spawn(
    label: str,
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command under a supervisor, in a process group of its own.

    Ctrl-C therefore reaches only the starter. ``label`` identifies the process for
    ``end_leftover``. ``output`` receives its output; the default is the terminal.
    """
    return subprocess.Popen(
        # ``-I`` ignores PYTHONPATH and the current folder, so no module of the project is imported
        # here.
        [sys.executable, "-I", __file__, label, *command],
        # The pipe ends when this process dies for any reason, even by SIGKILL.
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env=env,
        process_group=0,
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a spawned command, and kill the command if it still runs after ``STOP_SECONDS``."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


def end_leftover(pid: int, label: str) -> bool:
    """Kill a process of an earlier run if its label matches, and return whether it was killed."""
    # The system may have given the id to another process since.
    if f" {__file__} {label} " not in command_line(pid):
        return False
    try:
        # The group contains the supervisor and its command.
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end_with(pid: int) -> None:
    """Send this process SIGTERM when another one has ended for any reason.

    Use it if the other process did not ``spawn`` this one.
    """
    command = command_line(pid)

    def watch() -> None:
        while command and command_line(pid) == command:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="end-with").start()


def command_line(pid: int) -> str:
    """Return the command line of a process, or "" if the process has ended.

    Slim containers have no ``ps``, and macOS has no ``/proc``.
    """
    if sys.platform == "linux":
        try:
            return (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
                .strip()
            )
        except OSError:
            return ""
    process = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return process.stdout.strip()


def _die_with_supervisor() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_without_starter(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):  # The pipe carries no data; reading ends when the starter's end closes.
        pass
    child.kill()


def main() -> int:
    """Run the command that follows the label, and pass SIGTERM on to the command."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    child = subprocess.Popen(
        sys.argv[2:],
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_supervisor,  # noqa: PLW1509  there are no threads yet
    )
    try:
        threading.Thread(target=_kill_without_starter, args=(child,), daemon=True).start()
        status = child.wait()
    except KeyboardInterrupt:
        child.terminate()
        status = child.wait()
    # Shells report the death by a signal as 128 and the signal's number.
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
