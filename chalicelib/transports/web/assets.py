"""Style sheets, scripts and icons, served by the service itself.

A style sheet is one request: the vendored base, the tokens, the common rules and those of the
page's kind. Its name and a script's contain a hash, so browsers cache them indefinitely.
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.lib.accents import ACCENTS
from chalicelib.lib.markup import brands
from chalicelib.lib.markup.css import minify_css
from chalicelib.transports.http import HttpRequest, HttpResponse, etag

PATH = "/assets/{name}"
_FOLDER = Path(__file__).parent
# Empty lines, lines of comments, and indentation, which are a fifth of the console's script.
_UNREAD = re.compile(rb"(?m)^[ \t]*(?://[^\n]*)?\n|^[ \t]+")
_OF_BRANDS = ("tokens", "brand")  # They are in ``lib.markup.brands``.
_SHARED = ("normalize", "tokens", "base", "brand")
_BOOKING = ("booking", "booking-form")
_TIMES = ("booking", "times")
_CONSOLE = (*_SHARED, "mark", "console")
# The parts of each style sheet. A page has one style sheet, so those of some pages of the console
# have their rules after the common ones: "desk" is of the overview and of charts, "grid" of tables
# of choices, "many" of tables of many records. A business with an accent has a style sheet of
# booking pages that ends with the accent's colours. Steps in which a visitor chooses a time have
# "times" instead.
STYLE_SHEETS = {
    "plain": (*_SHARED, "notice"),
    "blog": (*_SHARED, "blog"),
    "booking": (*_SHARED, *_BOOKING),
    "times": (*_SHARED, *_TIMES),
    "console": _CONSOLE,
    **{
        f"console-{part}": (*_CONSOLE, part)
        for part in ("calendar", "desk", "grid", "hours", "many")
    },
    "docs": (*_SHARED, "docs"),
    "home": (*_SHARED, "mark", "home"),
    **{f"booking-{accent}": (*_SHARED, *_BOOKING, f"accent-{accent}") for accent in ACCENTS},
    **{f"times-{accent}": (*_SHARED, *_TIMES, f"accent-{accent}") for accent in ACCENTS},
    # Composed pages of sites have these in their HTML, and not in a request.
    **{f"site-{accent}": ("tokens", f"accent-{accent}", "site") for accent in ACCENTS},
    **{f"shop-{accent}": ("tokens", f"accent-{accent}", "site", "shop") for accent in ACCENTS},
}
# Scripts in ``static``. A page may name one (``render.page``). A booking page whose tools are on
# has "webmcp" as well.
SCRIPTS = frozenset({"booking", "console", "docs", "webmcp"})
ICON = "product.svg"  # The icon that AI clients show next to the tool server.
# The manifest by which a phone adds the console to its home screen (W3C Web App Manifest).
MANIFEST = "product.webmanifest"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_CACHED = {
    True: "public, max-age=31536000, immutable",
    False: "public, max-age=60",
}
_NAME = re.compile(r"([a-z-]+)\.([0-9a-f]{12})\.(css|js)")
_SPACE = re.compile(r"\s+")


@cache
def style_sheet(name: str) -> bytes:
    """Return a style sheet, minified."""
    return minified(*STYLE_SHEETS[name])


def minified(*names: str) -> bytes:
    """Join parts of style sheets, without comments and superfluous white space."""
    return minify_css("\n".join(map(_part, names))).encode()


def _part(name: str) -> str:
    if name.startswith("accent-"):
        return brands.accent_style(name.removeprefix("accent-"))
    if name in _OF_BRANDS:
        return brands.style(name)
    style = (_FOLDER / "static" / f"{name}.css").read_text()
    return style.replace(f"url({ICON})", f'url("{_icon_data()}")') if name == "mark" else style


def _icon_data() -> str:
    """Return the product's icon as a URL with its content, which spares a page a request."""
    svg = (_FOLDER / "static" / ICON).read_text().strip().replace('"', "'")
    return "data:image/svg+xml," + quote(svg, safe="/:=' ")


@cache
def script(name: str) -> bytes:
    """Return a script without its indentation and without the lines of comments."""
    # A script has no template literal of several lines, whose content would change.
    return _UNREAD.sub(b"", (_FOLDER / "static" / f"{name}.js").read_bytes())


@cache
def style_url(name: str) -> str:
    """Return the path of a style sheet, which changes with its content."""
    return _url(name, kind="css", body=style_sheet(name))


@cache
def script_url(name: str) -> str:
    """Return the path of a script, which changes with its content."""
    return _url(name, kind="js", body=script(name))


def _url(name: str, *, kind: str, body: bytes) -> str:
    digest = hashlib.sha256(body).hexdigest()[:12]
    return PATH.replace("{name}", f"{name}.{digest}.{kind}")


@cache
def icon(name: str) -> str:
    """Return an icon's SVG. Screen readers skip it, so the template needs words next to it."""
    svg = _SPACE.sub(" ", (_FOLDER / "icons" / f"{name}.svg").read_text())
    shape = svg.partition(">")[2] if svg.startswith("<!--") else svg
    shape = shape[shape.index("<svg") :].replace("> <", "><")
    # A page has some thirty icons, so their common attributes are in the style sheet.
    head = '<svg class="icon" aria-hidden="true" viewBox="0 0 24 24">'
    return head + shape.partition(">")[2].replace(" />", "/>").strip()


def serve(request: HttpRequest) -> HttpResponse:
    """Return a file in its present version, whichever the URL names, or raise NotFoundError."""
    if request.path["name"] == ICON:
        return _file((_FOLDER / "static" / ICON).read_bytes(), "image/svg+xml")
    if request.path["name"] == MANIFEST:
        return _file(_manifest(), "application/manifest+json")
    match = _NAME.fullmatch(request.path["name"])
    if match is None or match[1] not in {"css": STYLE_SHEETS, "js": SCRIPTS}[match[3]]:
        msg = "This file does not exist. Reload the page that uses it."
        raise NotFoundError(msg, key="file")
    read, url = (style_sheet, style_url) if match[3] == "css" else (script, script_url)
    body = read(match[1])
    headers = {
        "Content-Type": _TYPES[match[3]],
        "ETag": etag(body),
        "Cache-Control": _CACHED[url(match[1]).endswith(f"/{match[0]}")],
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(200, body, headers)


def _manifest() -> bytes:
    base, name = settings().base_path, settings().product_name
    icon = {"src": f"{base}{PATH.replace('{name}', ICON)}", "sizes": "any", "type": "image/svg+xml"}
    start = f"{base}/console"
    return json.dumps(
        {
            "name": name,
            "short_name": name,
            "start_url": start,
            "scope": start,
            "display": "standalone",
            "background_color": "#fdfcfa",
            "theme_color": "#3f3fbf",
            "icons": [icon],
        }
    ).encode()


def _file(body: bytes, media_type: str) -> HttpResponse:
    headers = {
        "Content-Type": media_type,
        "ETag": etag(body),
        "Cache-Control": "public, max-age=86400",
        "Content-Security-Policy": "default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(200, body, headers)
