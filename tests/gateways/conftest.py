"""A chat API on loopback, and pauses that are recorded instead of slept."""

from collections.abc import Iterator

import pytest

from chalicelib.core import retry
from tests.fakes import openai_api
from tests.fakes.openai_api import OpenAiApi


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with openai_api.serving() as server:
        yield server


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between attempts instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr(retry, "sleep", slept.append)
    return slept
