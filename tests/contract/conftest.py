"""The sweeps call every operation, those that ask outside included: what they ask is here."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from chalicelib.gateways import photos
from tests.fakes.openverse import FakeOpenverse


@pytest.fixture(scope="session")
def _openverse() -> Iterator[FakeOpenverse]:
    with FakeOpenverse() as server:
        yield server


@pytest.fixture(autouse=True)
def _outside(_openverse: FakeOpenverse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search photos on loopback."""
    chosen = replace(photos.settings(), photo_source=f"openverse={_openverse.url}")
    monkeypatch.setattr(photos, "settings", lambda: chosen)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
