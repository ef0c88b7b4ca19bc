"""Say in a language what the reader of tables and the operations say of rows, and give its code.

Their sentences are in English, for programs and the command line. They are known by their beginning
and form. A sentence that is not known stays as it is.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from chalicelib.lib import po_files
from chalicelib.lib.localized import LANGUAGES, Language

LOCALE = Path(__file__).parent / "locale"  # has one folder of PO files per language
UNKNOWN = "other"
"""The code of a sentence that is not known."""
Form = Language | None
"""What a table of refused rows is for: a person who reads a language, or None: a program."""
FORMS: tuple[Form, ...] = (None, *LANGUAGES)
_FIELD = r"(?P<field>sku|id|name|price|stock|barcode|category|images|status|email|phone|externalId"
_FIELD += r"|durationMin|description|birthday|tags|notes)"
_SENTENCES: Mapping[str, str] = {
    "required": rf"{_FIELD}: is required(?: for a new service)?",
    "not_a_number": rf'{_FIELD}: expected a (?:whole )?number, received "(?P<text>.*)"',
    "ambiguous_number": rf'{_FIELD}: expected .*, received "(?P<text>.*)", which may mean either',
    "too_many_decimals": rf'{_FIELD}: expected whole kopecks.*, received "(?P<text>.*)"',
    "other_currency": r"price: expected rubles, received (?P<text>[^.]*)\..*",
    "not_a_duration": r'durationMin: expected a length .*, received "(?P<text>.*)"',
    "unknown_status": r'status: expected .*, received "(?P<text>.*)"',
    "wrong_phone": r'phone: expected .*such as (?P<example>.*), received "(?P<text>.*)"',
    "repeated_key": rf"{_FIELD}: expected once in the table, also in rows (?P<rows>.*)",
    "repeated_contact": rf"{_FIELD}: row (?P<row>\d+) has it, too",
    "no_contact": r"(?:.*; )?email: expected an e-mail address, a phone or an id, .*",
    "no_email": r"email: (?P<text>.*) left out, which is no e-mail address",
    "no_year": r"birthday: (?P<text>.*) left out, as it has no year",
    "either_order": r"birthday: (?P<text>.*) left out, as either number may be .*",
    "no_date": r"birthday: (?P<text>.*) left out, which is no date from 1900 .*",
    "day_first": r'The dates in "(?P<text>.*)" are read with the day first, .*',
    "month_first": r'The dates in "(?P<text>.*)" are read with the month first, .*',
    "duplicate_client": r"Another client, \S+, has this \w+\. .*",
    "repeated_item": r"Several items name this client\. .*",
    "too_many_cells": r"expected at most (?P<most>\d+) cells, received (?P<count>\d+)",
    "barcode": r"barcode: (?:left out: .*|.* left out, as a product has one)",
    "one_category": r"category: (?P<text>.*) left out, as a product has one",
    "several_categories": r'category: several are named "(?P<text>[^"]*)";.*',
    "uncounted": r"stock: (?P<text>\S+) left out, as the shop .*",
    "sold_out": r"stock: (?P<text>.*) is read as 0, as it is sold out",
    "read_as": rf"{_FIELD}: (?P<text>.*) is read as (?P<value>.*)",
    "sum": r"stock: (?P<value>\S+) is the sum of (?P<count>\d+) places",
    "sale_price": r"price: (?P<text>\S+) is the sale price, and (?P<value>.*) the .*",
    "no_sale": r"price: (?P<text>\S+) left out, a sale price .*",
    "images": r"images: (?P<text>.*) left out.*",
    "no_own_price": r".*: expected a product with a price, received one that consists of .*",
    "incomplete_product": r"A new product needs a .*",
    "total": r"Row (?P<row>\d+) is a total, so it is left out\.",
    "category_numbers": r"The categories are numbers of .*",
    "translations": r"Rows that are translations, left out: (?P<count>\d+)\.",
    "no_stock": r"The stock is 0 in all rows, .*",
    "net": r'The prices in "(?P<text>.*)" may be without tax\.',
    "made_skus": r"No column has SKUs, so they are made from the names\.",
    "sheet": r'The sheet "(?P<text>.*)" is read\. Left out: (?P<others>.*)\.',
    "contacts": r"These are contacts \(vCard\), .*",
    "too_many": r"The table has (?P<count>\S+) rows, but .* is (?P<most>\S+)\. .*",
    "too_large": r"(?:A sheet reaches to row|The workbook (?:takes|has)) .*",
    "protected": r"The workbook is protected .*",
    "no_rows": r"the table has no rows",
    "empty": r"The (?:file is empty|workbook has no cells)\..*",
    "no_table": r"(?:This is|This file is|The workbook) .*",
}


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {key: re.compile(pattern, re.DOTALL) for key, pattern in _SENTENCES.items()}


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "imports")


def code_of(sentence: str) -> str:
    """Return the code of a sentence about a row, a table or a file, or ``UNKNOWN``."""
    return next((key for key, form in _patterns().items() if form.fullmatch(sentence)), UNKNOWN)


def translated(language: Language, sentence: str) -> str:
    """Return a sentence about a row, a table or a file in a language."""
    texts = _catalogue(language).texts
    for key, pattern in _patterns().items():
        if match := pattern.fullmatch(sentence):
            facts = {name: text or "" for name, text in match.groupdict().items()}
            name = facts.get("field", "")
            facts["field"] = str(texts.get(f"field_{name}", name))
            return str(texts[key]).format(**facts)
    return sentence


def field_name(language: Language, field: str) -> str:
    """Return what a person calls a field of an import."""
    return str(_catalogue(language).texts[f"field_{field}"])


def report_columns(form: Form, *, has_sku: bool) -> tuple[str, ...]:
    """Return the columns that a table of refused rows has before those of the imported table."""
    if form is None:
        return ("row", "sku", "code", "reason") if has_sku else ("row", "code", "reason")
    names = ("row", "sku", "reason") if has_sku else ("row", "reason")
    texts = _catalogue(form).texts
    return tuple(str(texts[f"report_{name}"]) for name in names)
