"""Convert the rows of a table to plain products: one for each variant, with named values.

A shop's product may take several rows: a parent, a row for each variant, and rows for more images.
The variants become products, which have the parent's values where theirs are empty. Each cell that
is read is noted, so that what is not read can be named.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chalicelib.core.text import fold
from chalicelib.domains.catalog.rules.category_path import path_text
from chalicelib.domains.files.rules.images import MAX_IMAGES
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.amounts import amount, number
from chalicelib.domains.imports.rules.tables.flag_words import NO, UNLIMITED, YES
from chalicelib.domains.imports.rules.tables.headers import normalised
from chalicelib.domains.imports.rules.tables.shops import Kind, Role, Shop
from chalicelib.domains.imports.rules.tables.spreadsheet_cells import unmark_text
from chalicelib.domains.imports.rules.tables.table_errors import CellError
from chalicelib.lib import currencies, slugs
from chalicelib.lib.currencies import RUB
from chalicelib.lib.extracts import plain_text

# The columns of a plain table, in which refused rows of a shop's table are reported.
PLAIN_HEADER = (
    *("sku", "name", "price", "description", "stock", "barcode"),
    *("category", "images", "status"),
)
MAX_CODE = 64
_SHOWN = 60
_OF_VARIANTS: tuple[Role, ...] = ("tracker", "in stock", "oversold")
# Names of the only variant of a product, at Shopify, Square and Wildberries.
_NO_OPTIONS = frozenset({"default title", "regular", "0"})
_STOCK_WORDS = YES | NO | UNLIMITED
_RUBLES = frozenset({"rub", "rur", "руб", "руб.", "рубль", "₽", "р."})
_NO_PRICE = re.compile(r"[0\s.,]*")
_TAG = re.compile(
    r"<!--|</?(?:p|br|hr|b|i|u|s|em|strong|small|sup|sub|a|img|font|span|div|center|pre|code|h[1-6]"
    r"|[uod]l|li|d[td]|table|t(?:head|body|foot|r|h|d)|blockquote|figure|section|article|iframe"
    r"|video|style|script|noscript)\b[^<>]*>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&#?\w+;")
_IDS = re.compile(r"[\d\s,;|]+")
_TOTAL = re.compile(
    r"(?:(?:grand |sub)?total|итого|всего)(?: (?:по|for)\b.*)?\s*[:.]?", re.IGNORECASE
)


# Returns the value of a role of a row, or else of its product if the shop's variants have it.
Inherited = Callable[[Role], str]


@dataclass(slots=True)
class Line:
    number: int
    cells: Sequence[str]
    columns: Mapping[Role, Sequence[int]]
    used: set[int] = field(default_factory=set)  # indexes of the cells that were read

    def all(self, role: Role) -> list[str]:
        # The cells are in the order of the columns.
        filled = self._filled(role)
        self.used.update(filled)
        return [self.cells[index].strip() for index in filled]

    def one(self, role: Role, *, is_last: bool = False) -> str:
        """Return the first or last filled cell of a role, or "". The other cells stay unread."""
        filled = self._filled(role)
        if not filled:
            return ""
        index = filled[-1 if is_last else 0]
        self.used.add(index)
        return self.cells[index].strip()

    def has(self, role: Role) -> bool:
        """Whether a cell of a role is filled, which does not read it."""
        return bool(self._filled(role))

    def shown(self, role: Role) -> list[str]:
        """Return the filled cells of a role without reading them."""
        return [self.cells[index].strip() for index in self._filled(role)]

    def _filled(self, role: Role) -> list[int]:
        width = len(self.cells)
        return [
            index
            for index in self.columns.get(role, ())
            if index < width and self.cells[index].strip()
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Values of a product by field, as text."""

    number: int
    values: Mapping[str, str]
    without: frozenset[str] = frozenset()  # fields that the product explicitly lacks
    notes: tuple[Reason, ...] = ()  # what was read differently or left out
    fault: Reason | None = None  # why it is refused the product
    options: tuple[str, ...] = ()

    @property
    def cells(self) -> list[str]:
        return [self.values.get(name, "") for name in PLAIN_HEADER]


