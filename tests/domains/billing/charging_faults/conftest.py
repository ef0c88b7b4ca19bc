"""Pauses between attempts take no time in these tests."""

import pytest

from chalicelib.core import deadline, retry


@pytest.fixture(autouse=True)
def _instant_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses take no real time, but they move the clock."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(retry, "sleep", pause)
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
