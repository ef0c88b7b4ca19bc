"""Keeps a process and its children off the network: ``PYTHONPATH=tests/offline``.

Connections fail as they would on a machine without a network.
"""

import socket
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.loopback import REACHING_OUT, is_loopback


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse a Python audit event that would reach another machine."""
    if event in REACHING_OUT:
        resolves = event == "socket.getaddrinfo"
        if not is_loopback(arguments[0] if resolves else arguments[-1]):
            raise socket.gaierror("no names here") if resolves else OSError("no network here")


sys.addaudithook(refuse)
