"""Export the workspace to a file, and read how far its exports are."""

from datetime import timedelta
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import operation
from chalicelib.core.principals import ApiKeyPrincipal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, NoInput, Timestamp, Wire
from chalicelib.domains.exports.flows.exporting import new_header, not_included
from chalicelib.domains.exports.rules import read_scopes
from chalicelib.domains.exports.rules.job_kinds import EXPORT, EXPORT_EXPIRED
from chalicelib.domains.exports.store import exports
from chalicelib.domains.exports.store.exports import (
    EXPORTS,
    KEPT_FOR,
    READY,
    RUNNING,
    ExportRow,
    ExportState,
)
from chalicelib.domains.identity.flows.confirmation import confirmed
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import jobs, locks
from chalicelib.engine.events.outbox import Event
from chalicelib.gateways.object_store import object_store

LOCK = "exports"  # the lock row (``engine.locks``) for the exports of a workspace
URL_SECONDS = 900
DAY = timedelta(days=1)
MAX_A_DAY = 3
"""Exports a day of the workspace's keys, and as many of the console."""


class ExportRef(Wire):
    """Id of an export."""

    id: Id = Field(description="Id of the export.")


class ExportStarted(Wire):
    """An export that is running."""

    export_id: Id = Field(description="Id of the export.")
    state: ExportState = Field(description="running.")


class ExportOut(ExportRef):
    """An export of the workspace."""

    state: ExportState = Field(
        description="running, ready: the file can be downloaded, or failed: it was given up."
    )
    created_at: Timestamp = Field(description="When it was started.")
    expires_at: Timestamp = Field(description="When its file is deleted.")
    records: int = Field(description="Number of records written so far.")
    expected: int | None = Field(description="About how many records it will have, or null.")
    size: int | None = Field(description="Bytes of the file once it is ready, or null.")
    url: str | None = Field(
        description="URL of the file once it is ready, or null. It is valid for 15 minutes; each "
        "call returns a new one. Who has it needs no key."
    )
    has_payments: bool = Field(
        description="Whether the file has payments and refunds, as exports of the console have."
    )
    missing_objects: int = Field(
        description="Number of stored files that should exist but do not. 0 is normal."
    )
    not_included: dict[str, str] = Field(
        description="What the file does not contain, each with the reason."
    )

    @classmethod
    def from_record(cls, export: ExportRow) -> Self:
        is_ready = export.state == READY
        return cls.from_row(
            export.values,
            url=object_store().download_url(export.key, URL_SECONDS) if is_ready else None,
            has_payments=export.has_money,
            missing_objects=export.missing,
            not_included=dict(not_included(has_money=export.has_money)),
        )


class ExportList(Wire):
    """The exports of the workspace that are kept."""

    exports: list[ExportOut] = Field(description="Exports, newest first.")
    kept_days: int = Field(description="Days after which a file is deleted.")
    not_included: dict[str, str] = Field(
        description="What the file of a new export does not contain, each with the reason."
    )


@operation(
    title="Export the workspace",
    rest="POST /api/workspace/export",
    scope=Scope.SETTINGS_READ,
    role=Role.OWNER,
    confirm=confirmed(),
    example={},
    errors=(RateLimitedError,),
)
def export_workspace(ctx: Context, args: NoInput) -> ExportStarted:
    """Start writing the workspace to a zip file, which the platform's operator can import.

    A key needs settings:read and the read scope of every noun; its file has no members, payments,
    refunds, payment accounts, bot limits and spending. Read the export until its state is ready.
    While one is running, the call returns it. A workspace has 3 exports a day by keys. The owner of
    the workspace is told by mail.
    """
    read_scopes.check(ctx.principal)
    key_id = ctx.principal.key_id if isinstance(ctx.principal, ApiKeyPrincipal) else None
    has_money = key_id is None
    lock = locks.lock_row(ctx.workspace_id, what=LOCK)
    now, latest = clock.now(), exports.read_latest(ctx.workspace_id)
    same_kind = [export for export in latest if export.has_money is has_money]
    running = next((export for export in same_kind if export.state == RUNNING), None)
    if running is not None:
        return ExportStarted(export_id=running.id, state=RUNNING)
    today = [export for export in same_kind if export.created_at > now - DAY]
    if len(today) >= MAX_A_DAY:
        wait = int((today[MAX_A_DAY - 1].created_at + DAY - now).total_seconds()) + 1
        msg = (
            f"The workspace has made {len(today)} exports in 24 hours, which is the maximum. "
            "Download the latest one, or wait."
        )
        raise RateLimitedError(msg, key="exports", headers={"Retry-After": str(wait)})
    workspace = workspaces.get(ctx.workspace_id)
    export_id = ctx.unit.run_side_effect_once("export id", new_id)
    name = f"{workspace.slug}-{iso(now)[:10]}.zip"
    export = ExportRow(
        EXPORTS.partition(ctx.workspace_id),
        export_id,
        state=RUNNING,
        has_money=has_money,
        key_id=key_id,
        key=f"{ctx.workspace_id}/exports/{export_id}/{name}",
        header=new_header(workspace, has_money=has_money),
        expires_at=now + KEPT_FOR,
    )
    payload = {"exportId": export_id}
    ctx.unit.save(lock)
    ctx.unit.create(export)
    ctx.unit.create(jobs.row(EXPORT, ctx.workspace_id, payload, job_id=export_id))
    ctx.unit.create(
        jobs.row(EXPORT_EXPIRED, ctx.workspace_id, payload, now + KEPT_FOR, job_id=export_id)
    )
    if key_id is not None:  # Whoever starts one in the console confirms it, and has a mail of that.
        ctx.unit.outbox.emit(Event("export.started", export_id))
    return ExportStarted(export_id=export_id, state=RUNNING)


@operation(
    rest="GET /api/exports/{id}",
    scope=Scope.SETTINGS_READ,
    role=Role.OWNER,
    example={"id": "EXPORT_ID"},
)
def get_export(ctx: Context, args: ExportRef) -> ExportOut:
    """Get the state of an export, and the URL of its file once it is ready.

    A key needs the same scopes as for starting one, and does not find exports of the console.
    """
    read_scopes.check(ctx.principal)
    export = EXPORTS.require(ctx.workspace_id, record_id=args.id)
    if export.has_money and isinstance(ctx.principal, ApiKeyPrincipal):
        raise EXPORTS.not_found()
    return ExportOut.from_record(export)


@operation(role=Role.OWNER)
def list_exports(ctx: Context, args: NoInput) -> ExportList:
    """List the exports that are kept, newest first, with those of keys."""
    return ExportList(
        exports=list(map(ExportOut.from_record, exports.read_latest(ctx.workspace_id))),
        kept_days=KEPT_FOR.days,
        not_included=dict(not_included(has_money=True)),
    )
