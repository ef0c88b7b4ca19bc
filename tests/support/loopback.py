"""Fails tests that connect to another machine."""

import sys
from ipaddress import ip_address
from typing import Any

import pytest

REACHING_OUT = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"}


class OutsideError(BaseException):
    """A test tried to reach the network. Handlers of the service do not catch it as an outage."""


def is_loopback(place: Any) -> bool:
    """Whether a socket's address or a host name belongs to this machine."""
    host = place[0] if isinstance(place, tuple) else place
    if host in {None, "", "localhost"} or isinstance(place, bytes) or str(place).startswith("/"):
        return True  # a name of this machine, or the path of a socket
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse a Python audit event that would reach another machine."""
    if event in REACHING_OUT:
        place = arguments[0] if event == "socket.getaddrinfo" else arguments[-1]
        if not is_loopback(place):
            msg = f"{event} {place!r}: tests stay on loopback"
            raise OutsideError(msg)


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> None:
    sys.addaudithook(refuse)
