"""No test reaches beyond this machine: whatever tries to, fails the test that it runs in."""

import sys
from ipaddress import ip_address
from typing import Any

import pytest

REACHING_OUT = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"}


class OutsideError(BaseException):
    """A test reached for the network; no handler of the service takes this for an outage."""


def is_loopback(place: Any) -> bool:
    """Whether a socket's address, or a host by itself, is of this machine."""
    host = place[0] if isinstance(place, tuple) else place
    if host in {None, "", "localhost"} or isinstance(place, bytes) or str(place).startswith("/"):
        return True  # a name for this machine, or a file that is a socket
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse an event of Python's audit that would leave the machine."""
    if event in REACHING_OUT:
        place = arguments[0] if event == "socket.getaddrinfo" else arguments[-1]
        if not is_loopback(place):
            msg = f"{event} {place!r}: tests stay on loopback"
            raise OutsideError(msg)


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> None:
    sys.addaudithook(refuse)