def is_total(line: Line) -> bool:
    """Whether a row has the totals of the rows above, so that it is no product."""
    first = next(cell.strip() for cell in line.cells if cell.strip())
    return _TOTAL.fullmatch(first) is not None and line.shown("sku") in ([], [first])


def without_ids(shop: Shop, lines: Sequence[Line]) -> Reason | None:
    """Stop reading categories that are only numbers, and return a note about that, if any."""
    if not shop.name:
        return None
    texts = [text for line in lines for text in line.shown("category")]
    if not texts or not all(map(_IDS.fullmatch, texts)):
        return None
    for line in lines:
        line.columns = {role: at for role, at in line.columns.items() if role != "category"}
    msg = f"The categories are numbers of {shop.name}, not names, so products get no category."
    return Reason.of("category_numbers", msg)


def without_translations(lines: Sequence[Line]) -> tuple[list[Line], Reason | None]:
    """Return the rows in the language of the first, and a note about the others, if any."""
    first = lines[0].one("view") if lines else ""
    kept = [line for line in lines if line.one("view") == first]
    if len(kept) == len(lines):
        return kept, None
    count = len(lines) - len(kept)
    msg = f"Rows that are translations, left out: {count}."
    return kept, Reason.of("translations", msg, count=count)


def without_empty_stock(shop: Shop, lines: Sequence[Line]) -> Reason | None:
    """Stop reading a stock that is 0 everywhere at a marketplace, and return a note."""
    texts = [text for line in lines for text in line.shown("stock")]
    if not shop.is_zero_unknown or not texts or not all(map(_NO_PRICE.fullmatch, texts)):
        return None
    for line in lines:
        line.columns = {role: at for role, at in line.columns.items() if role != "stock"}
    msg = "The stock is 0 in all rows, so it is not imported: products have no limit."
    return Reason.of("no_stock", msg)


def products(shop: Shop, lines: Sequence[Line], currency: str = RUB) -> list[Product]:
    """Return the products of a table with prices in a currency, in the order of their rows."""
    found = [
        product for group in _groups(shop, lines) for product in _of_group(shop, group, currency)
    ]
    found = _with_own_skus(found)
    return sorted(found, key=lambda product: product.number)


def _kind(shop: Shop, line: Line) -> Kind:
    name = normalised(re.split(r"[,]", line.one("kind"), maxsplit=1)[0])
    if name in shop.kinds:
        return shop.kinds[name]
    return "variant" if line.one("parent") else "product"


def _groups(shop: Shop, lines: Sequence[Line]) -> list[list[Line]]:
    groups: dict[object, list[Line]] = {}
    codes: dict[str, int] = {}
    if "parent" in {role for line in lines for role in line.columns}:
        for line in lines:
            for code in (*line.shown("sku"), *line.shown("id")):
                codes.setdefault(fold(code), line.number)
    previous: object = None
    for line in lines:
        key: object = line.number
        if handle := line.one("handle"):
            key = handle
        elif parent := line.one("parent"):
            code = fold(re.sub(r"^id:\s*", "", parent))
            key = codes.get(code, parent)
        elif shop.is_followed and previous is not None and _follows(shop, line):
            key = previous
        groups.setdefault(key, []).append(line)
        previous = key
    return list(groups.values())


def _follows(shop: Shop, line: Line) -> bool:
    if shop.kinds:
        return _kind(shop, line) in {"variant", "extra"}
    return not line.has("name")


