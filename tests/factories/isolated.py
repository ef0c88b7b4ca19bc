"""Functions for a process of their own (``gateways.isolation``), most of them with a fault."""

import os
import signal
import tempfile
import time
from pathlib import Path


class RefusedError(Exception):
    """An error of this module."""


def join(first: str | None, body: bytes, *rest: str | None) -> str:
    return " ".join(map(str, (first, *rest, body.decode())))


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


def variables(*_: object) -> str:
    return "\n".join(os.environ)
