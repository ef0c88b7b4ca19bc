"""Fixtures with fake payment providers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import settings as settings_module
from chalicelib.gateways.payments import local_merchant as local_merchant_gateway
from chalicelib.gateways.payments import stripe as stripe_gateway
from chalicelib.gateways.payments import yookassa as yookassa_gateway
from tests.fakes.payments.stripe import FakeStripe
from tests.fakes.payments.yookassa import FakeYooKassa


@pytest.fixture
def yookassa(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeYooKassa]:
    """A fake YooKassa with the shop 506751."""
    with FakeYooKassa() as server:
        _use(monkeypatch, yookassa_gateway, yookassa_url=server.url)
        yield server


@pytest.fixture
def stripe(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStripe]:
    """A fake Stripe with one account."""
    with FakeStripe() as server:
        _use(monkeypatch, stripe_gateway, stripe_url=server.url)
        yield server


@pytest.fixture
def local_merchant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A test merchant without payments."""
    _use(monkeypatch, local_merchant_gateway, object_store=f"file://{tmp_path}")


def _use(monkeypatch: pytest.MonkeyPatch, gateway: Any, **urls: str) -> None:
    configured = replace(settings_module.settings(), **urls)  # type: ignore[arg-type]
    monkeypatch.setattr(gateway, "settings", lambda: configured)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
