"""Pauses between attempts, for tests of the engine."""

import pytest

from chalicelib.core import retry


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, recorded instead of slept."""
    slept: list[float] = []
    monkeypatch.setattr(retry, "sleep", slept.append)
    return slept
