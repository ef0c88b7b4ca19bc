"""Processes that end with whoever started them, however that ended.

``spawn`` starts a command supervised: this file, run as a script, which holds the reading end of a
pipe and kills the command when the writing end closes. The system closes it when the starter goes,
even by ``kill -9``, so nothing is left behind. Should the supervisor itself be killed, Linux kills
its command (``PR_SET_PDEATHSIG``).
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
"""How long a process may take to end by itself before it is killed."""
LOOK_SECONDS = 0.5
"""How often ``end_with`` checks the other process."""


def spawn(
    label: str,
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command supervised, in its own process group: Ctrl-C reaches only the starter.

    ``label`` marks whose process it is, for ``end_leftover``; ``output`` takes what it prints, the
    terminal otherwise.
    """
    return subprocess.Popen(
        [sys.executable, "-I", __file__, label, *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env=env,
        process_group=0,
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a spawned command to end and wait until it has; kill it if it takes too long."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


def end_leftover(pid: int, label: str) -> bool:
    """Kill what an earlier run spawned, if this is still that process; return whether it was."""
    if f" {__file__} {label} " not in command_line(pid):
        return False
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end_with(pid: int) -> None:
    """Send this process SIGTERM once another one has ended, however that ended.

    For a process that the other one did not ``spawn``.
    """
    command = command_line(pid)

    def watch() -> None:
        while command and command_line(pid) == command:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="end-with").start()


def command_line(pid: int) -> str:
    """Return a process's command line, empty if it has ended.

    Slim containers lack ``ps``, macOS lacks ``/proc``.
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
    shown = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip()


def _die_with_the_leash() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_without_starter(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):  # Nobody writes; it returns when the starter's end has closed.
        pass
    child.kill()


def main() -> int:
    """Run the command that follows the label; pass SIGTERM on to it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    child = subprocess.Popen(
        sys.argv[2:],
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_the_leash,  # noqa: PLW1509  there are no threads yet
    )
    try:
        threading.Thread(target=_kill_without_starter, args=(child,), daemon=True).start()
        status = child.wait()
    except KeyboardInterrupt:
        child.terminate()
        status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
