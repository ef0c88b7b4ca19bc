"""Wakes the runner of event jobs, so that events do not wait for its next scheduled run."""

from threading import Event

_awake = Event()


def wake() -> None:
    """Wake the runner."""
    _awake.set()


def wait(seconds: float) -> None:
    """Wait until the runner is woken, at most for some seconds."""
    _awake.wait(seconds)
    _awake.clear()
