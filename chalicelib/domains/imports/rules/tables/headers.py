"""Headers of columns in the tables of people and spreadsheets, in Russian and English."""

import re
from collections.abc import Mapping
from functools import lru_cache

from chalicelib.core.text import fold

# The role of a column, by its normalised header.
HEADERS: Mapping[str, str] = {
    **dict.fromkeys(("артикул", "sku", "vendor code", "article", "артикул продавца"), "sku"),
    **dict.fromkeys(("код", "код товара", "номенклатура.код"), "id"),
    **dict.fromkeys(("название", "наименование", "товар", "имя", "name", "title"), "name"),
    **dict.fromkeys(("номенклатура", "название товара", "наименование товара"), "name"),
    **dict.fromkeys(("product name", "item name"), "name"),
    **dict.fromkeys(("характеристика", "характеристика номенклатуры"), "option"),
    **dict.fromkeys(("цена", "стоимость", "цена продажи", "розничная цена", "price"), "price"),
    **dict.fromkeys(("штрихкод", "штрих код", "barcode", "ean", "ean13", "gtin"), "barcode"),
    **dict.fromkeys(("баркод", "upc"), "barcode"),
    **dict.fromkeys(("остаток", "количество", "кол во", "наличие", "на складе"), "stock"),
    **dict.fromkeys(("конечный остаток", "свободный остаток", "в наличии"), "stock"),
    **dict.fromkeys(("stock", "quantity", "qty", "in stock"), "stock"),
    **dict.fromkeys(("категория", "раздел", "группа", "category"), "category"),
    **dict.fromkeys(("описание", "description"), "description"),
    **dict.fromkeys(("изображения", "изображение", "картинки", "картинка", "фото"), "images"),
    **dict.fromkeys(("images", "image", "photos", "photo", "image urls"), "images"),
    **dict.fromkeys(("ссылка на главное фото", "ссылки на дополнительные фото"), "images"),
    **dict.fromkeys(("валюта", "currency", "currency code"), "currency"),
    **dict.fromkeys(("статус", "status"), "status"),
}


@lru_cache(maxsize=4096)
def normalised(name: str) -> str:
    """Normalise a header, so that "Цена, ₽", "ЦЕНА (руб.)" and "цена*" become "цена"."""
    bare = re.split(r"[,(\[]", fold(name), maxsplit=1)[0]
    return " ".join(re.sub(r"[-_*#?:№\u2010-\u2015]", " ", bare).split())
