"""What the world knows of an article by its barcode: Open Food, Beauty and Products Facts.

They need no key but a User-Agent that says who asks. They allow 15 reads a minute and address, and
shut out who reads more: callers cache, and count (``admits``). Their data is under the ODbL, their
images under CC BY-SA; both ask to be named: ``Found.source`` says whom.
API: https://openfoodfacts.github.io/openfoodfacts-server/api/ref-v2/
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.deadline import Deadline
from chalicelib.core.settings import settings
from chalicelib.gateways.json_api import JsonApiError, get_json, link, services, text
from chalicelib.lib.barcodes import Barcode

SOURCES = frozenset({"openfoodfacts", "openbeautyfacts", "openproductsfacts"})
TOTAL_SECONDS = 3.0
"""For all sources together (tools.md, row 32): a draft is a convenience, nobody waits for it."""
MAX_NAME = 255
MAX_DESCRIPTION = 20_000
"""The limits of a product's fields (tools.md, row 34)."""

_LANGUAGES = ("ru", "en")
_FIELDS = (
    *(f"product_name_{language}" for language in _LANGUAGES),
    "product_name",
    *(f"generic_name_{language}" for language in _LANGUAGES),
    "generic_name",
    "brands",
    *(f"categories_tags_{language}" for language in _LANGUAGES),
    "categories",
    "image_front_url",
)
_UNTRANSLATED = re.compile(r"[a-z]{2,3}:")


class LookupFailedError(Exception):
    """Nobody is known to have the article, but not everybody could be asked.

    ``reason`` is a clause for a warning.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Found:
    """An article. In Russian if there is any, else in English, else in whatever there is.

    ``images`` are https URLs at the source. ``dataclasses.asdict`` of it is JSON.
    """

    source: str
    name: str | None
    brand: str | None
    description: str | None
    category: str | None
    images: list[str]


def look_up(
    barcode: Barcode,
    *,
    within: float = TOTAL_SECONDS,
    admits: Callable[[str], bool] = lambda _: True,
) -> Found | None:
    """Ask one source after another; return the first that knows the article, None if none does.

    A number that a shop gave itself is never asked about. A source that fails is passed over.

    Args:
        barcode: what to ask about.
        within: seconds for all sources together.
        admits: says whether a source, by its name, may be asked once more now.

    Raises:
        LookupFailedError: no source knows it, but some failed, or look-ups are switched off.
    """
    if barcode.in_store:
        return None
    sources = services(settings().barcode_sources)
    if unknown := sources.keys() - SOURCES:
        msg = f"BARCODE_SOURCES may name {', '.join(sorted(SOURCES))}, not {', '.join(unknown)}"
        raise ValueError(msg)
    if not sources:
        raise LookupFailedError("barcode look-ups outside are switched off on this server")
    deadline, failures = Deadline(within), []
    for source, base in sources.items():
        if not admits(source):
            failures.append(f"{source} was asked as often as it allows for now")
            continue
        try:
            if found := _ask(source, base, _their_code(barcode), deadline):
                return found
        except JsonApiError as failure:
            failures.append(failure.reason)
    if failures:
        raise LookupFailedError("; ".join(failures))
    return None


def _their_code(barcode: Barcode) -> str:
    """Return the number as the sources keep it: an EAN-8 in 8 digits, else in 13, or 14.

    https://openfoodfacts.github.io/openfoodfacts-server/api/ref-barcode-normalization/
    """
    code = barcode.gtin14.lstrip("0")  # an EAN-8 that begins with 0 would be a shop's own
    return code if len(code) == 8 else code.zfill(13)  # noqa: PLR2004  as documented above


def _ask(source: str, base: str, code: str, deadline: Deadline) -> Found | None:
    answer = get_json(
        source,
        f"{base}/api/v2/product/{code}.json",
        {"fields": ",".join(_FIELDS), "lc": _LANGUAGES[0]},
        deadline=deadline,
        statuses={200, 404},  # an unknown code is a 404 with a body
    )
    match answer:
        case {"status": 0}:
            return None
        case {"status": 1, "product": dict(product)}:
            return _found(source, product)
        case _:
            raise JsonApiError(source, "sent something other than a product")


def _found(source: str, product: Mapping[str, Any]) -> Found | None:
    """Read a product; one without a name, a brand and an image is as good as unknown."""
    description = _best(product, "generic_name", MAX_DESCRIPTION)
    name = _best(product, "product_name", MAX_NAME) or text(description, MAX_NAME)
    brand = next(_parts(product.get("brands")), None)
    image = link(product.get("image_front_url"))
    if not (name or brand or image):
        return None
    return Found(
        source=source,
        name=name,
        brand=brand,
        description=description if description != name else None,
        category=_category(product),
        images=[image] if image else [],
    )


def _plain(value: object, limit: int) -> str | None:
    """Return a text; the sources store what contributors typed escaped for HTML."""
    return text(html.unescape(value), limit) if isinstance(value, str) else None


def _best(product: Mapping[str, Any], field: str, limit: int) -> str | None:
    names = (*(f"{field}_{language}" for language in _LANGUAGES), field)
    return next(filter(None, (_plain(product.get(name), limit) for name in names)), None)


def _parts(value: object) -> Iterator[str]:
    parts = value.split(",") if isinstance(value, str) else ()
    return filter(None, (_plain(part, MAX_NAME) for part in parts))


def _category(product: Mapping[str, Any]) -> str | None:
    """Return the most specific category, which is the last, in the best language that has one.

    A name without a translation begins with the language that it is in.
    """
    for language in _LANGUAGES:
        tags = product.get(f"categories_tags_{language}")
        names = [_plain(tag, MAX_NAME) for tag in tags] if isinstance(tags, list) else []
        for name in reversed(names):
            if name and not _UNTRANSLATED.match(name):
                return name
    *_, last = None, *_parts(product.get("categories"))
    return last and _UNTRANSLATED.sub("", last, count=1)
