"""Orders that an assistant has prepared, in the link to the form that places them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urlencode

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.domains.assistants.flows import visits
from chalicelib.domains.booking_page.rules import prepared_links
from chalicelib.domains.booking_page.rules.prepared_links import PARAMETER
from chalicelib.domains.booking_page.store.page_settings import AssistantsRow
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.leads.flows.cart import MAX_QUANTITY
from chalicelib.domains.leads.flows.form_html import OrderLine
from chalicelib.domains.leads.store.forms import FORMS

MAX_LINES = 20
SOURCE = "agent"  # Source of the order's lead, as the campaign of the link.


def read(workspace_id: str, quantities: Mapping[str, int]) -> list[OrderLine]:
    """Return the lines of an order with present names and prices.

    Raises:
        NotFoundError: a product is unknown or no longer sold.
        ConflictError: fewer pieces are in stock, or an order may not have as many.
    """
    rows = PRODUCTS.fetch(workspace_id, list(quantities))
    products = {row.id: row for row in rows if row.status == "active"}
    for product_id, quantity in quantities.items():
        if product_id not in products:
            msg = f"There is no product {product_id}. search_catalog returns ids."
            raise NotFoundError(msg, key="product")
        _require_orderable(products[product_id], quantity)
    return [
        OrderLine(product_id, products[product_id].name, quantity, int(products[product_id].price))
        for product_id, quantity in quantities.items()
    ]


def _require_orderable(product: ProductRow, quantity: int) -> None:
    if quantity > MAX_QUANTITY:
        msg = f"An order may have {MAX_QUANTITY} pieces of a product."
        raise ConflictError(msg, key="too_many_pieces", details={"maximum": MAX_QUANTITY})
    if product.stock is not None and product.stock < quantity:
        # The exact stock is not for visitors.
        fewer = "None" if product.stock <= 0 else f"Fewer than {quantity}"
        msg = f"{fewer} of {product.name} are in stock."
        raise ConflictError(msg, key="not_in_stock")


def link(row: AssistantsRow, form_id: str, lines: Sequence[OrderLine]) -> tuple[str, datetime]:
    """Return the URL of the form with an order filled in, and the moment at which it ends."""
    text = ",".join(f"{line.product_id}*{line.quantity}" for line in lines)
    token, ends_at = visits.sign(row, prepared_links.order(form_id, lines=text))
    query = {prepared_links.LINES: text, PARAMETER: token, "utm_source": SOURCE}
    return f"{settings().public_url}/form/{form_id}?{urlencode(query)}", ends_at


def opened(form_id: str, text: str, token: str) -> list[OrderLine]:
    """Return the order of a link. Raises as ``read``, and NotFoundError if the link has ended."""
    workspace_id = FORMS.found_for_visitor(FORMS.workspace_of(form_id))
    secret = AssistantsRow.read(workspace_id).link_secret
    if not prepared_links.is_valid(
        secret, prepared_links.order(form_id, lines=text), token, clock.now()
    ):
        raise NotFoundError("This link has ended. Ask the assistant for another one.", key="link")
    lines = (line.partition("*") for line in text.split(","))
    return read(workspace_id, {product_id: int(quantity) for product_id, _, quantity in lines})
