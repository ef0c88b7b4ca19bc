"""Find the prices and lengths at which services can be booked with their active resources."""

from collections.abc import Iterable, Sequence

from chalicelib.domains.services.rules.offers import Offer
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine.reading import Key, Rows

_ACTIVE = "active"


def keys(workspace_id: str, services: Iterable[ServiceRow]) -> list[Key]:
    """Return the keys of the resources on which the price or the length of services depends."""
    ids = {staff_id for row in services if row.overrides for staff_id in row.resource_ids}
    return [RESOURCES.key(workspace_id, record_id=staff_id) for staff_id in sorted(ids)]


def find(
    workspace_id: str, services: Sequence[ServiceRow], rows: Rows | None = None
) -> dict[str, list[Offer]]:
    """Return the offers of each service by its id, at least its own.

    Resources are read only if a price or a length depends on them. A member of the staff who is
    away for months must not make the price that visitors read.
    """
    resource_keys = keys(workspace_id, services)
    read = (rows or Rows()).fetch(resource_keys) if resource_keys else []
    active = {row.id for row in read if isinstance(row, ResourceRow) and row.status == _ACTIVE}
    return {
        service.id: service.offers([each for each in service.resource_ids if each in active])
        if service.overrides
        else [service.offer()]
        for service in services
    }
