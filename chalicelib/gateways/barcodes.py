"""Product data by barcode from Open Food Facts, Open Beauty Facts and Open Products Facts.

They need no key, only a ``User-Agent`` that identifies the client. They allow 15 reads a minute for
each IP address and block clients that read more, so callers cache the results and count the reads
(``admits``). The licences of the data (ODbL) and of the images (CC BY-SA) require attribution of
``Found.source``.
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
# For all sources together: a draft is a convenience, so its caller must not wait long.
TOTAL_SECONDS = 3.0
MAX_NAME = 255
MAX_DESCRIPTION = 20_000  # characters, as of a product's field

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
    """No source returned the article, and at least one source could not be queried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # a clause for a warning


@dataclass(frozen=True, slots=True)
class Found:
    """An article, in Russian if available, else in English, else in any language."""

    source: str  # to credit
    name: str | None
    brand: str | None
    description: str | None
    category: str | None
    images: list[str]  # https URLs at the source


def look_up(
    barcode: Barcode,
    *,
    timeout_seconds: float = TOTAL_SECONDS,
    admits: Callable[[str], bool] = lambda _: True,
) -> Found | None:
    """Query the sources in order and return the first article found, or None.

    Numbers that a shop assigned itself are never looked up. A source that fails is skipped.
    ``admits`` returns whether the source of a given name may be queried once more now.

    Raises:
        LookupFailedError: no source has it and some failed, or look-ups are switched off.
    """
    if barcode.in_store:
        return None
    sources = services(settings().barcode_sources)
    if unknown := sources.keys() - SOURCES:
        msg = (
            f"BARCODE_SOURCES: expected names from {', '.join(sorted(SOURCES))}, received "
            f"{', '.join(unknown)}"
        )
        raise ValueError(msg)
    if not sources:
        raise LookupFailedError(
            "barcode look-ups in open databases are switched off on this server"
        )
    deadline, failures = Deadline(timeout_seconds), []
    for source, base in sources.items():
        if not admits(source):
            failures.append(f"{source} has reached its rate limit")
            continue
        try:
            if product := _query(source, base=base, code=_source_code(barcode), deadline=deadline):
                return product
        except JsonApiError as failure:
            failures.append(failure.reason)
    if failures:
        raise LookupFailedError("; ".join(failures))
    return None


def _source_code(barcode: Barcode) -> str:
    # Sources store 8 digits for an EAN-8, otherwise 13 or 14.
    # https://openfoodfacts.github.io/openfoodfacts-server/api/ref-barcode-normalization/
    code = barcode.gtin14.lstrip("0")  # a shop assigned any EAN-8 that begins with 0
    return code if len(code) == 8 else code.zfill(13)  # noqa: PLR2004  as documented above


def _query(source: str, *, base: str, code: str, deadline: Deadline) -> Found | None:
    answer = get_json(
        source,
        url=f"{base}/api/v2/product/{code}.json",
        query={"fields": ",".join(_FIELDS), "lc": _LANGUAGES[0]},
        deadline=deadline,
        statuses={200, 404},  # an unknown code is a 404 with a body
    )
    match answer:
        case {"status": 0}:
            return None
        case {"status": 1, "product": dict(product)}:
            return _read_product(source, product)
        case _:
            raise JsonApiError(source, what="sent a response that is not a product")


def _read_product(source: str, product: Mapping[str, Any]) -> Found | None:
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
        # The name may have been taken from the description.
        description=description if description != name else None,
        category=_category(product),
        images=[image] if image else [],
    )


def _plain(value: object, limit: int) -> str | None:
    # The sources escape their data.
    return text(html.unescape(value), limit) if isinstance(value, str) else None


def _best(product: Mapping[str, Any], field: str, limit: int) -> str | None:
    names = (*(f"{field}_{language}" for language in _LANGUAGES), field)
    return next(filter(None, (_plain(product.get(name), limit) for name in names)), None)


def _parts(value: object) -> Iterator[str]:
    parts = value.split(",") if isinstance(value, str) else ()
    return filter(None, (_plain(part, MAX_NAME) for part in parts))


def _category(product: Mapping[str, Any]) -> str | None:
    # A name without a translation begins with its language code, such as ``fr:``.
    for language in _LANGUAGES:
        tags = product.get(f"categories_tags_{language}")
        names = [_plain(tag, MAX_NAME) for tag in tags] if isinstance(tags, list) else []
        for name in reversed(names):
            if name and not _UNTRANSLATED.match(name):
                return name
    *_, last = None, *_parts(product.get("categories"))
    return last and _UNTRANSLATED.sub("", last, count=1)
