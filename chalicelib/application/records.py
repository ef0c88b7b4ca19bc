"""Read the records of events for their senders."""

from typing import Any
from uuid import uuid4

from chalicelib.application.context import Context
from chalicelib.core.errors import NotFoundError
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import OperatorPrincipal
from chalicelib.core.wire import parsing
from chalicelib.engine.unit import UnitOfWork


def read(workspace_id: str, *, event_type: str, record_id: str) -> dict[str, Any] | None:
    """Return an event's record as the API returns it now, or None if deleted, or raise AppError."""
    declared = EVENT_TYPES.get(event_type)
    if declared is None:
        return None
    operation = REGISTRY[declared.read_by]
    principal = OperatorPrincipal(workspace_id=workspace_id)
    ctx = Context(principal, UnitOfWork(workspace_id), str(uuid4()))
    try:
        result = operation.handler(ctx, parsing.parse(operation.input, {"id": record_id}))
    except NotFoundError:
        return None
    record: dict[str, Any] = result.model_dump(mode="json", by_alias=True)[declared.record]
    return record
