"""Write the pages that AI clients show beside results of tools (``mcp_apps``).

A page is one document without any request of its own: the script with all views, the styles of our
pages, and the texts in both languages.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from pydantic_core import to_json

from chalicelib.lib import currencies
from chalicelib.lib.markup import brands
from chalicelib.lib.markup.css import minify_css
from chalicelib.transports.web import texts
from chalicelib.transports.web.languages import LANGUAGES, Language

_FOLDER = Path(__file__).with_name("static")
_UNREAD = re.compile(r"(?m)^[ ]*(?://[^\n]*)?\n|^[ ]+")


class Look(NamedTuple):
    """What the page shows of a workspace beside the results."""

    currency: str  # ISO 4217
    accent: str | None = None  # ``lib.accents``


# Texts of the pages, by their names in the script.
TEXTS = {
    "waiting": "app_waiting",
    "failed": "app_failed",
    "cancelled": "app_cancelled",
    "anyone": "app_anyone",
    "staff": "app_staff",
    "day": "app_day",
    "earlier": "app_earlier",
    "later": "app_later",
    "noTimes": "app_no_times",
    "nextFree": "app_next_free",
    "open": "app_open",
    "openOrder": "app_open_order",
    "nothingDone": "app_nothing_done",
    "minutes": "app_minutes",
    "left": "app_left",
    "free": "free",
    "inStock": "app_in_stock",
    "outOfStock": "app_out_of_stock",
    "products": "products",
    "noProducts": "app_no_products",
    "fewer": "app_fewer",
    "more": "app_more",
    "total": "app_total",
    "order": "app_order",
    "noBookings": "app_no_bookings",
    "shownOf": "app_shown_of",
    "noName": "no_name",
    "pending_payment": "booking_pending_payment",
    "confirmed": "booking_confirmed",
    "cancelled_booking": "booking_cancelled",
    "completed": "booking_completed",
    "no_show": "booking_no_show",
    "leads": "app_leads",
    "leadsByDay": "app_leads_by_day",
    "source": "app_source",
    "newClients": "app_new_clients",
    "bookings": "app_bookings",
    "revenue": "report_revenue",
    "visits": "report_visits",
    "load": "report_load",
    "service": "service",
    "byWeek": "report_by_week",
    "byService": "report_by_service",
    "byStaff": "report_by_staff",
    "asTable": "app_as_table",
    "member": "staff",
    "week": "report_date",
    "counting": "report_counting",
}


@lru_cache(maxsize=64)
def document(name: str, look: Look) -> str:
    """Return the HTML of a page."""
    config = {
        "app": name,
        "currency": look.currency,
        "digits": currencies.DIGITS[look.currency],
        "texts": {language: _texts(language) for language in LANGUAGES},
    }
    # A text may contain "</script>".
    data = to_json(config).decode().replace("<", "\\u003c")
    script = _UNREAD.sub("", (_FOLDER / "mcp_app.js").read_text())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{_style(look.accent)}</style></head>"
        '<body><main id="app"></main><script type="application/json" id="config">'
        f"{data}</script><script>{script}</script></body></html>"
    )


@cache
def _texts(language: Language) -> Mapping[str, object]:
    catalogue = texts.catalogue(language).texts
    return {name: catalogue[key] for name, key in TEXTS.items()}


@cache
def _style(accent: str | None) -> str:
    light, dark = brands.palette(accent)
    own = {name: value for name, value in dark.items() if light[name] != value}
    # The client says which theme it has, whatever the browser prefers.
    rules = (
        f":root{{color-scheme:light;{_variables(light)}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{_variables(own)}}}"
    )
    return minify_css(rules + (_FOLDER / "mcp_app.css").read_text())


def _variables(tokens: Mapping[str, str]) -> str:
    return "".join(f"--{name.replace('_', '-')}:{value};" for name, value in tokens.items())
