"""Check which accounts may hold API keys and connections of a workspace, and end connections."""

from collections.abc import Iterable

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ForbiddenError
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.identity.store import connections, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.connections import ConnectionRow
from chalicelib.engine import locks
from chalicelib.engine.unit import UnitOfWork, run_unit


def check_holder(account: AccountRow, workspace_id: str, *, what: str) -> None:
    """Check that an account may manage a workspace.

    Raises ForbiddenError, or ConflictError if the account is disabled. ``what`` names what it
    wants, such as "keys". The commit must also require that the account is not disabled, because
    disabling does not save the lock row.
    """
    # The call was authorized earlier, so the membership is read again here, after the lock row was
    # read. Removing a member saves the lock row. A removal after this read therefore conflicts with
    # the commit.
    membership = workspaces.membership(account.id, workspace_id=workspace_id)
    if membership is None or not Role(membership.role).includes(Role.MANAGER):
        holders = "the owner and the managers of a workspace"
        msg = f"Only {holders} can have {what}. Ask one of them."
        raise ForbiddenError(msg, key="role_required", details={"role": Role.MANAGER})
    if account.disabled_at is not None:
        msg = f"The account {account.email} is disabled, so it cannot have {what}."
        raise ConflictError(msg, key="account_disabled")


# Live keys and connections of a workspace: one transaction, of at most 100 items, changes all.
MAX_LIVE_TOGETHER = 90


def check_room(keys: int, *, connected: int) -> None:
    """Raise ConflictError if a workspace has ``MAX_LIVE_TOGETHER`` live keys and connections."""
    if keys + connected >= MAX_LIVE_TOGETHER:
        msg = (
            f"The workspace has {keys} live keys and {connected} connected apps, which together "
            "is the maximum. Revoke a key or disconnect an app first."
        )
        raise ConflictError(msg, key="too_many_connections", details={"maximum": MAX_LIVE_TOGETHER})


def stage_endings(
    unit: UnitOfWork, rows: Iterable[ConnectionRow], *, are_named: bool = True
) -> None:
    """Stage the end of live connections. One that ends at the same time keeps its own time."""
    now = clock.now()
    # A second end must not move the time of the first one.
    for row in rows:
        is_live = ConnectionRow.pk.exists() & ConnectionRow.ended_at.does_not_exist()
        unit.update(row, connections.end_actions(now), is_live)
        # The audit event names them, unless they may belong to other workspaces than its log.
        if are_named:
            unit.mention(f"connection:{row.id}")


def stage_endings_of_account(unit: UnitOfWork, account_id: str) -> int:
    """Stage the end of an account's connections in all workspaces; return how many it has."""
    # The creation of a connection saves this lock row, too. So a connection that is created at the
    # same time is either ended here, or its creation starts again.
    lock = locks.lock_row(PLATFORM, what=connections.lock_name(account_id))
    rows = connections.live_of_account(account_id)
    unit.save(lock)
    stage_endings(unit, rows, are_named=False)
    return len(rows)


def end_at_once(ctx: Context, connection: ConnectionRow) -> None:
    """End a connection in a transaction of its own, because the call that ends it then fails."""
    event = AuditEvent(
        operation="end_connection",
        actor=ctx.principal.audit_actor,
        client_ip=ctx.principal.client_ip,
        request_id=ctx.request_id,
    )

    def stage(unit: UnitOfWork) -> None:
        row = connections.find(connection.id)
        if row is not None and row.ended_at is None:
            stage_endings(unit, [row])

    run_unit(connection.workspace_id, event, stage, request_id=ctx.request_id)
