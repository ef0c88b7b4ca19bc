"""Render the subject, the plain-text part and the HTML part of an e-mail from templates."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chalicelib.core.text import CONTROL, collapse_spaces
from chalicelib.lib import accents
from chalicelib.lib.localized import Language
from chalicelib.lib.markup import templates

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
def render(folder: Path, kind: str, language: Language, /, **values: object) -> RenderedMail:
    """Render a kind of e-mail in a language.

    In the HTML part every value is escaped. In the plain-text part a value is one line. A template
    writes lists with a loop. The layout shows the image ``logo_url``, and buttons in the colours
    ``accent`` (``accents.colours``). Raises jinja2.TemplateNotFound for an unknown kind, and
    jinja2.UndefinedError for a missing value.
    """
    values = {"accent": accents.colours(None), "logo_url": None, **values}
    message = _texts(folder).get_template(f"{kind}/{language}.txt").render(values)
    subject, _, text = message.partition("\n")
    html = _pages(folder).get_template(f"{kind}/{language}.html")
    return RenderedMail(
        subject.strip(), f"{text.strip()}\n", html.render(values, lang=language, subject=subject)
    )


@cache
def _pages(folder: Path) -> "Environment":
    return templates.environment(folder, LAYOUT)


@cache
def _texts(folder: Path) -> "Environment":
    environment = templates.environment(folder, autoescape=False)
    # A line break in a value could otherwise begin a paragraph that looks like the service's own.
    environment.finalize = lambda value: collapse_spaces(CONTROL.sub(" ", str(value)))
    return environment
