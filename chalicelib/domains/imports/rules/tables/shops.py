"""Exports of shops: how their headers are recognized, and what their columns mean.

The facts are from the shops' own help pages and sample files. A column that is not listed has no
meaning here, and ``product_table`` names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from chalicelib.domains.imports.rules.tables.headers import HEADERS

Role = str
"""What a column means.

The roles of a table of products are the fields of a plain table, and these:

- ``id``: names a product without an SKU.
- ``net price``: a price without tax, if the table has no other.
- ``surcharge``: added to the price.
- ``sale price``: used instead of the price, unless ``sale dates`` or ``on sale`` limit it.
- ``in stock``: yes or no; ``tracker``: empty or no if the stock is not counted; ``oversold``: yes
  if the product is sold without stock.
- ``level``: the columns are the levels of one category.
- ``gallery``: images of all variants; ``images``: of the row.
- ``published``: yes or no.
- ``kind``: what the row is, see ``Shop.kinds``.
- ``handle``: the same in all rows of a product; ``parent``: the SKU or id of the product.
- ``view``: the language of the row.
"""
# An ``extra`` row adds images to its product, and a ``group`` has no price of its own.
Kind = Literal["product", "variant", "extra", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    name: str
    # Any of these is a set of headers that only this shop's tables have.
    marks: Sequence[frozenset[str]]
    # The role of each normalised header; ``#`` stands for a number, and ``*`` at the end for
    # anything.
    columns: Mapping[str, Role]
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    lists: str = ""  # separates categories
    levels: str = "/"  # separates the levels of one category
    top_category: str = ""
    # pattern of one value in a cell of options, if the cell has names as well
    option_value: str = ""
    inherited: frozenset[str] = frozenset()  # roles that a variant has from its product
    is_followed: bool = False  # Variants stand below their product.
    empty_tracker_is_untracked: bool = True
    has_escaped_breaks: bool = False
    # A stock of 0 in all rows says nothing: the goods are in the marketplace's own warehouse.
    is_zero_unknown: bool = False


def roles(**headers: Sequence[str] | str) -> dict[str, Role]:
    """Return the role of each header. An underscore in a role is a space."""
    return {
        header: role.replace("_", " ")
        for role, names in headers.items()
        for header in ([names] if isinstance(names, str) else names)
    }


def marks(*headers: str) -> tuple[frozenset[str], ...]:
    """Return sets of headers, each written with semicolons."""
    return tuple(frozenset(names.split(";")) for names in headers)


# A table of a person or an accounting program.
OTHER = Shop(name="", marks=(), columns=HEADERS)
# Shops whose tables are recognized. A table that two recognize belongs to the first.
SHOPS = (
    Shop(
        name="Shopify",
        marks=marks("handle;title;variant price", "title;url handle;price"),
        columns=roles(
            handle=("handle", "url handle"),
            name="title",
            description=("body", "description"),
            category="type",
            published=("published", "published on online store"),
            status="status",
            option="option# value",
            sku=("variant sku", "sku"),
            barcode=("variant barcode", "barcode"),
            price=("variant price", "price"),
            tracker=("variant inventory tracker", "inventory tracker"),
            stock=("variant inventory qty", "inventory quantity"),
            oversold=("variant inventory policy", "continue selling when out of stock"),
            gallery=("image src", "product image url"),
            images=("variant image", "variant image url"),
        ),
        levels="",
    ),
    Shop(
        name="WooCommerce",
        marks=marks(
            "regular price;sku", "regular price;name", "базовая цена;артикул", "базовая цена;имя"
        ),
        columns=roles(
            kind=("type", "тип"),
            id=("id",),
            sku=("sku", "артикул"),
            barcode="gtin",
            name=("name", "имя"),
            published=("published", "опубликован", "visibility in catalog", "видимость в каталоге"),
            description=(*("short description", "description", "краткое описание", "описание"),),
            price=("regular price", "базовая цена"),
            sale_price=("sale price", "акционная цена"),
            sale_dates=(
                *("date sale price starts", "date sale price ends"),
                *("дата начала действия скидки", "дата окончания действия скидки"),
                *("дата начала действия продажной цены", "дата окончания действия продажной цены"),
            ),
            stock=("stock", "запасы"),
            in_stock=("in stock", "наличие"),
            oversold=("backorders allowed", "возможен ли предзаказ"),
            category=("categories", "категории"),
            images=("images", "изображения"),
            parent=("parent", "родительский"),
            option=(
                *("attribute # value", "значения атрибутов #", "значение атрибутов #"),
                *("значения атрибута #", "значение атрибута #"),
            ),
        ),
        kinds={"variation": "variant", "grouped": "group"},
        lists=",",
        levels=">",
        has_escaped_breaks=True,
    ),
    Shop(
        name="InSales",
        marks=marks("название товара или услуги;цена продажи"),
        columns=roles(
            level=("категория", "подкатегория", "подкатегория #"),
            handle="id товара",
            id=("id варианта",),
            name="название товара или услуги",
            description=("краткое описание", "полное описание"),
            published="видимость на витрине",
            images=("изображения варианта",),
            gallery="изображения",
            sku="артикул",
            barcode="штрих код",
            price="цена продажи",
            stock="остаток",
            currency="валюта склада",
            option=("свойство: *", "свойство *"),
        ),
        inherited=frozenset({"price"}),
    ),
    Shop(
        name="OpenCart",
        marks=marks(
            "product id;model;image name",
            "name;model;main category",
            "name;model;category;stock status",
        ),
        columns=roles(
            id=("model", "product id", "id"),
            sku="sku",
            name="name",
            barcode=("ean", "upc"),
            description="description",
            price="price",
            stock="quantity",
            tracker="subtract",
            category=("main category", "category", "categories"),
            images=("image name", "image", "images", "additional images"),
            published="status",
        ),
        lists=",",
        levels=">|",
        empty_tracker_is_untracked=False,
    ),
    Shop(
        name="Ozon",
        marks=marks(
            "артикул;ozon product id;текущая цена с учетом скидки",
            "артикул;название товара;ссылка на главное фото",
        ),
        columns=roles(
            sku="артикул",
            barcode=("barcode", "штрихкод"),
            name=("название товара", "наименование товара"),
            description="аннотация",
            price=("текущая цена с учетом скидки", "цена"),
            stock=("доступно к продаже по схеме fbs",),
            category=("категория", "категория комиссии"),
            images=("ссылка на главное фото", "ссылки на дополнительные фото"),
        ),
        levels="",
        is_zero_unknown=True,
    ),
    Shop(
        name="Wildberries",
        marks=marks("артикул продавца;наименование;баркод", "артикул продавца;баркоды;предмет"),
        columns=roles(
            handle="артикул продавца",
            name="наименование",
            barcode=("баркод", "баркоды"),
            description="описание",
            price=("цена", "розничная цена"),
            category=("категория продавца", "предмет"),
            images=("фото", "медиафайлы"),
            option=("размер", "рос. размер"),
        ),
        levels="",
    ),
    Shop(
        name="MoySklad",
        marks=marks("наименование;внешний код;код", "наименование;внешний код;цена цена продажи"),
        columns=roles(
            kind="тип",
            category="группы",
            id=("код", "внешний код"),
            parent="код товара модификации",
            name="наименование",
            sku="артикул",
            barcode=("штрихкод ean#", "штрихкод upc", "штрихкод gtin"),
            description="описание",
            price=("цена цена продажи", "цена продажи"),
            currency="валюта",
            stock=("доступно", "остаток"),
            option="характеристика *",
        ),
        kinds={"модификация": "variant"},
    ),
    Shop(
        name="1C-Bitrix",
        marks=marks("ie name;ie xml id", "ie name;ie id"),
        columns=roles(
            id=("ie xml id", "ie id"),
            name="ie name",
            published="ie active",
            description=("ie preview text", "ie detail text"),
            images=("ie detail picture", "ie preview picture", "more photo"),
            level="ic group#",
            sku="artnumber",
            price="cv price #",
            currency="cv currency #",
            stock="cp quantity",
        ),
    ),
    Shop(
        name="Tilda",
        marks=marks("title;price;editions;parent uid"),
        columns=roles(
            id=("external id", "tilda uid"),
            parent="parent uid",
            sku="sku",
            category="category",
            name="title",
            description=("description", "text"),
            images="photo",
            price="price",
            stock="quantity",
            option=("editions", "modifications"),
        ),
        lists=";",
        levels=">",
        option_value=r"[^:;]+:([^;]+)",  # Color:Red;Size:L
    ),
    Shop(
        name="Ecwid",
        marks=marks("type;product internal id;product price", "type;product sku;product price"),
        columns=roles(
            kind="type",
            handle="product internal id",
            sku=("product sku", "product variation sku"),
            name="product name",
            description="product description",
            price=("product price", "product variation price"),
            tracker=("product is inventory tracked", "product variation is inventory tracked"),
            stock=("product quantity", "product variation quantity"),
            published="product is available",
            category="product category #",
            barcode="product upc",
            gallery=("product media main image url", "product media gallery image url #"),
            images="product variation image url",
            option="product variation option *",
        ),
        kinds={
            "product variation": "variant",
            "product option": "extra",
            "product file": "extra",
        },
        inherited=frozenset({"price"}),
    ),
    Shop(
        name="BigCommerce",
        marks=marks("item type;product name;product code/sku", "item;name;sku;inventory tracking"),
        columns=roles(
            kind=("item type", "item"),
            id=("product id", "id"),
            sku=("product code/sku", "sku"),
            name=("product name", "name"),
            option="options",
            description=("product description", "description"),
            price="price",
            sale_price="sale price",
            tracker=("track inventory", "inventory tracking"),
            stock=("current stock level", "stock level", "current stock"),
            published=("product visible", "is visible"),
            category=("category", "categories"),
            barcode=("product upc/ean", "upc/ean", "gtin"),
            gallery=("product image file #", "internal image url", "image url"),
            images="variant image url",
        ),
        kinds={"sku": "variant", "variant": "variant", "rule": "extra", "image": "extra"},
        lists=";",
        inherited=frozenset({"price", "tracker"}),
        option_value=r"(?:\[[A-Z]+\][^=,]*=|\bValue=)([^,|]+)",  # [S]Size=L, or Name=Size|Value=L
        is_followed=True,
    ),
    Shop(
        name="PrestaShop",
        marks=marks("active;name;reference"),
        columns=roles(
            id=("product id", "id"),
            published="active",
            name="name",
            category="categories",
            price="price tax included",
            net_price=(
                *("price tax excluded", "price tax excl.", "price tax exclued"),
                "price tax excluded or price tax included",
            ),
            sku="reference",
            barcode=("ean13", "upc"),
            stock="quantity",
            description=("summary", "short description", "description"),
            images="image urls",
        ),
        lists=",;",
        levels="",
    ),
    Shop(
        name="Magento",
        marks=marks("sku;product type;product online"),
        columns=roles(
            sku="sku",
            view="store view code",
            kind="product type",
            category="categories",
            name="name",
            description=("short description", "description"),
            published="product online",
            price="price",
            sale_price="special price",
            sale_dates=(
                *("special price from date", "special price to date"),
                *("special from date", "special to date"),
            ),
            images=("base image", "additional images"),
            stock="qty",
            in_stock="is in stock",
            tracker="manage stock",
            oversold="allow backorders",
        ),
        kinds={"grouped": "group", "bundle": "group", "configurable": "group"},
        lists=",",
        top_category="Default Category",
        empty_tracker_is_untracked=False,
    ),
    Shop(
        name="Square",
        marks=marks("item name;variation name;price"),
        columns=roles(
            id=("token", "reference handle"),
            name=("item name",),
            option=("variation name",),
            description="description",
            sku="sku",
            barcode="gtin",
            price="price",
            stock="current quantity *",
            category=("reporting category", "categories", "category"),
        ),
        lists=",",
        levels=">",
    ),
    Shop(
        name="Squarespace",
        marks=marks("title;sku;price;hosted image urls"),
        columns=roles(
            id="variant id",
            name="title",
            description="description",
            sku="sku",
            option="option value #",
            price="price",
            sale_price="sale price",
            on_sale="on sale",
            stock="stock",
            category="categories",
            published="visible",
            gallery="hosted image urls",
        ),
        lists=",",
        is_followed=True,
    ),
    Shop(
        name="Wix",
        marks=marks("handleid;fieldtype;name;price", "handle;fieldtype;name;price"),
        columns=roles(
            handle=("handleid", "handle"),
            kind="fieldtype",
            name="name",
            description="description",
            gallery=("productimageurl", "media"),
            sku="sku",
            price="price",
            surcharge="surcharge",
            published="visible",
            stock="inventory",
            category="collection",
            option="productoptiondescription#",
        ),
        kinds={"variant": "variant", "choice": "extra"},
        lists=";",
        levels="",
        inherited=frozenset({"price"}),
    ),
    Shop(
        name="Etsy",
        marks=marks("title;price;currency code;image#"),
        columns=roles(
            name="title",
            description="description",
            price="price",
            currency="currency code",
            stock="quantity",
            images="image#",
            sku="sku",
        ),
    ),
    Shop(
        name="Google Merchant Center",
        marks=marks("id;title;link;price;availability"),
        columns=roles(
            id="id",
            name="title",
            description="description",
            price="price",
            sale_price="sale price",
            sale_dates="sale price effective date",
            in_stock="availability",
            stock="quantity",
            barcode="gtin",
            category="product type",
            images=("image link", "additional image link"),
        ),
        levels=">",
    ),
    Shop(
        name="CS-Cart",
        marks=marks("product code;language;product id;price", "product code;language;price"),
        columns=roles(
            sku="product code",
            view="language",
            id=("product id",),
            name="product name",
            category="category",
            price="price",
            stock="quantity",
            published="status",
            description=("short description", "description"),
            images=("detailed image", "thumbnail"),
        ),
        lists=";",
        levels="/",
    ),
)
