"""The audit log.

Append-only, one record per committed change, kept 90 days (security.md, Audit).
"""

from datetime import timedelta

from pynamodb.attributes import JSONAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.unit import AuditEvent
from chalicelib.store.tables import ControlRow

KEPT = timedelta(days=90)


class AuditRow(ControlRow):
    """One change: who, with which key, from where, what, and the names of the changed fields."""

    at = UTCDateTimeAttribute()
    actor = UnicodeAttribute()
    key_id = UnicodeAttribute()
    client_ip = UnicodeAttribute()
    operation = UnicodeAttribute()
    resource = UnicodeAttribute()
    fields: JSONAttribute = JSONAttribute()
    request_id = UnicodeAttribute()


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#AUDIT"


def record(workspace_id: str, change: AuditEvent, resource: str) -> AuditRow:
    """Return the audit row of a change, to be written in the change's own transaction."""
    now = clock.now()
    return AuditRow(
        _partition(workspace_id),
        new_id(),
        at=now,
        actor=change.actor,
        key_id=change.key_id,
        client_ip=change.client_ip,
        operation=change.operation,
        resource=change.resource or resource,
        fields=list(change.fields),
        request_id=change.request_id,
        expires=now + KEPT,
    )


def latest(workspace_id: str, limit: int = 100) -> list[AuditRow]:
    """Return a workspace's last changes, newest first."""
    return AuditRow.partition(_partition(workspace_id), limit=limit, scan_index_forward=False)
