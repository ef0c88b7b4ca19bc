"""Bind services to resources. The binding is stored only in ``service.resource_ids``.

A service lists the resources that it can be booked with; a booking takes one resource. A request
for a resource may list its services. These services are then written in the same transaction.
"""

from collections.abc import Iterable, Sequence

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConflictError, call
from chalicelib.domains.services.store import resources
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine.reading import Key, Rows

# Of a service. DynamoDB reads this many resources with their opening hours in one request.
MAX_RESOURCES = 50
MAX_SERVICES = 50  # in a request for a resource
# Services that one change of a resource binds and unbinds. A DynamoDB transaction takes 100 items.
MAX_CHANGED = 80


def site_keys(workspace_id: str, site_id: str | None) -> list[Key]:
    """Return the keys of a service's site, live and deleted."""
    if site_id is None:
        return []
    return [
        SITES.key(workspace_id, record_id=site_id),
        Key(SiteRow, SITES.trash(workspace_id), site_id),
    ]


def site_of_service(
    workspace_id: str, site_id: str | None, rows: Rows | None = None
) -> SiteRow | None:
    """Return the site of a service, also a deleted one until it is purged."""
    # A site's suspension remains in force after its deletion.
    rows_read = (rows or Rows()).fetch(site_keys(workspace_id, site_id))
    return next((row for row in rows_read if isinstance(row, SiteRow)), None)


def require_resources(ctx: Context, ids: Sequence[str]) -> None:
    """Require that a service's resources exist when the unit commits, or raise NotFoundError."""
    read = ctx.unit.rows.fetch(
        RESOURCES.key(ctx.workspace_id, record_id=resource_id) for resource_id in ids
    )
    resource_rows = [row for row in read if isinstance(row, ResourceRow)]
    if len(resource_rows) < len(ids):
        raise RESOURCES.not_found()
    for resource in resource_rows:
        resources.require(ctx.unit, resource.id, on_conflict=RESOURCES.not_found())
    # Resources of several types are alternatives, not parts of one booking.
    _warn_of_mixed_types(ctx, resource_rows)


def bind(
    ctx: Context,
    resource: ResourceRow,
    service_ids: Sequence[str],
    *,
    previous_ids: Sequence[str],
) -> list[str]:
    """Stage binding a resource to exactly these services, and return their sorted ids.

    ``previous_ids`` has the ids of the services to which it is bound now.

    Raises:
        NotFoundError: one of the services does not exist.
        ConflictError: a service has too many resources, or too many services would change.
    """
    new_ids = list(dict.fromkeys(service_ids))
    changed_ids = [
        *(service_id for service_id in new_ids if service_id not in previous_ids),
        *set(previous_ids).difference(new_ids),
    ]
    if len(changed_ids) > MAX_CHANGED:
        msg = (
            f"This call would bind or unbind {len(changed_ids)} services, but the maximum per "
            f"call is {MAX_CHANGED}. Change resourceIds of the services instead "
            f"({call('svc_update_service')})."
        )
        raise ConflictError(msg, key="too_many_changes", details={"maximum": MAX_CHANGED})
    keys = [
        SERVICES.key(ctx.workspace_id, record_id=service_id)
        for service_id in {*changed_ids, *new_ids}
    ]
    read = ctx.unit.rows.fetch(keys)
    services_by_id = {row.id: row for row in read if isinstance(row, ServiceRow)}
    if not services_by_id.keys() >= set(new_ids):
        raise SERVICES.not_found()
    for service_id in changed_ids:
        if service_id in services_by_id:
            _stage(ctx, services_by_id[service_id], resource.id, bound=service_id in new_ids)
    _check_types(ctx, resource, [services_by_id[service_id] for service_id in new_ids])
    return sorted(new_ids)


def _stage(ctx: Context, service: ServiceRow, resource_id: str, *, bound: bool) -> None:
    ids = [bound_id for bound_id in service.resource_ids if bound_id != resource_id]
    if bound and len(ids) >= MAX_RESOURCES:
        msg = (
            f'The service "{service.name}" ({service.id}) already has {MAX_RESOURCES} '
            f"resources, which is the maximum. Unbind one of them first "
            f"({call('svc_update_service')})."
        )
        raise ConflictError(
            msg, key="too_many_resources", details={"maximum": MAX_RESOURCES, "id": service.id}
        )
    service.bind([*ids, resource_id] if bound else ids)
    ctx.unit.save(service)


def _check_types(ctx: Context, resource: ResourceRow, bound: Iterable[ServiceRow]) -> None:
    others = {bound_id for service in bound for bound_id in service.resource_ids} - {resource.id}
    _warn_of_mixed_types(ctx, [resource, *RESOURCES.fetch(ctx.workspace_id, others)])


def _warn_of_mixed_types(ctx: Context, resource_rows: Iterable[ResourceRow]) -> None:
    types = sorted({resource.type for resource in resource_rows})
    if len(types) > 1:
        ctx.warn(
            f"The resources have several types ({', '.join(types)}). A booking takes only one "
            "resource of the service, not one of each type.",
            code=WarningCode.MIXED_RESOURCE_TYPES,
            types=types,
        )
