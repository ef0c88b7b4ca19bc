"""The look of a business on every page that its clients meet: one header and one set of colours.

The header, its rules and the design tokens are in ``brand_layout``.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from chalicelib.lib import maps
from chalicelib.lib.accents import colours

FOLDER = Path(__file__).parent / "brand_layout"
_TOKEN = re.compile(r"(?m)^ {2,4}--([a-z][a-z0-9-]*): ([^;\n]+);$")
_ON_LIGHT_ACCENT = "#17161a"

Tokens = dict[str, str]
"""Values of design tokens by their names, in which an underscore stands for a hyphen."""


class Brand(NamedTuple):
    """The look and the contacts of a business."""

    name: str
    phone: str | None
    logo_url: str | None
    accent: str | None  # ``lib.accents``
    address: str | None
    country: str  # ISO 3166-1 alpha-2
    home: str | None = None  # path of the booking page, or None if it is off
    privacy_url: str | None = None  # privacy policy, to which forms lead

    @property
    def map_url(self) -> str:
        return maps.search_url(self.address or "", self.country)

    @property
    def phone_url(self) -> str:
        return f"tel:{(self.phone or '').replace(' ', '')}"


def style(name: str) -> str:
    """Return a style sheet of the folder, such as ``tokens``."""
    return (FOLDER / f"{name}.css").read_text()


def accent_style(accent: str) -> str:
    """Return the rules that follow the tokens on the pages of a business with an accent."""
    light, dark = colours(accent)
    return f"""\
:root {{ --accent: {light}; --accent-strong: color-mix(in srgb, {light} 85%, #000);
  --accent-soft: color-mix(in srgb, {light} 12%, #fff); }}
@media (prefers-color-scheme: dark) {{ :root {{ --accent: {dark}; --on-accent: {_ON_LIGHT_ACCENT};
  --accent-strong: color-mix(in srgb, {dark} 85%, #fff);
  --accent-soft: color-mix(in srgb, {dark} 22%, #000); }} }}
"""


def palette(accent: str | None) -> tuple[Tokens, Tokens]:
    """Return the tokens on light and on dark pages, for what cannot use variables of a style sheet.

    Many mail programs cannot.
    """
    light, dark = _tokens()
    if accent is None:
        return light, dark
    own_light, own_dark = colours(accent)
    return {**light, "accent": own_light}, {
        **dark,
        "accent": own_dark,
        "on_accent": _ON_LIGHT_ACCENT,
    }


@cache
def _tokens() -> tuple[Tokens, Tokens]:
    parts = style("tokens").split("@media", 1)
    light, own_dark = (
        {name.replace("-", "_"): value for name, value in _TOKEN.findall(part)} for part in parts
    )
    return light, {**light, **own_dark}
