"""The demo bakery's products, leads and page contents, from ``bakery.toml``."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from infra.local.demo.texts import Language, read_toml


@dataclass(frozen=True, slots=True)
class Product:
    """A product with a file in ``images``.

    A product without ``stock`` is not counted.
    """

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
    """A form submission.

    ``items`` are quantities by SKU, ``source`` is the campaign's source.
    """

    name: str
    phone: str
    message: str
    email: str | None = None
    items: dict[str, int] = field(default_factory=dict)
    source: str | None = None
    referrer: str | None = None
    status: str = "new"


@dataclass(frozen=True, slots=True)
class Bakery:
    """The bakery in one language, with prices in kopecks."""

    language: Language
    name: str
    site: str
    about: str
    hours: str
    address: str
    phone: str
    columns: str
    """Header of the price list."""
    referrers: list[str]
    categories: dict[str, list[str]]
    """The categories of products, and the subcategories of each."""
    files: dict[str, str]
    """Names of folders and files."""
    form: dict[str, Any]
    order_form: dict[str, Any]
    """The form that takes orders of the bot. It is on no page, so it belongs to no site."""
    agent: dict[str, str]
    """The demo's bot."""
    delivery: dict[str, str]
    """The bot's knowledge beyond the catalogue."""
    dialogs: list[list[str]]
    """Messages of visitors to the bot, by dialog."""
    products: list[Product]
    leads: list[Lead]

    @property
    def price_list(self) -> str:
        """The price list as CSV for spreadsheets."""
        rows = [
            f"{product.sku};{product.name};{rubles(product.price, self.language)}"
            for product in self.products
        ]
        return "\r\n".join([self.columns, *rows, ""])


@cache
def load(language: Language) -> Bakery:
    """Return the bakery in a language."""
    data = read_toml("bakery.toml", language)
    products = [Product(**product) for product in data.pop("products")]
    leads = [Lead(**lead) for lead in data.pop("leads")]
    return Bakery(language, **data, products=products, leads=leads)


def rubles(kopecks: int, language: Language) -> str:
    """Return a price in rubles for readers, such as ``1,890 ₽``."""
    amount = f"{kopecks / 100:,.2f}".removesuffix(".00")
    if language == "ru":
        amount = amount.replace(",", " ").replace(".", ",")
    return f"{amount} ₽"
