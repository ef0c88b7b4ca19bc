"""The look of a business in its e-mails to clients."""

from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.flows.brand import brand_of
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.notifications.rules.messages import mailed_name
from chalicelib.engine.reading import Rows
from chalicelib.lib.markup.brands import Brand


def read(workspace_id: str, rows: Rows | None = None) -> tuple[WorkspaceRow, Brand]:
    """Return a workspace and its brand for e-mails, by one request to the database, or by ``rows``.

    No mail program makes a link of its names, and the booking page has its URL.
    """
    rows = Rows() if rows is None else rows
    brand = brand_of(workspace_id, rows)
    mailed_brand = brand._replace(
        name=mailed_name(brand.name),
        phone=brand.phone and mailed_name(brand.phone),
        address=brand.address and mailed_name(brand.address),
        home=brand.home and f"{settings().public_url}{brand.home}",
    )
    return workspaces.get(workspace_id, rows), mailed_brand
