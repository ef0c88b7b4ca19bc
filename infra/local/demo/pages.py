"""The pages of the demo bakery's site, with the service's form, booking and chat widget.

``site.html`` is their template, and ``site.toml`` has their strings. URLs of the service are paths,
so that the pages work on any port.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from infra.local.demo import bakery
from infra.local.demo.texts import Language, read_toml

HOME = "home"
_FOLDER = Path(__file__).parent
_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, keep_trailing_newline=True
)
_TEMPLATES.filters |= {"rubles": bakery.rubles, "path": lambda url: urlsplit(url).path}


@dataclass(frozen=True, slots=True)
class Tools:
    """Parts of pages that come from the service, such as the form's HTML."""

    agent_id: str = ""
    form_html: str = ""
    services: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site."""

    slug: str
    language: Language
    title: str
    heading: str
    description: str

    @property
    def link(self) -> str:
        """The page's URL, relative to the other pages of the site."""
        return "./" if self.slug == HOME else self.slug

    def html(self, images: Mapping[str, str], tools: Tools) -> str:
        """Return the whole document, with images by the names of their products."""
        site, shop = read_toml("site.toml", self.language), bakery.load(self.language)
        return _TEMPLATES.get_template("site.html").render(
            page=self,
            pages=load(self.language),
            language=self.language,
            texts=site["texts"],
            script_texts=site["script"],
            images=images,
            tools=tools,
            bakery=shop,
            products=shop.products,
            sold=[product for product in shop.products if product.status == "active"],
            css=Markup((_FOLDER / "site.css").read_text()),  # noqa: S704  our own  # nosec B704
            script=Markup((_FOLDER / "booking.js").read_text()),  # noqa: S704  our own  # nosec B704
        )


@cache
def load(language: Language) -> list[Page]:
    """Return the pages in a language, the home page first."""
    return [
        Page(slug, language, **{"description": bakery.load(language).about, **texts})
        for slug, texts in read_toml("site.toml", language)["pages"].items()
    ]