def _of_group(shop: Shop, group: Sequence[Line], currency: str) -> Iterator[Product]:
    kinds = {line.number: _kind(shop, line) for line in group}
    variants = [line for line in group if kinds[line.number] == "variant"]
    if not shop.kinds and "parent" not in group[0].columns:
        variants = [line for line in group if line.has("price") or line.has("sku")] or [group[0]]
    heads = [line for line in group if kinds[line.number] in {"product", "group"}]
    parent = next((line for line in heads if line.has("name")), heads[0] if heads else None)
    if parent and variants and parent not in variants:
        # A parent's are those of its variants.
        for role in _OF_VARIANTS:
            parent.all(role)
    for line in variants or [parent or group[0]]:
        head = parent or line
        if kinds[line.number] == "group" and not line.has("price"):
            values = {"sku": line.one("sku"), "name": _name(shop, line, head, ())}
            msg = (
                f"{line.one('kind')}: expected a product with a price, received one that consists "
                "of others. Import those."
            )
            fault = Reason.of("no_own_price", msg)
            yield Product(number=line.number, values=values, fault=fault)
        else:
            is_variant = line in variants
            yield _product(shop, line, head, group, currency, is_variant=is_variant)


def _product(  # noqa: PLR0913  where its values stand
    shop: Shop,
    line: Line,
    head: Line,
    group: Sequence[Line],
    currency: str,
    *,
    is_variant: bool,
) -> Product:
    options = _options(shop, line) if is_variant or not shop.name else ()
    notes: list[Reason] = []
    fault = None

    def inherited(role: Role) -> str:
        own = line.one(role, is_last=is_variant)
        return own or (head.one(role) if role in shop.inherited else "")

    name = _name(shop, line, head, options)
    values = {
        "sku": _code(shop, line, head, options, name=name),
        "name": name,
        "description": _description(shop, line) or _description(shop, head),
        "barcode": ";".join(dict.fromkeys(map(_unmarked, line.all("barcode")))),
        "images": "|".join(_images(line, head, group, notes)),
        "category": _category(shop, line if _has_category(line) else head, notes),
    }
    try:
        values["price"] = _price(shop, line, head, currency, notes)
    except CellError as error:
        fault = error.reason.about("price")
    named = line.one("currency") or head.one("currency")
    if named and fold(named) not in (_RUBLES if currency == RUB else currencies.names_of(currency)):
        expected = "rubles" if currency == RUB else currency
        msg = (
            f"price: expected {expected}, received {named}. Convert the prices, and remove the "
            "column of the currency."
        )
        fault = Reason.of("other_currency", msg, text=named)
    values["status"], status_fault = _status(line, head)
    values["stock"], is_unlimited = _stock(shop, line, inherited, notes)
    return Product(
        number=line.number,
        values={field_name: text for field_name, text in values.items() if text},
        without=frozenset({"stock"}) if is_unlimited else frozenset(),
        notes=tuple(notes),
        fault=fault or status_fault,
        options=options,
    )


def _options(shop: Shop, line: Line) -> tuple[str, ...]:
    values = [value for cell in line.all("option") for value in _values(shop, cell)]
    bare = (value.strip() for value in values or _values_in_name(shop, line))
    return tuple(value for value in bare if value and fold(value) not in _NO_OPTIONS)


def _values(shop: Shop, cell: str) -> list[str]:
    return re.findall(shop.option_value, cell) if shop.option_value else [cell]


def _values_in_name(shop: Shop, line: Line) -> list[str]:
    # BigCommerce writes the options instead of a variant's name.
    own = line.one("name")
    return _values(shop, own) if shop.option_value and own.startswith("[") else []


def _name(shop: Shop, line: Line, head: Line, options: Sequence[str]) -> str:
    # The name has the options if they are not in it.
    own = "" if _values_in_name(shop, line) else line.one("name")
    shared = head.one("name")
    name = _unescaped(own or shared)
    return " / ".join((name, *options)) if name and own in {"", shared} else name


def _code(shop: Shop, line: Line, head: Line, options: Sequence[str], *, name: str) -> str:
    # Without an SKU, the code must be the same in the next export.
    is_head = line is head
    if (sku := line.one("sku", is_last=not is_head)) and (is_head or sku != head.one("sku")):
        return _unmarked(sku) if shop.name else sku
    shared = sku or line.one("handle")
    if not shared and not is_head:
        shared = head.one("sku") or head.one("id")
    if shared and (options or line.has("handle")):
        return "-".join((shared, *options))[:MAX_CODE]
    if code := line.one("id") or sku:
        return code
    return slugs.slugify(name, fallback="")[:MAX_CODE].strip("-") if shop.name else ""


