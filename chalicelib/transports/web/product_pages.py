"""Pages of the products of a site, which shows them if its owner has chosen so (ADR 145)."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic_core import to_json

from chalicelib.core import deadline
from chalicelib.core.text import one_line
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.catalog.store import categories, products
from chalicelib.domains.catalog.store.products import MAX_SHOWN, PRODUCTS, ProductRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.sites.flows import site_pages
from chalicelib.domains.sites.flows.site_pages import RenderedPage
from chalicelib.domains.sites.store.sites import FoundSite, SiteRow
from chalicelib.engine.reading import Key, Rows
from chalicelib.lib import barcodes, currencies, extracts
from chalicelib.lib.barcodes import BarcodeError
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.lazy import Lazy
from chalicelib.transports.web import composed_pages, page_sections, render, texts
from chalicelib.transports.web.texts import Language

FEED = "feed.xml"
PAGE_SIZE = 48
MAX_SUMMARY = 300  # characters of a description where only its beginning is shown
_PAGE = re.compile("[1-9][0-9]{0,4}", re.ASCII)
_FEED: Lazy[[FoundSite, int], HttpResponse | None] = Lazy(
    "chalicelib.transports.web.product_feed:feed"
)


def find(
    found: FoundSite, place: str, query: Mapping[str, Sequence[str]]
) -> RenderedPage | HttpResponse | None:
    """Return the list of products, the page of one or their feed, or None if there is none.

    ``place`` is the path below the path of the list. Lists and feeds have several pages.
    """
    number = page_number(query)
    match place:
        case "":
            return _list(found, number) if number else None
        case _ if place == FEED:
            return _FEED(found, number) if number else None
        case _:
            return _product(found, place)


def page_number(query: Mapping[str, Sequence[str]]) -> int | None:
    """Return the requested page of a list, or None if it is no number."""
    text = (query.get("page") or ["1"])[-1]
    return int(text) if _PAGE.fullmatch(text) else None


def sold_ids(workspace_id: str, number: int, *, size: int) -> tuple[list[str], bool]:
    """Return the ids of a page of the shown products, and whether there is a next page."""
    skipped = (number - 1) * size
    size = min(size, MAX_SHOWN - skipped)
    ids = products.active_ids(workspace_id, size + 1, skipped=skipped) if size > 0 else []
    return ids[:size], len(ids) > size and skipped + size < MAX_SHOWN


def read_sold(workspace_id: str, ids: Sequence[str]) -> list[ProductRow]:
    """Return those of the products that are active, in the order of their ids."""
    rows = PRODUCTS.fetch(workspace_id, ids, consistent=False)
    return [row for row in rows if row.status == "active"]


def find_gtin(product: ProductRow) -> str | None:
    """Return the number by which other shops know a product (GTIN), or None."""
    try:
        barcode = barcodes.parse(product.barcode or "")
    except BarcodeError:
        return None
    return None if barcode.in_store else barcode.digits


def describe(product: ProductRow) -> str:
    """Return a product's description as plain text."""
    return extracts.plain_text(product.description or "").strip()


def json_ld(
    product: ProductRow, workspace: WorkspaceRow, *, url: str, category: Sequence[str]
) -> str:
    """Return a product's data for search engines (schema.org), for a script element."""
    in_stock = product.available > 0
    data = {
        "@context": "https://schema.org",
        "@type": "Product",
        "@id": url,
        "name": product.name,
        "description": describe(product) or None,
        "image": [image.url for image in product.images],
        "sku": product.sku,
        "gtin": find_gtin(product),
        "category": " > ".join(category),
        "url": url,
        "offers": {
            "@type": "Offer",
            "price": currencies.plain(int(product.price), workspace.currency),
            "priceCurrency": workspace.currency,
            "availability": f"https://schema.org/{'InStock' if in_stock else 'OutOfStock'}",
            "url": url,
            "seller": {"@type": "Organization", "name": workspace.name},
        },
    }
    text = to_json({name: part for name, part in data.items() if part}).decode()
    # The sign would let a text end the element.
    return text.replace("<", "\\u003c")


def _list(found: FoundSite, number: int) -> RenderedPage | None:
    workspace_id, rows = found.workspace_id, Rows()
    with deadline.side_by_side() as start:
        hours = start(partial(page_sections.weekly_hours, workspace_id))
        ids, has_next = sold_ids(workspace_id, number, size=PAGE_SIZE)
        shown = read_sold(workspace_id, ids)
        if number > 1 and not ids:
            return None
        _read(rows, workspace_id)
    language = texts.language_of(" ".join((found.row.title, *(row.name for row in shown))))
    base = found.row.products_url
    return _page(
        found,
        rows,
        language,
        "sites/products.html",
        hours=hours.result(),
        url=base if number == 1 else f"{base}?page={number}",
        on_products="page",
        products=shown,
        base=base,
        number=number,
        has_next=has_next,
    )


def _product(found: FoundSite, product_id: str) -> RenderedPage | None:
    workspace_id, rows = found.workspace_id, Rows()
    with deadline.side_by_side() as start:
        hours = start(partial(page_sections.weekly_hours, workspace_id))
        reading = start(partial(categories.read_by_id, workspace_id, kind="product"))
        key = PRODUCTS.key(workspace_id, record_id=product_id)
        _read(rows, workspace_id, key)
    product = rows.find(ProductRow, key)
    if product is None or product.status != "active":
        return None
    known = reading.result()
    category = known.get(product.category_id or "")
    names = categories.names_from_top(known, category) if category else []
    text = describe(product)
    url = f"{found.row.products_url}/{product.id}"
    workspace = workspaces.get(workspace_id, rows)
    return _page(
        found,
        rows,
        texts.language_of(f"{found.row.title} {product.name} {text}"),
        "sites/product.html",
        hours=hours.result(),
        url=url,
        on_products="true",
        product=product,
        category=names,
        text=text,
        summary=one_line(text, MAX_SUMMARY),
        plain_price=currencies.plain(int(product.price), workspace.currency),
        json_ld=json_ld(product, workspace, url=url, category=names),
    )


def _read(rows: Rows, workspace_id: str, *keys: Key) -> None:
    rows.read([workspaces.key(workspace_id), page_settings.key(workspace_id), *keys])


def _page(
    found: FoundSite,
    rows: Rows,
    language: Language,
    template: str,
    *,
    hours: page_sections.Hours,
    **values: Any,  # noqa: ANN401  of the template
) -> RenderedPage:
    site: SiteRow = found.row
    workspace = workspaces.get(found.workspace_id, rows)
    frame = composed_pages.frame_values(
        workspace,
        site,
        language,
        BookingPageRow.read(workspace.id, rows),
        hours=hours,
        sheet="shop",
    )
    html = render.document(
        language,
        template,
        site=site,
        money=partial(texts.money, language, currency=workspace.currency),
        **{**frame, **values},
    )
    return RenderedPage(
        "shown",
        site_pages.add_notes(html, workspace),
        site,
        workspace_id=workspace.id,
        is_listed=site_pages.is_listed(workspace),
    )
