"""Imports of a file that is older than an erasure, and what a file keeps to itself."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.operations import load_all
from chalicelib.domains.booking_page.store.page_settings import AssistantsRow
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.clients.store import erased_records
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import run_unit
from tests.conftest import call_console, call_operator
from tests.factories.transfer import Furnished, call_with_key, rows_of
from tests.support.export_files import run, start_empty

pytestmark = pytest.mark.usefixtures("database")
load_all()

PEOPLE = {
    "zoe.ray@example.com": ["Zoe Ray", "zoe.ray"],
    "long@example.com": ["жжжжж", "long@"],
    "bob@example.com": ["And rolls?"],
    "kim@example.com": ["kim@"],
}
"""Clients of the workspace, with strings that only their records contain."""


def erase(workspace: str, email: str) -> None:
    call_operator("erase_client", workspaceId=workspace, email=email)


def remaining_texts(workspace: str, texts: list[str]) -> dict[str, list[str]]:
    rows = {key: str(row) for key, row in rows_of(workspace).items() if "IDEMPOTENCY" not in key}
    found_keys = {text: [key for key, row in rows.items() if text in row] for text in texts}
    return {text: keys for text, keys in found_keys.items() if keys}


@pytest.mark.parametrize("email", PEOPLE)
def test_copy_of_an_older_export_has_no_data_of_an_erased_client(
    email: str, bakery: Furnished, export_file: Path
) -> None:
    erase(bakery.workspace, email)
    printed = run("import", str(export_file), "--ids", "new")
    assert printed["erasedAgain"] > 0
    copy = printed["workspaceId"]
    assert remaining_texts(copy, [email, *PEOPLE[email]]) == {}
    others = [other for other in PEOPLE if other != email]
    assert remaining_texts(copy, others).keys() == set(others)
    original, copied = (
        {
            noun: call_with_key(workspace, f"list_{noun}")
            for noun in ("leads", "clients", "bookings")
        }
        for workspace in (bakery.workspace, copy)
    )
    for noun, old_records in original.items():
        assert _statuses(copied[noun]) == _statuses(old_records)
    second_import = run("import", str(export_file), "--ids", "new")
    assert second_import["erasedAgain"] == printed["erasedAgain"]


def _statuses(records_by_noun: Any) -> list[tuple[Any, Any]]:
    records = next(
        value
        for value in records_by_noun.values()
        if isinstance(value, list) and isinstance(value[0], dict)
    )
    return [(record.get("status"), record.get("email")) for record in records]


def test_a_restored_workspace_has_no_data_of_an_erased_person(
    bakery: Furnished, export_file: Path
) -> None:
    erase(bakery.workspace, "zoe.ray@example.com")
    workspace = workspaces.get(bakery.workspace)
    claim = workspaces.slug_claim(workspace)
    run_unit(bakery.workspace, None, lambda unit: (unit.delete(workspace), unit.delete(claim))[0])
    run("import", str(export_file))
    assert remaining_texts(bakery.workspace, ["Zoe Ray", "zoe.ray"]) == {}


def test_an_erasure_is_known_wherever_the_workspace_is_moved_to(
    bakery: Furnished, export_file: Path, empty_database: Callable[[], None], tmp_path: Path
) -> None:
    erase(bakery.workspace, "zoe.ray@example.com")
    newer = tmp_path / "newer.zip"
    run("export", "--workspace", bakery.workspace, "--out", str(newer))
    start_empty(empty_database, bakery.owner_email)
    run("import", str(newer))
    assert erased_records.erased_ids(bakery.workspace)
    copy = run("import", str(export_file), "--ids", "new")["workspaceId"]
    assert remaining_texts(copy, ["Zoe Ray", "zoe.ray"]) == {}


def test_a_file_has_no_secrets_of_bookings_and_an_import_makes_new_ones(
    bakery: Furnished, export_file: Path, empty_database: Callable[[], None]
) -> None:
    old_secrets = secrets_of(bakery.workspace)
    assert any(old_secrets.values())
    with zipfile.ZipFile(export_file) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert b"token_secret" not in content
    assert not [secret for secret in old_secrets.values() if secret and secret.encode() in content]
    start_empty(empty_database, bakery.owner_email)
    run("import", str(export_file))
    new_secrets = secrets_of(bakery.workspace)
    assert new_secrets.keys() == old_secrets.keys()
    assert all(new_secrets.values())
    assert not {*new_secrets.values()} & {*old_secrets.values()}


def test_a_copy_admits_no_assistants_by_the_secret_of_the_original(
    bakery: Furnished, tmp_path: Path
) -> None:
    call_console(bakery.workspace, "admit_assistants", isOn=True)
    secret = AssistantsRow.read(bakery.workspace).link_secret
    file = tmp_path / "admitted.zip"
    run("export", "--workspace", bakery.workspace, "--out", str(file))
    with zipfile.ZipFile(file) as archive:
        assert not [
            name for name in archive.namelist() if str(secret).encode() in archive.read(name)
        ]
    copy = run("import", str(file), "--ids", "new")["workspaceId"]
    assert call_console(copy, "get_assistants")["isOn"] is False
    assert call_console(copy, "admit_assistants", isOn=True)["isOn"] is True
    assert AssistantsRow.read(copy).link_secret not in {None, secret}


def secrets_of(workspace: str) -> dict[str, str | None]:
    return {row.id: row.token_secret for row in BOOKINGS.latest(workspace, 100)}