def _unmarked(code: str) -> str:
    # Shopify and Ozon put an apostrophe before a code.
    return unmark_text(code).removeprefix("'")


def _with_own_skus(found: Sequence[Product]) -> list[Product]:
    counts = Counter(fold(product.values.get("sku", "")) for product in found)
    return [
        replace(
            product,
            values={
                **product.values,
                "sku": "-".join((product.values["sku"], *product.options))[:MAX_CODE],
            },
        )
        if product.options and counts[fold(product.values.get("sku", ""))] > 1
        else product
        for product in found
    ]


def _description(shop: Shop, line: Line) -> str:
    texts = []
    for cell in line.all("description"):
        text = cell.replace("\\n", "\n") if shop.has_escaped_breaks else cell
        text = readable(text)
        if text and text not in texts:
            texts.append(text)
    return "\n\n".join(texts)


def readable(text: str) -> str:
    """Return a description without HTML."""
    # OpenCart writes the tags themselves as entities.
    text = text if _TAG.search(text) else _unescaped(text)
    return plain_text(text).strip() if _TAG.search(text) else text


def _unescaped(text: str) -> str:
    return html.unescape(text) if _ENTITY.search(text) else text


def _images(line: Line, head: Line, group: Sequence[Line], notes: list[Reason]) -> list[str]:
    cells = line.all("images") + [cell for each in group for cell in each.all("gallery")]
    if line is not head:
        cells += head.all("images")
    images = list(dict.fromkeys(address for cell in cells for address in addresses(cell)))
    kept = [image for image in images if is_address(image)]
    if others := [image for image in images if not is_address(image)]:
        text = shortened(others)
        msg = f"images: {text} left out: expected addresses that begin with https://"
        notes.append(Reason.of("images", msg, text=text))
    if len(kept) > MAX_IMAGES:
        count = len(kept) - MAX_IMAGES
        msg = f"images: {count} of {len(kept)} left out, as a product has at most {MAX_IMAGES}"
        notes.append(Reason.of("too_many_images", msg, count=count, most=MAX_IMAGES))
    return kept[:MAX_IMAGES]


def addresses(cell: str) -> list[str]:
    """Divide a cell into the addresses of images, which may have commas and semicolons."""
    parts = re.split(r"[|\r\n]|[,;\s](?=(?:https?:)?//)", cell)
    return [
        bare
        for part in parts
        for text in ([part] if is_address(part.strip()) else re.split(r"[,;]", part))
        if (bare := text.strip(" ,;\t\u00a0"))
    ]


def is_address(text: str) -> bool:
    """Whether a text is the address of an image on another server."""
    return re.match(r"https?://", text, re.IGNORECASE) is not None


