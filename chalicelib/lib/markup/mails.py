"""Render the subject, the plain-text part and the HTML part of an e-mail from templates."""

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chalicelib.core.text import CONTROL, collapse_spaces
from chalicelib.lib import quotes
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import brands, templates
from chalicelib.lib.markup.brands import Brand

if TYPE_CHECKING:
    from jinja2 import Environment

LAYOUT = Path(__file__).with_name("mail_layout")


class RenderedMail(NamedTuple):
    subject: str
    text: str
    html: str


# A folder has two templates for each kind of e-mail and language. ``<kind>/<language>.txt`` begins
# with the subject line and an empty line; the plain-text part follows. ``<kind>/<language>.html``
# extends ``base.html``, the layout of every e-mail, and fills its block ``content``. ``parts.html``
# has a button and a table of facts.
def render(
    folder: Path, kind: str, language: Language, /, brand: Brand | None = None, **values: object
) -> RenderedMail:
    """Render a kind of e-mail in a language.

    In the HTML part every value is escaped. In the plain-text part a value is one line. A template
    writes lists with a loop. The layout has the header and the accent of a ``brand``, whose
    ``home`` is then a URL, or the look of the platform. ``quoted`` puts a value into quotation
    marks.

    Raises:
        jinja2.TemplateNotFound: the kind is unknown.
        jinja2.UndefinedError: a value is missing.
    """
    light, dark = brands.palette(brand.accent if brand else None)
    values = {"brand": brand, "quoted": partial(quotes.quoted, language=language), **values}
    message = _texts(folder).get_template(f"{kind}/{language}.txt").render(values)
    subject, _, text = message.partition("\n")
    html = _pages(folder).get_template(f"{kind}/{language}.html")
    values |= {"lang": language, "subject": subject, "light": light, "dark": dark}
    return RenderedMail(subject.strip(), f"{text.strip()}\n", html.render(values))


@cache
def _pages(folder: Path) -> "Environment":
    return templates.environment(folder, LAYOUT)


@cache
def _texts(folder: Path) -> "Environment":
    environment = templates.environment(folder, autoescape=False)
    # A line break in a value could otherwise begin a paragraph that looks like the service's own.
    environment.finalize = lambda value: collapse_spaces(CONTROL.sub(" ", str(value)))
    return environment
