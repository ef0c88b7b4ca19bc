"""An export that was made by the API or in the console is imported by the operator."""

from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.core.operations import load_all
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.notifications.store import choices
from chalicelib.domains.webhooks.rules.signatures import webhook_secret
from chalicelib.domains.webhooks.store import webhooks
from chalicelib.gateways.master_key import master_key
from tests.conftest import Api, Owner, call_console, call_operator
from tests.domains.notifications.inbox import choose
from tests.factories.exports import run_console_export, run_export, save
from tests.factories.salon import Salon
from tests.factories.transfer import Furnished, comparable, rows_of
from tests.support.export_files import read_whole, run, start_empty

pytestmark = pytest.mark.usefixtures("database")
load_all()
MONEY_PARTITIONS = ("#BUDGET", "#PAYMENT", "#MERCHANT", "#METRICS#spending")


@pytest.mark.parametrize("by", ["key", "console"])
def test_a_workspace_that_was_exported_is_imported_with_nothing_lost_but_what_the_file_names(
    by: str,
    bakery: Furnished,
    api: Api,
    empty_database: Callable[[], None],
    tmp_path: Path,
) -> None:
    workspace, rows = bakery.workspace, rows_of(bakery.workspace)
    export = run_export(api) if by == "key" else run_console_export(workspace)
    file = save(export, tmp_path / "bakery.zip")
    start_empty(empty_database, bakery.owner_email)
    printed = run("import", str(file))
    assert printed["notIncluded"] == export["notIncluded"]
    restored = comparable(rows_of(workspace), workspace)
    expected = comparable(rows, workspace)
    if by == "key":
        assert {"payments", "botLimits"} <= printed["notIncluded"].keys()
        expected = {
            key: row for key, row in expected.items() if not any(p in key for p in MONEY_PARTITIONS)
        }
    assert restored == expected
    assert bakery.reads == bakery.answers


def test_the_file_of_a_job_equals_that_of_the_command(
    bakery: Furnished, tmp_path: Path, export_file: Path
) -> None:
    by_job = save(run_console_export(bakery.workspace), tmp_path / "job.zip")
    by_command = tmp_path / "command.zip"
    run("export", "--workspace", bakery.workspace, "--out", str(by_command))
    lines = [
        # The jobs of the workspace run together with that of the export.
        sorted(repr(line) for line in read_whole(path) if "job" not in line)
        for path in (by_job, by_command)
    ]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("ids", ["keep", "new"])
def test_webhooks_are_imported_paused_and_with_a_new_secret(
    ids: str, owner: Owner, connected: None, empty_database: Callable[[], None], tmp_path: Path
) -> None:
    workspace, email = owner.workspace.id, accounts.get(owner.workspace.owner_id).email
    added = call_console(
        workspace, "create_webhook", url="https://crm.example/in", events=["lead.created"]
    )
    file = save(run_console_export(workspace), tmp_path / "a.zip")
    if ids == "keep":
        start_empty(empty_database, email)
    printed = run("import", str(file), "--ids", ids)
    (row,) = webhooks.read_all(printed["workspaceId"])
    (shown,) = call_console(printed["workspaceId"], "list_webhooks")["webhooks"]
    assert (shown["url"], shown["events"]) == ("https://crm.example/in", ["lead.created"])
    assert (shown["status"], shown["offBecause"], shown["keyIds"]) == ("off", "imported", [])
    versions = [*row.valid_versions]
    secrets = [
        webhook_secret(master_key(), row.pk.split("#")[1], webhook_id=row.id, version=version)
        for version in versions
    ]
    assert len(secrets) == 1
    assert added["secret"] not in secrets
    assert not workspaces.get(printed["workspaceId"]).webhook_events


@pytest.mark.parametrize("ids", ["keep", "new"])
def test_members_have_their_choices_and_their_place_in_the_staff(
    ids: str,
    api: Api,
    owner: Owner,
    connected: None,
    empty_database: Callable[[], None],
    tmp_path: Path,
) -> None:
    workspace, email = owner.workspace, accounts.get(owner.workspace.owner_id).email
    salon = Salon.opened(api, [{}])
    mate = call_operator("create_account", email="mate@example.com", password="long enough")
    call_operator("add_member", workspaceId=workspace.id, email="mate@example.com", role="member")
    choose(owner, workspace.owner_id, "owner", booking=["telegram"])
    choose(owner, mate["accountId"], "member", language="ru", booking=[])
    resource = salon.resources[0]
    call_console(workspace.id, "link_member", accountId=mate["accountId"], resourceId=resource)
    file = save(run_console_export(workspace.id), tmp_path / "a.zip")
    if ids == "keep":
        start_empty(empty_database, email)
        mate = call_operator("create_account", email="mate@example.com", password="long enough")
    copy = run("import", str(file), "--ids", ids)["workspaceId"]
    wanted = choices.read_all(copy)
    assert {*wanted} == {workspaces.get(copy).owner_id, mate["accountId"]}
    assert all(row.chosen["booking.mail"] is False for row in wanted.values())
    assert wanted[mate["accountId"]].language == "ru"
    membership = workspaces.membership(mate["accountId"], workspace_id=copy)
    assert membership is not None
    (person,) = call_console(copy, "list_resources")["resources"]
    assert membership.resource_id == person["id"]
    assert (person["id"] == resource) is (ids == "keep")
