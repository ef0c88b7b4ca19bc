"""Rows of resources and services, stored without an operation."""

from typing import Any

from chalicelib.core.unit import AuditEvent
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.unit import run_unit

WORKSPACE = "w"
EVENT = AuditEvent.by_job("test")


def store_resource(name: str = "Anna", **attributes: Any) -> ResourceRow:
    values = {
        "type": "master",
        "timezone": "Europe/Moscow",
        "capacity": 1,
        "status": "active",
        "sort_order": 0,
    }
    row = RESOURCES.new(WORKSPACE, name=name, **values | attributes)
    run_unit(WORKSPACE, EVENT, lambda unit: unit.create(row))
    return row


def store_service(**attributes: Any) -> ServiceRow:
    values = {
        "duration_min": 60,
        "price": 0,
        "status": "active",
        "buffer_before_min": 0,
        "buffer_after_min": 5,
        "min_notice_min": 0,
        "horizon_days": 60,
        "require_payment": False,
        "sort_order": 0,
    }
    row = SERVICES.new(WORKSPACE, name="Haircut", **values | attributes)
    run_unit(WORKSPACE, EVENT, lambda unit: unit.create(row))
    return row
