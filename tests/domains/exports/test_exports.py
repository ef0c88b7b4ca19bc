"""Exports of a workspace that a key or the owner starts, and their jobs."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience, Role
from chalicelib.domains.exports.flows import contents, runs
from chalicelib.domains.exports.operations import exports as operations
from chalicelib.domains.exports.rules import read_scopes
from chalicelib.domains.exports.rules.job_kinds import EXPORT, EXPORT_EXPIRED
from chalicelib.domains.exports.store.exports import EXPORTS, ExportRow
from chalicelib.engine import jobs
from chalicelib.gateways.object_store import FolderStore, object_store
from chalicelib.transports import scheduled_functions
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things
from tests.factories.exports import download, run_console_export, run_export, run_until_done
from tests.factories.files import list_stored_files
from tests.factories.payments import record_payments
from tests.factories.saved_meanwhile import SavedMeanwhile

pytestmark = pytest.mark.usefixtures("database")
START = "/api/workspace/export"


def file_of(export: Any) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(download(export["url"])))


def lines_of(file: zipfile.ZipFile) -> list[Any]:
    names = [name for name in file.namelist() if name.startswith("rows/")]
    return [json.loads(line) for name in names for line in file.read(name).splitlines()]


def stored_of(workspace_id: str) -> list[str]:
    return [key for key in list_stored_files() if key.startswith(f"{workspace_id}/exports/")]


class TestByKey:
    def test_a_key_exports_the_workspace_to_a_complete_file(
        self, api: Api, things: Things, owner: Owner
    ) -> None:
        export = run_export(api)
        assert export["state"] == "ready"
        assert export["hasPayments"] is False
        assert export["missingObjects"] == 0
        file = file_of(export)
        assert file.testzip() is None
        assert export["size"] == len(download(export["url"]))
        manifest = json.loads(file.read("manifest.json"))
        assert manifest["notIncluded"] == export["notIncluded"] == {**contents.NOT_INCLUDED_BY_KEY}
        assert {line["item"]["sk"]["S"] for line in lines_of(file) if "item" in line} >= {
            *(things.product, things.page, things.webhook, things.client)
        }
        assert len(stored_of(owner.workspace.id)) == 1, "only the file remains"

    def test_a_key_without_a_read_scope_is_told_which(self, owner: Owner, things: Things) -> None:
        api = owner.api("*:read", "settings:read")
        answer = api.call_refused("POST", START, {})
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")
        assert answer.data["scopes"] == ["webhooks:read"]
        full = owner.api("*:read", "settings:read", "webhooks:read")
        export = run_export(full)
        answer = api.call_refused("GET", f"/api/exports/{export['id']}")
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")

    def test_the_scopes_are_those_of_every_exported_noun(self) -> None:
        scopes = {entry.word: entry.scope for entry in REGISTRY.entries()}
        for listing in contents.nouns():
            if listing.listed_by:
                assert scopes[listing.listed_by] in read_scopes.NEEDED, listing.noun

    def test_no_row_of_money_and_no_member_is_in_the_file_of_a_key(
        self, api: Api, things: Things, owner: Owner
    ) -> None:
        workspace = owner.workspace
        record_payments(workspace.id, workspace.owner_id, things.booking)
        call_operator("set_bot_limits", agentId=things.agent, daily=5000)
        call_operator("create_account", email="mate@example.com", password="long enough")
        call_operator(
            "add_member", workspaceId=workspace.id, email="mate@example.com", role="manager"
        )
        by_console = lines_of(file_of(run_console_export(owner.workspace.id)))
        by_key = lines_of(file_of(run_export(api)))
        money = ("PAYMENT", "PAYMENT#REFUND", "MERCHANT", "BUDGET", "METRICS#spending")
        found = {at for line in by_console for at in money if line.get("at", "").startswith(at)}
        assert found == {*money}
        assert not [line for line in by_key if line.get("at", "").startswith(money)]
        for line in by_key:
            assert not contents.PAYMENT_ATTRIBUTES & line.get("item", {}).keys()
        mate = "mate@example.com"
        text = json.dumps(by_key)
        assert mate in json.dumps(by_console)
        assert mate not in text
        assert str(api.token) not in text
        assert "sealed_secret" not in text

    def test_a_key_does_not_find_an_export_of_the_console(self, api: Api, owner: Owner) -> None:
        export = run_console_export(owner.workspace.id)
        assert export["hasPayments"] is True
        assert api.call_refused("GET", f"/api/exports/{export['id']}").status == 404

    def test_the_owner_is_told_once_of_an_export_by_a_key(self, api: Api, inbox: Inbox) -> None:  # noqa: F811  the fixture
        scheduled_functions.run_jobs()  # One that runs is not started again.
        run_until_idle()
        inbox.clear()
        for _ in range(2):
            started = api.post(START, {})
        run_until_idle()
        assert inbox.kinds == ["export_started"]
        assert f"/exports/{started['exportId']}" in text_of(inbox.only())

    def test_a_second_request_returns_the_running_export(self, api: Api) -> None:
        first = api.post(START, {})
        assert first["state"] == "running"
        assert api.post(START, {}) == first
        export = api.get(f"/api/exports/{first['exportId']}")
        assert (export["state"], export["url"], export["size"]) == ("running", None, None)

    def test_keys_and_the_console_have_a_daily_share_each(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        for _ in range(operations.MAX_A_DAY):
            run_export(api)
        answer = api.call("POST", START, b"{}", {"Content-Type": "application/json"})
        assert (answer.status, answer.data["key"]) == (429, "exports")
        assert 0 < int(answer.headers["Retry-After"]) <= 86_401
        assert run_console_export(owner.workspace.id)["state"] == "ready"
        time.pass_by(days=1, seconds=1)
        assert run_export(api)["state"] == "ready"

    def test_the_url_is_valid_for_15_minutes_and_made_anew(self, api: Api, time: Time) -> None:
        export = run_export(api)
        time.pass_by(minutes=15, seconds=1)
        with pytest.raises(AssertionError, match="not valid"):
            download(export["url"])
        again = api.get(f"/api/exports/{export['id']}")
        assert again["url"] != export["url"]
        assert download(again["url"])

    def test_the_file_is_deleted_after_a_week(self, api: Api, owner: Owner, time: Time) -> None:
        export = run_export(api)
        time.pass_by(days=7, seconds=1)
        assert jobs.run(JOB_HANDLERS)[EXPORT_EXPIRED] == 1
        assert api.call_refused("GET", f"/api/exports/{export['id']}").status == 404
        assert stored_of(owner.workspace.id) == []
        assert EXPORTS.latest(owner.workspace.id, 9) == []

    def test_an_export_is_deleted_although_a_run_saves_it_meanwhile(
        self, api: Api, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        export = run_export(api)
        time.pass_by(days=7, seconds=1)
        store = SavedMeanwhile(EXPORTS, owner.workspace.id, export["id"])
        monkeypatch.setattr(runs, "object_store", lambda: store)
        assert jobs.run(JOB_HANDLERS)[EXPORT_EXPIRED] == 1
        assert store.has_saved
        assert stored_of(owner.workspace.id) == []


class TestByOwner:
    def test_only_the_owner_exports_and_confirms_with_the_password(self, owner: Owner) -> None:
        workspace = owner.workspace.id
        assert REGISTRY["export_workspace"].role == Role.OWNER
        assert REGISTRY["export_workspace"].confirm is not None
        assert REGISTRY["export_workspace"].audience == {Audience.KEY, Audience.SESSION}
        assert run_console_export(workspace)["state"] == "ready"
        (listed,) = call_console(workspace, "list_exports")["exports"]
        assert listed["hasPayments"] is True


class TestInterrupted:
    """Whatever a run has done when it ends, the file is complete in the end."""

    @pytest.fixture
    def short_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each run ends after its first batch."""
        monkeypatch.setattr(runs, "RUN_SECONDS", 0.0)

    @pytest.fixture
    def small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runs, "PART_BYTES", 700)
        monkeypatch.setattr(runs, "MIN_PART_BYTES", 700)

    def whole(self, api: Api) -> tuple[set[str], list[str]]:
        file = file_of(run_export(api))
        assert file.testzip() is None
        manifest = json.loads(file.read("manifest.json"))
        assert {*manifest["files"], "manifest.json"} == {*file.namelist()}
        lines = sorted(json.dumps(line, sort_keys=True) for line in lines_of(file))
        assert sum(manifest["counts"].values()) - manifest["counts"].get("objects", 0) == len(lines)
        return {name for name in file.namelist() if name.startswith("objects/")}, lines

    @pytest.mark.parametrize("parts", ["small_parts", "usual_parts"])
    def test_an_export_in_many_runs_is_equal_to_one_in_a_single_run(
        self, api: Api, things: Things, parts: str, request: pytest.FixtureRequest
    ) -> None:
        jobs.run(JOB_HANDLERS)  # what they change is done before
        once = self.whole(api)
        if parts == "small_parts":
            request.getfixturevalue(parts)
        request.getfixturevalue("short_runs")
        assert self.whole(api) == once

    @pytest.mark.parametrize("method", ["put", "put_part", "complete_parts", "begin_parts"])
    @pytest.mark.parametrize("is_done", [True, False])
    def test_a_run_that_is_killed_is_continued_by_the_next(
        self,
        api: Api,
        things: Things,
        time: Time,
        method: str,
        is_done: bool,
        short_runs: None,
        small_parts: None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        jobs.run(JOB_HANDLERS)  # as above
        once = self.whole(api)
        with monkeypatch.context() as patched:
            kills = _kill_each_third(patched, method, is_done=is_done)
            export_id = api.post(START, {})["exportId"]

            def read() -> Any:
                time.pass_by(minutes=7)  # after a failure, a job pauses
                return api.get(f"/api/exports/{export_id}")

            export = run_until_done(read)
            assert next(kills) > 0
        assert export["state"] == "ready"
        file = file_of(export)
        assert file.testzip() is None
        lines = sorted(json.dumps(line, sort_keys=True) for line in lines_of(file))
        assert lines == once[1]

    @pytest.fixture
    def begun(
        self,
        api: Api,
        things: Things,
        owner: Owner,
        time: Time,
        small_parts: None,
        short_runs: None,
    ) -> ExportRow:
        """Start an export, and run its job until a part of the file is stored."""
        jobs.run(JOB_HANDLERS)  # the export of ``things`` ends
        export_id = api.post(START, {})["exportId"]
        job = jobs.row(EXPORT, owner.workspace.id, {"exportId": export_id})
        (row,) = EXPORTS.latest(owner.workspace.id, 1)
        while not row.parts:
            with pytest.raises(runs.Postponed):
                JOB_HANDLERS[EXPORT](job)
            (row,) = EXPORTS.latest(owner.workspace.id, 1)
        assert row.id == export_id
        return row

    def test_an_export_whose_upload_is_gone_begins_again(self, api: Api, begun: ExportRow) -> None:
        object_store().abort_parts(begun.key, begun.upload_id or "")
        export = run_until_done(lambda: api.get(f"/api/exports/{begun.id}"))
        assert export["state"] == "ready"
        assert file_of(export).testzip() is None

    def test_an_export_that_does_not_succeed_in_a_day_is_given_up(
        self, api: Api, owner: Owner, begun: ExportRow, time: Time
    ) -> None:
        time.pass_by(days=1, seconds=1)
        jobs.run(JOB_HANDLERS)
        assert api.get(f"/api/exports/{begun.id}")["state"] == "failed"
        assert stored_of(owner.workspace.id) == []


def _kill_each_third(patched: pytest.MonkeyPatch, method: str, *, is_done: bool) -> Iterator[int]:
    """Let each third call of a method of the store fail, after or before it is done."""
    real: Callable[..., Any] = getattr(FolderStore, method)
    calls = kills = 0

    def call(store: FolderStore, key: str, *args: Any, **options: Any) -> Any:
        nonlocal calls, kills
        if "/exports/" not in key or ".parts/" in key:
            return real(store, key, *args, **options)
        calls += 1
        is_killed = calls % 3 == 1
        kills += is_killed
        if is_killed and not is_done:
            raise UnavailableError
        result = real(store, key, *args, **options)
        if is_killed:
            raise UnavailableError
        return result

    patched.setattr(FolderStore, method, call)

    def counted() -> Iterator[int]:
        while True:
            yield kills

    return counted()