def shortened(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    first = texts[0] if len(texts[0]) <= _SHOWN else f"{texts[0][:_SHOWN]}…"
    return f'"{first}"' + (f" and {len(texts) - 1} more" if len(texts) > 1 else "")


def _has_category(line: Line) -> bool:
    return line.has("category") or line.has("level")


def _category(shop: Shop, line: Line, notes: list[Reason]) -> str:
    if levels := line.all("level"):
        return path_text(levels)
    cells = line.all("category")
    if not shop.name:
        return cells[0] if cells else ""
    texts = [text for cell in cells for text in _split(cell, shop.lists)]
    paths = [
        tuple(name for name in _split(_unescaped(text), shop.levels) if name) for text in texts
    ]
    paths = [path[1:] if path[:1] == (shop.top_category,) else path for path in paths if path]
    paths = list(dict.fromkeys(filter(None, paths)))
    if not paths:
        return ""
    best = max(paths, key=len)
    others = [path for path in paths if path != best[: len(path)]]
    if others:
        names = ", ".join(" / ".join(path) for path in others)
        msg = f"category: {names} left out, as a product has one"
        notes.append(Reason.of("one_category", msg, text=names))
    return path_text(best)


def _split(text: str, separators: str) -> list[str]:
    if not separators:
        return [text.strip()] if text.strip() else []
    # WooCommerce writes a comma within a name with a backslash.
    parts = re.split(rf"(?<!\\)[{re.escape(separators)}]+", text)
    return [bare for part in parts if (bare := re.sub(r"\\(?=[,;])", "", part).strip())]


def _price(shop: Shop, line: Line, head: Line, currency: str, notes: list[Reason]) -> str:
    has_own = line.has("price") or line.has("net price") or "price" not in shop.inherited
    source = line if has_own else head
    price = source.one("price", is_last=source is not head) or source.one("net price")
    surcharge = line.one("surcharge")
    if price and surcharge and not _NO_PRICE.fullmatch(surcharge):
        price = str(amount(price, currency) + amount(surcharge, currency))
    sale, is_on_sale = source.one("sale price"), line.one("on sale")
    # Which one of several prices clients pay is noted.
    if not sale or _NO_PRICE.fullmatch(sale):
        return price
    if line.columns.get("on sale") and fold(is_on_sale) in NO:
        notes.append(_no_sale(sale, "a sale price that is off"))
        return price
    if dates := source.all("sale dates"):
        notes.append(_no_sale(sale, f"a sale price of {' – '.join(dates)}"))
        return price
    if price and amount(sale, currency) >= amount(price, currency):
        notes.append(_no_sale(sale, f"a sale price that is not below {price}"))
        return price
    if price:
        msg = f"price: {sale} is the sale price, and {price} the regular one is left out"
        notes.append(Reason.of("sale_price", msg, text=sale, value=price))
    return sale


def _no_sale(price: str, reason: str) -> Reason:
    return Reason.of("no_sale", f"price: {price} left out, {reason}", text=price)


def _status(line: Line, head: Line) -> tuple[str, Reason | None]:
    words = line.all("status") or head.all("status")
    flags = [fold(flag) for flag in dict.fromkeys(line.all("published") + head.all("published"))]
    if unknown := [flag for flag in flags if flag not in YES | NO]:
        msg = f'status: expected yes or no, received "{unknown[0]}"'
        return "", Reason.of("unknown_status", msg, text=unknown[0])
    if any(flag in NO for flag in flags):
        return "inactive", None
    if words:
        return words[0], None
    return ("active" if flags else ""), None


def _stock(shop: Shop, line: Line, inherited: Inherited, notes: list[Reason]) -> tuple[str, bool]:
    cells = [unmark_text(cell) for cell in line.all("stock")]
    is_oversold = fold(line.one("oversold")) in YES
    flag = line.one("in stock")
    words = [cell for cell in cells if fold(cell) in _STOCK_WORDS and not re.search(r"\d", cell)]
    counted = [cell for cell in cells if cell not in words]
    stock = _sum(cells, notes) if len(counted) > 1 else next(iter(counted), "")
    reason = ""
    if line.columns.get("tracker"):
        tracker = fold(inherited("tracker"))
        if tracker in NO and (tracker or shop.empty_tracker_is_untracked):
            reason = "the shop does not count it"
    if not reason and is_oversold:
        reason = "the shop also sells it without stock"
    if reason:
        if stock and not _NO_PRICE.fullmatch(stock):
            notes.append(
                Reason.of("uncounted", f"stock: {stock} left out, as {reason}", text=stock)
            )
        return "", True
    word = fold(flag or (words[0] if words else ""))
    if word in NO and word:
        if words or not _NO_PRICE.fullmatch(stock):
            text = stock or words[0]
            msg = f"stock: {text} is read as 0, as it is sold out"
            notes.append(Reason.of("sold_out", msg, text=text))
        return "0", False
    return stock, not stock and word in YES | UNLIMITED


def _sum(cells: Iterable[str], notes: list[Reason]) -> str:
    cells = list(cells)
    try:
        total = sum(number(cell) for cell in cells)
    except CellError:
        return next(cell for cell in cells if not re.fullmatch(r"[\d\s.,-]+", cell))
    count = len(cells)
    msg = f"stock: {total} is the sum of {count} places"
    notes.append(Reason.of("sum", msg, value=total, count=count))
    return str(total)
