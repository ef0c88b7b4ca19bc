"""An interrupted ``import`` continues when it is run again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib.core.errors import NotFoundError
from chalicelib.core.operations import load_all
from chalicelib.domains.files.store import files
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from infra.operator.transfer import (
    batch_writes,
    importing,
    restoring,
)
from tests.conftest import all_rows, call_operator
from tests.factories.examples import submit
from tests.factories.transfer import Furnished, comparable, rows_of
from tests.support.export_files import (
    entries_of,
    packed,
    run,
    run_failing,
    start_empty,
)

pytestmark = pytest.mark.usefixtures("database")
load_all()


class TestInterrupted:
    @pytest.mark.store
    @pytest.mark.parametrize(
        ("ids", "where"),
        [
            *(("keep", where) for where in ("early", "late", "claims", "workspace", "jobs")),
            *(("new", where) for where in ("late", "jobs")),
        ],
    )
    def test_interrupted_import_continues_and_completes(
        self,
        where: str,
        ids: str,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        with monkeypatch.context() as patched:
            _kill(patched, where)
            run_failing("import", str(export_file), "--ids", ids)
        printed = run("import", str(export_file), "--ids", ids)
        assert printed["resumed"] is True
        workspace = printed["workspaceId"]
        twice = dict(rows_of(workspace))
        scheduled = sorted(job.job_id for job in jobs.read_workspace_jobs(workspace))
        empty_database()
        call_operator("create_account", email=bakery.owner_email, password="long enough")
        if ids == "keep":
            run("import", str(export_file))
            assert comparable(rows_of(workspace), workspace) == comparable(twice, workspace)
            assert sorted(job.job_id for job in jobs.read_workspace_jobs(workspace)) == scheduled
        else:
            once = run("import", str(export_file), "--ids", "new")["workspaceId"]
            assert len(comparable(rows_of(once), once)) == len(comparable(twice, workspace))
        assert not [key for key in all_rows() if "IMPORT#" in key]

    def test_import_of_another_file_is_refused_until_the_first_is_complete(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        with monkeypatch.context() as patched:
            _kill(patched, "late")
            run_failing("import", str(export_file))
        other = export_file.with_name("other.zip")
        other.write_bytes(packed(entries_of(export_file) | {"rows/jobs.jsonl": b""}))
        old_rows = all_rows()
        assert "interrupted" in run_failing("import", str(other))
        assert all_rows() == old_rows
        run("import", str(export_file))

    def test_partly_imported_workspace_is_not_accessible(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        with monkeypatch.context() as patched:
            _kill(patched, "workspace")
            run_failing("import", str(export_file))
        with pytest.raises(NotFoundError):
            submit(bakery.things.form, name="A", email="a@example.com")
        assert "No workspace" in run_failing(
            "create-key", "--workspace", bakery.workspace, "--name", "x", "--scopes", "*:read"
        )

    def test_unprocessed_rows_are_sent_again(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        rows = comparable(rows_of(bakery.workspace), bakery.workspace)
        start_empty(empty_database, bakery.owner_email)
        client, turns = connection().client, iter(range(10**6))
        real = client.batch_write_item

        def partly(RequestItems: Any) -> Any:  # noqa: N803  boto3's name
            turn = next(turns)
            if turn % 3 == 1:
                error = {"Error": {"Code": "ThrottlingException", "Message": "slow down"}}
                raise ClientError(error, "BatchWriteItem")
            if turn % 3 == 2:
                return real(RequestItems=RequestItems)
            (table, rows), *more_tables = RequestItems.items()
            unsent = {table: rows[1:], **dict(more_tables)} if len(rows) > 1 else dict(more_tables)
            real(RequestItems={table: rows[:1]})
            return {"UnprocessedItems": unsent}

        monkeypatch.setattr(batch_writes.retry, "sleep", lambda _: None)
        monkeypatch.setattr(client, "batch_write_item", partly)
        run("import", str(export_file))
        assert comparable(rows_of(bakery.workspace), bakery.workspace) == rows


def _kill(patched: pytest.MonkeyPatch, where: str) -> None:
    """Make an import fail at one of its steps."""

    def dies(*_: Any, **__: Any) -> Any:
        raise RuntimeError("killed")

    if where == "early":
        turns = iter(range(10**6))
        real = restoring.Restoring._put_row

        def some(self: Any, *arguments: Any) -> None:
            if next(turns) == 5:
                dies()
            real(self, *arguments)

        patched.setattr(restoring.Restoring, "_put_row", some)
    elif where == "late":
        patched.setattr(files, "usage_row", dies)
    elif where == "claims":
        patched.setattr(importing, "_stage_claims", dies)
    elif where == "workspace":
        patched.setattr(importing, "_workspace_row", dies)
    else:
        patched.setattr(restoring.Restoring, "write_jobs", dies)
