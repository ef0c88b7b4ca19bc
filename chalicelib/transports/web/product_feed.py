"""The feed of a site's products for advertising systems and directories.

It is RSS 2.0 with the attributes of Google's product data specification
(support.google.com/merchants/answer/7052112), which Yandex Direct and VK Ads read, too.
"""

from collections.abc import Sequence
from functools import partial
from html import escape

from chalicelib.core import deadline
from chalicelib.core.text import one_line
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.products import ProductRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.sites.store.sites import FoundSite
from chalicelib.lib import currencies, shortening
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import product_pages, render

PAGE_SIZE = 1_000
"""Products of a feed. Later ones are in its next pages."""
READ_SIZE = 100  # products that are in memory at a time
MAX_TITLE = 150
MAX_DESCRIPTION = 5_000
MAX_CATEGORY = 750
# Lambda returns at most 6 MB. A longer feed has the beginnings of the descriptions, and one image.
MAX_BYTES = 4_500_000
MAX_SHORT_DESCRIPTION = 400
MAX_SHORT_CATEGORY = 150
_NAMESPACES = 'xmlns:g="http://base.google.com/ns/1.0" xmlns:atom="http://www.w3.org/2005/Atom"'


def feed(found: FoundSite, number: int) -> HttpResponse | None:
    """Return a page of the feed, or None if there is no such page."""
    workspace_id = found.workspace_id
    with deadline.side_by_side() as start:
        reading = start(partial(categories.read_by_id, workspace_id, kind="product"))
        reading_workspace = start(partial(workspaces.get, workspace_id))
        ids, has_next = product_pages.sold_ids(workspace_id, number, size=PAGE_SIZE)
    if number > 1 and not ids:
        return None
    base, currency = str(found.row.products_url), reading_workspace.result().currency
    known = reading.result()
    items: list[str] = []
    short_items: list[str] = []
    for first in range(0, len(ids), READ_SIZE):
        for product in product_pages.read_sold(workspace_id, ids[first : first + READ_SIZE]):
            if product.price > 0:  # Google accepts no product without a price.
                category = known.get(product.category_id or "")
                names = categories.names_from_top(known, category) if category else []
                of_product = partial(item, product, names, currency, url=f"{base}/{product.id}")
                items.append(of_product())
                short_items.append(of_product(is_short=True))
    if sum(map(len, map(str.encode, items))) > MAX_BYTES:
        items = short_items
    link = f"{base}/{product_pages.FEED}"
    own = link if number == 1 else f"{link}?page={number}"
    channel = [
        _element("title", one_line(found.row.title, MAX_TITLE)),
        _element("link", base),
        _element("description", one_line(found.row.description or found.row.title, 1_000)),
        f'<atom:link rel="self" type="application/rss+xml" href="{escape(own)}"/>',
        f'<atom:link rel="next" href="{escape(link)}?page={number + 1}"/>' if has_next else "",
    ]
    text = "\n".join(
        (
            '<?xml version="1.0" encoding="utf-8"?>',
            f'<rss version="2.0" {_NAMESPACES}>\n<channel>',
            *filter(None, channel),
            *items,
            "</channel>\n</rss>\n",
        )
    )
    return render.xml(text, kind="application/rss+xml", caching=render.CACHED_LONGER)


def item(
    product: ProductRow, category: Sequence[str], currency: str, *, url: str, is_short: bool = False
) -> str:
    """Return a product's element. ``category`` has the names from the top, if it has any."""
    title = one_line(product.name, MAX_TITLE)
    limit = MAX_SHORT_DESCRIPTION if is_short else MAX_DESCRIPTION
    description = shortening.truncate(product_pages.describe(product), limit) or title
    # A product has at most ten images, and the specification allows eleven.
    images = [image.url for image in (product.images[:1] if is_short else product.images)]
    gtin = product_pages.find_gtin(product)
    path = one_line(" > ".join(category), MAX_SHORT_CATEGORY if is_short else MAX_CATEGORY)
    parts: Sequence[tuple[str, str | None]] = (
        ("g:id", product.id),
        ("title", title),
        ("description", description),
        ("link", url),
        *(("g:image_link", image) for image in images[:1]),
        *(("g:additional_image_link", image) for image in images[1:]),
        ("g:availability", "in_stock" if product.available > 0 else "out_of_stock"),
        ("g:price", f"{currencies.plain(int(product.price), currency)} {currency}"),
        ("g:condition", "new"),
        ("g:gtin", gtin),
        ("g:identifier_exists", None if gtin else "no"),
        ("g:product_type", path),
    )
    elements = (_element(name, text) for name, text in parts if text)
    return "<item>\n" + "\n".join(elements) + "\n</item>"


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(text, quote=False)}</{name}>"
