"""The pages of the demo bakery's site, with the service's form, booking and chat widget.

The home page consists of sections, so the service gives it its look. ``site.html`` is the template
of the others, as an owner's designer may write them. ``site.toml`` has their strings. URLs of the
service are paths, so that the pages work on any port.
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
    form_id: str = ""
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


def home_sections(
    language: Language, photo_ids: Mapping[str, str], tools: Tools
) -> list[dict[str, Any]]:
    """Return the sections of the home page, with images by the names of their files."""
    site = read_toml("site.toml", language)
    values = {
        "hero": {"title": site["pages"][HOME]["heading"], "fileId": photo_ids["cover"]},
        "form": {"formId": tools.form_id},
        "map": {"text": bakery.load(language).address},
    }
    sections = []
    for section in site["sections"]:
        # A record may have been deleted since the demo was made, and its photo with it.
        photo_id = photo_ids.get(f"{section.pop('photo', '')}.jpg")
        photo = {"fileId": photo_id} if photo_id else {}
        sections.append({**values.get(section["type"], {}), **photo, **section})
    return [section for section in sections if tools.form_id or section["type"] != "form"]


def lacks_widget(html: str) -> bool:
    """Whether a page consists of sections, and its widget has not been added yet."""
    return "svc-sections" in html and "/widget.js" not in html


def with_widget(html: str, tools: Tools) -> str:
    """Return a page with the tag of the chat widget before the end of its body."""
    if not tools.agent_id:
        return html
    tag = f'<script src="/widget.js" data-agent="{tools.agent_id}" async></script>\n'
    before, end, after = html.rpartition("</body>")
    return f"{before}{tag}{end}{after}"


@cache
def load(language: Language) -> list[Page]:
    """Return the pages in a language, the home page first."""
    return [
        Page(slug, language, **{"description": bakery.load(language).about, **texts})
        for slug, texts in read_toml("site.toml", language)["pages"].items()
    ]
