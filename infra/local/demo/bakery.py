"""The demo bakery's products, leads and texts, in Russian, from ``bakery.toml``."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
NAME: str = _DATA["name"]
SITE: str = _DATA["site"]
ABOUT: str = _DATA["about"]
HOURS: str = _DATA["hours"]
REFERRERS: list[str] = _DATA["referrers"]
CATEGORIES: dict[str, list[str]] = _DATA["categories"]
"""The categories of products, and the subcategories of each."""
FORM: dict[str, Any] = _DATA["form"]
AGENT: dict[str, str] = _DATA["agent"]
"""The demo's bot."""
ORDER_FORM: dict[str, Any] = _DATA["order_form"]
"""The form that takes orders of the bot. It is on no page, so it belongs to no site."""
DELIVERY: dict[str, str] = _DATA["delivery"]
"""What the bot knows beyond the catalogue."""
DIALOGS: list[list[str]] = _DATA["dialogs"]
"""Dialogs of visitors with the bot. One asks for a current price, the other becomes a lead."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product. ``image`` is a file in ``images``. ``stock`` is None if it is not counted."""

    sku: str
    name: str
    category: str
    price: int
    image: str
    description: str
    stock: int | None = None
    barcode: str | None = None
    status: str = "active"


@dataclass(frozen=True, slots=True)
class Lead:
    """A form submission. ``items`` are quantities by SKU, ``source`` is the campaign's source."""

    name: str
    phone: str
    message: str
    email: str | None = None
    items: dict[str, int] = field(default_factory=dict)
    source: str | None = None
    referrer: str | None = None
    status: str = "new"


PRODUCTS = [Product(**each) for each in _DATA["products"]]
LEADS = [Lead(**each) for each in _DATA["leads"]]


def rubles(kopecks: int) -> str:
    """Return a price in rubles for readers."""
    whole, rest = divmod(kopecks, 100)
    amount = f"{whole:,}".replace(",", " ")
    return f"{amount},{rest:02} ₽" if rest else f"{amount} ₽"


def price_list() -> str:
    """Return the price list as CSV for spreadsheets."""
    rows = [f"{p.sku};{p.name};{rubles(p.price)}" for p in PRODUCTS]
    return "\r\n".join(["Артикул;Название;Цена", *rows, ""])
