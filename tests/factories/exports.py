"""Exports of a workspace, made through the API or the console."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.engine import jobs
from chalicelib.gateways.object_store import FolderStore, object_store
from tests.conftest import Api, call_console

MAX_RUNS = 300


def run_export(api: Api) -> Any:
    """Start an export by key, run its job, and return the export."""
    export_id = api.post("/api/workspace/export", {})["exportId"]
    return run_until_done(lambda: api.get(f"/api/exports/{export_id}"))


def run_console_export(workspace_id: str) -> Any:
    """Start an export as the owner in the console, run its job, and return the export."""
    export_id = call_console(workspace_id, "export_workspace")["exportId"]
    return run_until_done(lambda: call_console(workspace_id, "get_export", id=export_id))


def run_until_done(read: Callable[[], Any]) -> Any:
    """Run the jobs until an export has ended. A run of the runner is one run of its job."""
    for _ in range(MAX_RUNS):
        jobs.run(JOB_HANDLERS)
        export = read()
        if export["state"] != "running":
            return export
    raise AssertionError("the export is still running")


def download(url: str) -> bytes:
    """Return the file that a URL of the local server gives."""
    store = object_store()
    assert isinstance(store, FolderStore)
    key = store.find_download(url.rpartition("/")[2])
    assert key is not None, "the URL is not valid"
    body = store.get(key)
    assert body is not None, "the file is gone"
    return body


def save(export: Any, path: Path) -> Path:
    """Download the file of an export."""
    path.write_bytes(download(export["url"]))
    return path
