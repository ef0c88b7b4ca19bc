"""Write a workspace to a file (``infra admin export``)."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import click

from chalicelib.core import clock
from chalicelib.core.operations import load_all
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.exports.flows import exporting
from chalicelib.domains.exports.flows.exporting import READERS, Cursor, Exporter, Found
from chalicelib.domains.exports.rules.archive import Archive
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import audit
from chalicelib.engine.connection import reaching

PIECE_BYTES = 8_000_000


def export(workspace_id: str, path: Path) -> dict[str, Any]:
    """Write a workspace to a file; return its counts.

    Only the user who created the file may read it. It has the suffix ``.part`` until it is
    complete.

    Raises:
        NotFoundError: the workspace does not exist.
        ClickException: the file exists already, or cannot be written.
        UnavailableError: the database or the object store is unavailable; the incomplete file has
            the suffix ``.part``.
    """
    load_all()
    begun, started = clock.now(), time.monotonic()
    workspace = workspaces.get(workspace_id)
    archive, found = Archive(), Found()
    part = path.with_name(f"{path.name}.part")
    with _create(path, part) as file:
        _write(workspace, archive, found, file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    changes = sum(row.at >= begun for row in audit.latest(workspace_id))
    event = AuditEvent("export_workspace", "operator", resources=(f"workspace:{workspace_id}",))
    with reaching():
        audit.row(workspace_id, event).save()
    if changes:
        click.echo(
            f"The workspace was changed {changes} time(s) or more while it was read: what refers to"
            " each other may not fit. Export again when it is quiet, if that matters.",
            err=True,
        )
    for key in found.missing:
        click.echo(f"The object {key} is missing from the object store.", err=True)
    return {
        "workspaceId": workspace_id,
        "file": str(path),
        "bytes": path.stat().st_size,
        "counts": dict(sorted(archive.counts.items())),
        "objectsMissing": len(found.missing),
        "changedMeanwhile": changes,
        "notIncluded": dict(exporting.not_included(has_money=True)),
        "seconds": round(time.monotonic() - started, 1),
    }


def _create(path: Path, part: Path) -> IO[bytes]:
    if path.exists():
        msg = f"{path} already exists. Choose another file."
        raise click.ClickException(msg)
    try:
        part.unlink(missing_ok=True)
        return os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        msg = f"{part} cannot be written: {error.strerror}."
        raise click.ClickException(msg) from error


def _write(workspace: WorkspaceRow, archive: Archive, found: Found, file: IO[bytes]) -> None:
    header = exporting.new_header(workspace, has_money=True)
    exporter = Exporter(workspace, archive, found, has_money=True)
    with (
        ThreadPoolExecutor(READERS) as pool,
        click.progressbar(
            length=exporting.count_records(workspace.id),
            label=f"exporting {workspace.slug}",
            file=sys.stderr,
        ) as bar,
    ):
        shown = 0
        for _ in exporter.write(Cursor(), pool):
            bar.update(found.records - shown)
            shown = found.records
            if archive.pending >= PIECE_BYTES:
                file.write(archive.take())
    archive.complete(header)
    file.write(archive.take())
