"""The audit log.

Append-only by IAM policy, too; one record per committed change, kept 90 days (ADR 0017).
"""

from datetime import timedelta

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.unit import AuditEvent
from chalicelib.store.tables import AuditTableRow, JsonAttribute

KEPT = timedelta(days=90)
MAX_RESOURCES = 100


class AuditRow(AuditTableRow):
    """One change: who, with which key, from where, what, and the names of the changed fields.

    ``resources`` are what it touched, such as ``site:<id>``, at most a hundred.
    """

    at = UTCDateTimeAttribute()
    actor = UnicodeAttribute()
    key_id = UnicodeAttribute()
    client_ip = UnicodeAttribute()
    operation = UnicodeAttribute()
    resources: JsonAttribute = JsonAttribute()
    fields: JsonAttribute = JsonAttribute()
    request_id = UnicodeAttribute()


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#AUDIT"


def row(tenant: str, event: AuditEvent) -> AuditRow:
    """Return the row of a change, to be written in the change's own transaction."""
    now = clock.now()
    return AuditRow(
        _partition(event.workspace_id or tenant),
        new_id(),
        at=now,
        actor=event.actor,
        key_id=event.key_id,
        client_ip=event.client_ip,
        operation=event.operation,
        resources=list(event.resources[:MAX_RESOURCES]),
        fields=list(event.fields),
        request_id=event.request_id,
        expires=now + KEPT,
    )


def latest(workspace_id: str, limit: int = 100) -> list[AuditRow]:
    """Return a workspace's last changes, newest first."""
    return AuditRow.partition(_partition(workspace_id), limit=limit, scan_index_forward=False)
