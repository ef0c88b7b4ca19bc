"""Say in the language of the page what the reader of tables and the operations say of rows.

Their sentences are in English, for programs, the command line and the table of refused rows. The
page knows them by their beginning and form. One that it does not know stays as it is.
"""

import re
from collections.abc import Mapping

from chalicelib.domains.imports.operations.imports import FIELDS
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.web import texts

__all__ = ["FIELDS", "translated"]
_FIELD = r"(?P<field>sku|id|name|price|stock|barcode|category|images|status|email|phone|externalId"
_FIELD += r"|durationMin|description|birthday|tags|notes)"
_SENTENCES: Mapping[str, str] = {
    "import_says_required": rf"{_FIELD}: is required(?: for a new service)?",
    "import_says_number": rf'{_FIELD}: expected a (?:whole )?number, received "(?P<text>.*)"',
    "import_says_either": rf'{_FIELD}: expected .*, received "(?P<text>.*)", which may mean either',
    "import_says_kopecks": rf'{_FIELD}: expected whole kopecks.*, received "(?P<text>.*)"',
    "import_says_currency": r"price: expected rubles, received (?P<text>[^.]*)\..*",
    "import_says_length": r'durationMin: expected a length .*, received "(?P<text>.*)"',
    "import_says_status": r'status: expected .*, received "(?P<text>.*)"',
    "import_says_phone": r'phone: expected .*such as (?P<example>.*), received "(?P<text>.*)"',
    "import_says_twice": rf"{_FIELD}: expected once in the table, also in rows (?P<rows>.*)",
    "import_says_repeated": rf"{_FIELD}: row (?P<row>\d+) has it, too",
    "import_says_no_contact": r"(?:.*; )?email: expected an e-mail address, a phone or an id, .*",
    "import_says_no_email": r"email: (?P<text>.*) left out, which is no e-mail address",
    "import_says_no_year": r"birthday: (?P<text>.*) left out, as it has no year",
    "import_says_either_order": r"birthday: (?P<text>.*) left out, as either number may be .*",
    "import_says_no_date": r"birthday: (?P<text>.*) left out, which is no date from 1900 .*",
    "import_says_day_first": r'The dates in "(?P<text>.*)" are read with the day first, .*',
    "import_says_month_first": r'The dates in "(?P<text>.*)" are read with the month first, .*',
    "import_says_other_client": r"Another client, \S+, has this \w+\. .*",
    "import_says_cells": r"expected at most (?P<most>\d+) cells, received (?P<count>\d+)",
    "import_says_barcode": r"barcode: (?:left out: .*|.* left out, as a product has one)",
    "import_says_one_category": r"category: (?P<text>.*) left out, as a product has one",
    "import_says_several_categories": r'category: several are named "(?P<text>[^"]*)";.*',
    "import_says_uncounted": r"stock: (?P<text>\S+) left out, as the shop .*",
    "import_says_sold_out": r"stock: (?P<text>.*) is read as 0, as it is sold out",
    "import_says_read_as": rf"{_FIELD}: (?P<text>.*) is read as (?P<value>.*)",
    "import_says_sum": r"stock: (?P<value>\S+) is the sum of (?P<count>\d+) places",
    "import_says_sale_price": r"price: (?P<text>\S+) is the sale price, and (?P<value>.*) the .*",
    "import_says_no_sale": r"price: (?P<text>\S+) left out, a sale price .*",
    "import_says_images": r"images: (?P<text>.*) left out.*",
    "import_says_group": r".*: expected a product with a price, received one that consists of .*",
    "import_says_incomplete": r"A new product needs a .*",
    "import_says_total": r"Row (?P<row>\d+) is a total, so it is left out\.",
    "import_says_category_numbers": r"The categories are numbers of .*",
    "import_says_translations": r"Rows that are translations, left out: (?P<count>\d+)\.",
    "import_says_no_stock": r"The stock is 0 in all rows, .*",
    "import_says_net": r'The prices in "(?P<text>.*)" may be without tax\.',
    "import_says_made_skus": r"No column has SKUs, so they are made from the names\.",
    "import_says_sheet": r'The sheet "(?P<text>.*)" is read\. Left out: (?P<others>.*)\.',
    "import_says_contacts": r"These are contacts \(vCard\), .*",
    "import_says_too_many": r"The table has (?P<count>\S+) rows, but .* is (?P<most>\S+)\. .*",
    "import_says_too_large": r"(?:A sheet reaches to row|The workbook (?:takes|has)) .*",
    "import_says_protected": r"The workbook is protected .*",
    "import_says_no_rows": r"the table has no rows",
    "import_says_empty": r"The (?:file is empty|workbook has no cells)\..*",
    "import_says_no_table": r"(?:This is|This file is|The workbook) .*",
}
_PATTERNS = {key: re.compile(pattern, re.DOTALL) for key, pattern in _SENTENCES.items()}


def translated(request: ConsoleRequest, sentence: str) -> str:
    """Return a sentence about a row, a table or a file in the language of the page."""
    for key, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(sentence):
            facts = {name: text or "" for name, text in match.groupdict().items()}
            label = f"import_field_{facts.get('field')}"
            if texts.has(request.language, label):
                facts["field"] = request.translate(label)
            return request.translate(key, **facts)
    return sentence
