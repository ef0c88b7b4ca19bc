"""Bind services to resources. The binding is stored only in ``service.resource_ids``.

A service lists the resources that it can be booked with; a booking takes one of them. A request for
a resource may list its services. These services are then written in the same transaction.
"""

from collections.abc import Iterable, Sequence

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError, call
from chalicelib.domains.bookings.store import resources
from chalicelib.domains.bookings.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine.reading import Key, Rows

MAX_RESOURCES = 50
"""Maximum number of resources per service.

DynamoDB reads this many resources with their opening hours in one request.
"""
MAX_SERVICES = 50
"""Maximum number of services that a request for a resource may list."""
MAX_CHANGED = 80
"""Maximum number of services that one change of a resource binds and unbinds.

A DynamoDB transaction takes 100 items.
"""


def site_keys(workspace_id: str, site_id: str | None) -> list[Key]:
    """Return the keys of a service's site: live and deleted."""
    if site_id is None:
        return []
    return [
        SITES.key(workspace_id, site_id),
        Key(SiteRow, SITES.trash(workspace_id), site_id),
    ]


def site_of_service(
    workspace_id: str, site_id: str | None, rows: Rows | None = None
) -> SiteRow | None:
    """Return the site of a service.

    A deleted site is returned until it is purged, because a site's suspension stays in force after
    its deletion.
    """
    found = (rows or Rows()).fetch(site_keys(workspace_id, site_id))
    return next((row for row in found if isinstance(row, SiteRow)), None)


def require_resources(ctx: Context, ids: Sequence[str], rows: Rows) -> None:
    """Require that all resources of a service exist when the unit commits.

    Resources of several types cause a warning: they are alternatives, not parts of one booking.

    Raises:
        NotFoundError: one of them does not exist now.
    """
    read = rows.fetch(RESOURCES.key(ctx.workspace_id, each) for each in ids)
    found = [row for row in read if isinstance(row, ResourceRow)]
    if len(found) < len(ids):
        raise RESOURCES.not_found()
    for resource in found:
        resources.require(ctx.unit, resource.id, on_conflict=RESOURCES.not_found())
    _warn_of_mixed_types(ctx, found)


def bind(
    ctx: Context,
    resource: ResourceRow,
    service_ids: Sequence[str],
    *,
    before: Sequence[str],
    rows: Rows | None = None,
) -> list[str]:
    """Stage binding a resource to exactly these services, and return their sorted ids.

    ``before`` has the ids of the services to which it is bound now.

    Raises:
        NotFoundError: one of the services does not exist.
        ConflictError: a service has too many resources, or too many services would change.
    """
    after = list(dict.fromkeys(service_ids))
    changed = [*(each for each in after if each not in before), *set(before).difference(after)]
    if len(changed) > MAX_CHANGED:
        msg = (
            f"This would bind and unbind {len(changed)} services; expected at most {MAX_CHANGED} "
            f"at once. Change resourceIds of the services instead ({call('svc_update_service')})."
        )
        raise ConflictError(msg)
    keys = [SERVICES.key(ctx.workspace_id, each) for each in {*changed, *after}]
    read = (rows or Rows()).fetch(keys)
    found = {row.id: row for row in read if isinstance(row, ServiceRow)}
    if not found.keys() >= set(after):
        raise SERVICES.not_found()
    for service_id in changed:
        if service_id in found:
            _stage(ctx, found[service_id], resource.id, bound=service_id in after)
    _check_types(ctx, resource, [found[each] for each in after])
    return sorted(after)


def _stage(ctx: Context, service: ServiceRow, resource_id: str, *, bound: bool) -> None:
    ids = [each for each in service.resource_ids if each != resource_id]
    if bound and len(ids) >= MAX_RESOURCES:
        msg = (
            f'The service "{service.name}" ({service.id}) has {MAX_RESOURCES} resources already. '
            f"Unbind one of them first ({call('svc_update_service')})."
        )
        raise ConflictError(msg)
    service.resource_ids = [*ids, resource_id] if bound else ids
    ctx.unit.save(service)


def _check_types(ctx: Context, resource: ResourceRow, bound: Iterable[ServiceRow]) -> None:
    others = {each for service in bound for each in service.resource_ids} - {resource.id}
    _warn_of_mixed_types(ctx, [resource, *RESOURCES.fetch(ctx.workspace_id, others)])


def _warn_of_mixed_types(ctx: Context, found: Iterable[ResourceRow]) -> None:
    types = sorted({resource.type for resource in found})
    if len(types) > 1:
        ctx.warn(
            f"The resources of a service are alternatives, and these are of several types "
            f"({', '.join(types)}): a booking takes one of them, not one of each."
        )
