"""The pages of the demo bakery's site, with the service's form, booking and chat widget.

``site.html`` is their template. URLs of the service are paths, so that the pages work on any port.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from infra.local.demo import bakery

HOME = "home"
_FOLDER = Path(__file__).parent
_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, keep_trailing_newline=True
)
_TEMPLATES.filters |= {"rubles": bakery.rubles, "path": lambda url: urlsplit(url).path}


@dataclass(frozen=True, slots=True)
class Tools:
    """Parts of pages from the service: the widget's bot, the HTML of the form, and the services."""

    agent_id: str = ""
    form_html: str = ""
    services: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site."""

    slug: str
    title: str
    description: str

    @property
    def link(self) -> str:
        """The page's URL, relative to the other pages of the site."""
        return "./" if self.slug == HOME else self.slug

    def html(self, images: Mapping[str, str], tools: Tools) -> str:
        """Return the whole document. ``images`` maps products' names to URLs."""
        return _TEMPLATES.get_template("site.html").render(
            page=self,
            site=PAGES,
            images=images,
            tools=tools,
            bakery=bakery,
            products=bakery.PRODUCTS,
            sold=[product for product in bakery.PRODUCTS if product.status == "active"],
            css=Markup((_FOLDER / "site.css").read_text()),  # noqa: S704  our own
            script=Markup((_FOLDER / "booking.js").read_text()),  # noqa: S704  our own
        )


PAGES = [
    Page(HOME, "Главная", bakery.ABOUT),
    Page("menu", "Меню", "Что сегодня на прилавке и сколько стоит."),
    Page("cakes", "Торты на заказ", "Торты к празднику: закажите за сутки."),
    Page("classes", "Мастер-классы", "Мастер-классы и консультации: выберите время и запишитесь."),
    Page("contacts", "Контакты", "Адрес, телефон и часы работы пекарни."),
]
"""The pages, the home page first."""
