"""Read the public booking page of a workspace, as visitors see it.

A page that is off, an unknown page and a service that is not offered give the same error. Public
reading also admits a workspace whose page is off, if one of its sites is on.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import StringConstraints

from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.booking_page.store.page_settings import AssistantsRow, BookingPageRow
from chalicelib.domains.bookings.flows.advance import Advance, advance_of
from chalicelib.domains.bookings.flows.slot_search import ACTIVE
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import SLUG_CLAIM, WorkspaceRow
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.flows import active_offers, binding
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.offers import Offer, summary_of
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.sites.store.sites import MAX_FOUND, SITES, SUSPENDED, SiteRow
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.events import subscriptions
from chalicelib.engine.reading import Key, Rows
from chalicelib.lib.spans import Span

PATH = "/book"
MAX_OF_SITE = 200  # Services of a site whose staff has the hours, as on the site's pages.

Slug = Annotated[str, StringConstraints(max_length=100)]


class OpenPage(NamedTuple):
    """A booking page that is on, or what a workspace with a site shows of itself."""

    workspace: WorkspaceRow
    settings: BookingPageRow
    assistants: AssistantsRow
    services: list[ServiceRow]  # the offered ones, or a part of them, in their order
    total: int  # the number of all offered ones
    # The weekly hours in which any of the staff works, as minutes of the day, with the first and
    # last weekday that have them. They are read for a page with all services.
    hours: list[tuple[int, int, tuple[Span, ...]]]
    # The workspace has an account at a payment provider. It is read if a service is paid in
    # advance.
    takes_payments: bool
    offers: dict[str, list[Offer]]  # by the ids of the services

    @property
    def url(self) -> str | None:
        """The URL of the booking page, or None if it is off."""
        return (
            f"{settings().public_url}{PATH}/{self.workspace.slug}" if self.settings.is_on else None
        )

    def advance_of(self, service: ServiceRow, offer: Offer | None = None) -> Advance:
        """Return what a visitor pays in advance for an offer, by default the cheapest."""
        return advance_of(
            service,
            offer or min(self.offers[service.id]),
            self.workspace.currency,
            takes_payments=self.takes_payments,
        )

    def offers_with(self, services: Sequence[ServiceRow], resource_id: str | None) -> list[Offer]:
        """Return the offers of services with a resource, and the cheapest of what others do."""
        return [
            service.offer(resource_id)
            if resource_id is not None
            and (len(services) == 1 or resource_id in service.resource_ids)
            else min(self.offers[service.id])
            for service in services
        ]

    def advances_of(self, services: Sequence[ServiceRow], resource_id: str | None) -> list[Advance]:
        """Return what a visitor pays in advance for each of these offers."""
        offers = self.offers_with(services, resource_id)
        return [
            self.advance_of(service, offer) for service, offer in zip(services, offers, strict=True)
        ]

    def terms_of(self, service: ServiceRow) -> dict[str, Any]:
        """Return the fields of ``OfferOut``."""
        summary = summary_of(self.offers[service.id])
        return {**summary._asdict(), **self.advance_of(service)._asdict()}

    def require_service(self, service_id: str) -> ServiceRow:
        """Return a service that the page offers, or raise NotFoundError."""
        for service in self.services:
            if service.id == service_id:
                return service
        raise not_found()

    def require_services(self, service_id: str, and_then: Iterable[str]) -> list[ServiceRow]:
        """Return the services of a visit in order, or raise NotFoundError."""
        return [self.require_service(each) for each in (service_id, *and_then)]


def not_found() -> NotFoundError:
    """Return the error for a page that is off, or that does not exist."""
    return NotFoundError("This booking page does not exist. Check the link.", key="booking_page")


def phone_of(workspace: WorkspaceRow, rows: Rows | None = None) -> str | None:
    """Return the phone that visitors are asked to call, or None."""
    return BookingPageRow.read(workspace.id, rows).phone or workspace.phone


def workspace_of(slug: str) -> str:
    """Return the id of the workspace with a slug, its page on or off, or raise NotFoundError."""
    workspace_id = ClaimRow.workspace_of(SLUG_CLAIM, name=slug)
    if workspace_id is None:
        raise not_found()
    return workspace_id


def open_page(
    workspace_id: str,
    service_id: str | None = None,
    rows: Rows | None = None,
    *,
    and_then: Collection[str] = (),
    with_hours: bool = True,
) -> OpenPage:
    """Return the booking page of a workspace with all offered services, or with only one service.

    ``and_then`` has further services of a visit.
    ``rows`` has the row of the page, if the caller has read it. The hours are empty for a service,
    and if they are not wanted (``with_hours``). Raises NotFoundError if the page is off, or does
    not offer the service.
    """
    if rows is None:
        rows = Rows()
        rows.read([page_settings.key(workspace_id), *_own_keys(workspace_id)])
    own_settings = BookingPageRow.read(workspace_id, rows)
    if not own_settings.is_on:
        raise not_found()
    ids = [
        offered
        for offered in own_settings.service_ids
        if service_id is None or offered in {service_id, *and_then}
    ]
    with_hours = with_hours and service_id is None
    page = _read(workspace_id, own_settings, ids, rows, with_hours=with_hours)
    if service_id is not None:
        page.require_services(service_id, and_then)
    return page


def open_page_or_site(
    workspace_id: str, *, with_hours: bool = True, span: slice = slice(MAX_OF_SITE)
) -> OpenPage:
    """Return what visitors see of a workspace, with a ``span`` of its services.

    If the booking page is off, but a site is on, the services are the active ones, as in the
    sections of a site. Raises NotFoundError if neither is on.
    """
    rows = Rows()
    rows.read([page_settings.key(workspace_id), *_own_keys(workspace_id)])
    own_settings = BookingPageRow.read(workspace_id, rows)
    if own_settings.is_on:
        ids = own_settings.service_ids
        page = _read(workspace_id, own_settings, ids, rows, with_hours=with_hours)
        return page._replace(services=page.services[span])
    ids = _of_sites(workspace_id)
    page = _read(workspace_id, own_settings, ids[span], rows, with_hours=with_hours)
    return page._replace(total=len(ids))


def require_page_or_site(workspace_id: str) -> None:
    """Raise NotFoundError if neither the booking page of a workspace nor a site of it is on."""
    if subscriptions.halt_of(workspace_id) is not None or not (
        BookingPageRow.read(workspace_id).is_on or _find_sites(workspace_id)
    ):
        raise not_found()


def _of_sites(workspace_id: str) -> list[str]:
    # The ids of the active services, without those of suspended sites.
    if not (found := _find_sites(workspace_id)):
        raise not_found()
    hidden = {
        entry.id
        for site in found
        if site.status == SUSPENDED
        for entry in SERVICES.entries(workspace_id, site_id=site.id)
    }
    ids = SERVICES.ordered_ids(workspace_id, status=ACTIVE)
    return [active_id for active_id in ids if active_id not in hidden]


def _find_sites(workspace_id: str) -> list[SiteRow]:
    # The sites of the workspace, or none if visitors see none of them.
    found = SITES.latest(workspace_id, MAX_FOUND)
    return found if any(site.status == ACTIVE and site.home_page_id for site in found) else []


def _own_keys(workspace_id: str) -> list[Key]:
    return [workspaces.key(workspace_id), page_settings.assistants_key(workspace_id)]


def _read(
    workspace_id: str,
    own_settings: BookingPageRow,
    ids: list[str],
    rows: Rows,
    *,
    with_hours: bool,
) -> OpenPage:
    keys = [SERVICES.key(workspace_id, record_id=service_id) for service_id in ids]
    rows.read([*_own_keys(workspace_id), *keys])
    if workspaces.get(workspace_id, rows).halt is not None:
        raise not_found()
    services = _bookable(workspace_id, ids, rows, with_hours=with_hours)
    hours = _weekly_hours(workspace_id, services, rows) if with_hours else []
    takes_payments = any(service.is_prepaid for service in services) and (
        merchants.find_current(workspace_id, rows) is not None
    )
    return OpenPage(
        workspaces.get(workspace_id, rows),
        own_settings,
        AssistantsRow.read(workspace_id, rows),
        services,
        len(services),
        hours,
        takes_payments,
        active_offers.find(workspace_id, services, rows),
    )


def _bookable(
    workspace_id: str, ids: list[str], rows: Rows, *, with_hours: bool
) -> list[ServiceRow]:
    read = rows.fetch(SERVICES.key(workspace_id, record_id=service_id) for service_id in ids)
    # The settings may still have the ids of deleted services.
    active_services = [row for row in read if isinstance(row, ServiceRow) and row.status == ACTIVE]
    site_ids = {row.site_id for row in active_services if row.site_id}
    keys = [key for site_id in site_ids for key in binding.site_keys(workspace_id, site_id)]
    # Opening hours are read in the request that reads the sites.
    ids = _staff_ids(active_services) if with_hours else []
    paid_services = [row for row in active_services if row.is_prepaid]
    merchant_keys = [merchants.key(workspace_id)] if paid_services else []
    rows.read(
        [
            *keys,
            *merchant_keys,
            *opening_hours.keys_with_schedules(workspace_id, ids),
            *active_offers.keys(workspace_id, active_services),
        ]
    )
    sites = rows.fetch(keys)
    suspended = {row.id for row in sites if isinstance(row, SiteRow) and row.status == SUSPENDED}
    listed_services = [row for row in active_services if row.site_id not in suspended]
    return sorted(listed_services, key=lambda row: (row.sort_order, row.id))


def _staff_ids(services: Iterable[ServiceRow]) -> list[str]:
    return list(dict.fromkeys(staff_id for row in services for staff_id in row.resource_ids))


def _weekly_hours(
    workspace_id: str, services: Iterable[ServiceRow], rows: Rows
) -> list[tuple[int, int, tuple[Span, ...]]]:
    schedules = [
        opening_hours.schedule_of(hours)
        for staff, hours in opening_hours.find_with_schedules(
            workspace_id, _staff_ids(services), rows
        )
        if staff.status == ACTIVE
    ]
    groups: list[tuple[int, int, tuple[Span, ...]]] = []
    for weekday, hours in enumerate(open_windows.merge_weeks(schedules)):
        if groups and groups[-1][2] == hours:
            groups[-1] = (groups[-1][0], weekday, hours)
        else:
            groups.append((weekday, weekday, hours))
    return [group for group in groups if group[2]]
