"""Keeps a process on this machine, and its children: ``PYTHONPATH=tests/offline``.

The processes fail to connect as they would on a machine without a network.
"""

import socket
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.loopback import REACHING_OUT, is_loopback


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse an event of Python's audit that would leave the machine."""
    if event in REACHING_OUT:
        resolves = event == "socket.getaddrinfo"
        if not is_loopback(arguments[0] if resolves else arguments[-1]):
            raise socket.gaierror("no names here") if resolves else OSError("no network here")


sys.addaudithook(refuse)
