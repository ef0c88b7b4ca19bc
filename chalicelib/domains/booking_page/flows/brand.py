"""What the pages for a client's booking show of the business."""

from urllib.parse import quote

from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.identity.flows import brands
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.reading import Rows
from chalicelib.lib.markup.brands import Brand


def brand_of(workspace_id: str, rows: Rows | None = None) -> Brand:
    """Return the brand of a workspace. It costs one request to the database.

    Callers find the workspace in ``rows`` then.
    """
    rows = Rows() if rows is None else rows
    rows.read([workspaces.key(workspace_id), page_settings.key(workspace_id)])
    workspace = workspaces.get(workspace_id, rows)
    is_on = BookingPageRow.read(workspace_id, rows).is_on
    return brands.brand_of(workspace)._replace(
        phone=open_page.phone_of(workspace, rows), home=home(workspace.slug) if is_on else None
    )


def home(slug: str) -> str:
    """Return the path of a workspace's booking page."""
    return f"{open_page.PATH}/{quote(slug, safe='')}"
