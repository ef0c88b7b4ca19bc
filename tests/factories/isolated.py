"""Functions for a process of their own (``gateways.isolation``), mostly with a fault."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class RefusedError(Exception):
    """An error of this module."""


def join(first: str | None, body: bytes, *more: str | None) -> str:
    return " ".join(map(str, (first, *more, body.decode())))


def refuse(first: str, body: bytes) -> str:
    msg = f"{first} {body.decode()}"
    raise RefusedError(msg)


def divide(*_: object) -> str:
    return str(1 / 0)


def die(*_: object) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def sleep(*_: object) -> str:
    time.sleep(600)
    return ""


def take_memory(_first: object, body: bytes, *_: object) -> str:
    """Take one gigabyte more than any parser may."""
    return (body * 10**9).decode()


def write_file(_first: object, body: bytes, *_: object) -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_bytes(body)
    return ""


def read_of_parent(name: str, *_: object) -> str:
    """Read a file of the parent in /proc: the memory of ``mem`` begins at no readable place."""
    with Path(f"/proc/{os.getppid()}/{name}").open("rb") as file:
        return str(len(file.read(1)))


def start_process(*_: object) -> str:
    return subprocess.run(["/bin/echo", "started"], check=True, capture_output=True).stdout.decode()


def variables(*_: object) -> str:
    return "\n".join(os.environ)
