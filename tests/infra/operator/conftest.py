"""A workspace with records of every type and its export, for tests of ``export`` and ``import``."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.domains.webhooks.store import deliveries
from chalicelib.engine.unit import run_unit
from infra.operator import admin as command_line
from tests.conftest import Api, Owner, Time, call_operator
from tests.factories.examples import Things
from tests.factories.transfer import Furnished, furnish
from tests.support.export_files import run
from tests.support.restoring import Snapshots


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    """Let commands use the database of the tests."""
    monkeypatch.setattr(command_line, "connect", lambda _stage, **_: None)


@pytest.fixture
def _bakery(
    api: Api,
    owner: Owner,
    txt_records: dict[str, Any],
    time: Time,
    connected: None,
    snapshots: Snapshots,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Furnished, Path]:
    """A workspace with records of every type, and its export."""

    def make() -> tuple[Furnished, Path]:
        # Those of the fixture are as old as the run, which may be later than ``time``.
        things = Things.made_with(api)
        call_operator("delete_webhook", id=things.webhook)  # It is not exported.
        delivery = deliveries.find(owner.workspace.id, things.delivery)
        run_unit(owner.workspace.id, None, lambda unit: unit.delete(delivery))
        bakery = furnish(api, owner, things, txt_records)
        path = tmp_path_factory.mktemp("export") / "bakery.zip"
        run("export", "--workspace", bakery.workspace, "--out", str(path))
        return replace(bakery, answers=bakery.reads), path

    export: tuple[Furnished, Path] = snapshots.once(f"bakery of {owner.workspace.id}", make)
    return export


@pytest.fixture
def bakery(_bakery: tuple[Furnished, Path]) -> Furnished:
    """A workspace with records of every type."""
    return _bakery[0]


@pytest.fixture
def export_file(_bakery: tuple[Furnished, Path], tmp_path: Path) -> Path:
    """The export of ``bakery``."""
    return Path(shutil.copy2(_bakery[1], tmp_path / "bakery.zip"))
