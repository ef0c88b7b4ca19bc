"""Tables of products as CSV in many formats, and reports of refused rows."""

import csv
import io
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from chalicelib.core.wire.schema import wire_name
from chalicelib.domains.catalog.operations.products import ProductOut
from chalicelib.domains.imports.rules.tables.amounts import Prices, number, parse_price
from chalicelib.domains.imports.rules.tables.product_table import (
    EXPORT_COLUMNS,
    Row,
    export_fields,
    read,
    report,
)
from chalicelib.domains.imports.rules.tables.table_errors import CellError, TableError, UnitError
from chalicelib.lib.currencies import RUB
from tests.support.registers import check_register

NBSP, THIN_SPACE, NARROW_NBSP = "\u00a0", "\u2009", "\u202f"


def items(text: str, unit: Any = "rubles") -> list[Any]:
    return [dict(row.item) for row in read(text.encode(), unit).rows]


def faults(text: str, unit: Any = "rubles") -> list[str | None]:
    rows = read(text.encode(), unit).rows
    return [row.fault and row.fault.sentence for row in rows]


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("1 299,90 ₽", "rubles", 129_990),
        (f"1{NBSP}299,90{NARROW_NBSP}руб.", "rubles", 129_990),
        (f"1{THIN_SPACE}299.9 р.", "rubles", 129_990),
        ("1,299.90", "rubles", 129_990),
        ("1.299,90", "rubles", 129_990),
        ("1'299.90", "rubles", 129_990),
        ("1 234 567,89", "rubles", 123_456_789),
        ("0,1", "rubles", 10),
        ("0,29", "rubles", 29),
        ("1.10", "rubles", 110),
        ("99", "rubles", 9900),
        ("99 RUB", "rubles", 9900),
        ("10,00", "rubles", 1000),
        ("10,0000", "rubles", 1000),
        ("0,000", "rubles", 0),
        ("₽ 1 299,90", "rubles", 129_990),
        ("RUB1299.9", "rubles", 129_990),
        ("129990", "kopecks", 129_990),
        ("129 990,00 коп.", "kopecks", 129_990),
        ("-5", "rubles", -500),
        ("\u22125", "kopecks", -5),
    ],
)
def test_amounts_are_read_exactly(text: str, unit: Any, amount: int) -> None:
    assert parse_price(text, Prices.of(unit, RUB)) == amount


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("1,299", "rubles"),  # ambiguous: 1299 rubles, or 1.299
        ("10,000", "rubles"),  # ambiguous: 10000 rubles, or 10
        ("10.000", "kopecks"),
        ("0.001", "rubles"),
        ("12.5", "kopecks"),
        ("", "rubles"),
        ("free", "rubles"),
        ("1,2,3", "rubles"),
        ("1e3", "rubles"),
        ("12 $", "rubles"),
        ("NaN", "rubles"),
        ("١٢", "rubles"),
    ],
)
def test_invalid_amounts_are_refused(text: str, unit: Any) -> None:
    with pytest.raises(CellError, match="expected"):
        parse_price(text, Prices.of(unit, RUB))


def test_numbers_may_have_spaces_between_thousands() -> None:
    assert number(f"1{NBSP}000") == 1000


RUSSIAN = "Артикул;Название;Цена, руб.;Остаток;Штрих-код;Категория;Описание;Изображения;Статус\n"
ENGLISH = "SKU,Name,Price (RUB),Stock,Barcode,Category,Description,Images,Status\n"
ROW = {
    "sku": "A-1",
    "name": "Чай; чёрный",
    "price": 129_990,
    "stock": 12,
    "barcode": "4006381333931",
    "category": "Чай / Чёрный",
    "description": "Две\nстроки",
    "images": [{"url": "https://a.example/1.png"}, {"url": "https://a.example/2.png"}],
    "status": "active",
}
CELLS = (
    *("A-1", "Чай; чёрный", "1299,90", "12", "4006381333931", "Чай / Чёрный", "Две\nстроки"),
    *("https://a.example/1.png | https://a.example/2.png", "Активен"),
)


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1251", "utf-16"])
@pytest.mark.parametrize("header", [RUSSIAN.split(";"), ENGLISH.split(",")])
def test_common_table_formats_are_read(delimiter: str, encoding: str, header: list[str]) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([[*map(str.strip, header)], CELLS])
    table = read(out.getvalue().encode(encoding), "rubles")
    assert [dict(row.item) for row in table.rows] == [ROW]
    assert (table.delimiter, table.ignored, table.rows[0].number) == (delimiter, [], 2)


def test_columns_may_have_any_order_and_unknown_ones_are_reported() -> None:
    table = read("цвет;ЦЕНА (руб.);  Артикул ;;кол-во\nred;7;x;;5\n".encode(), "rubles")
    assert dict(table.rows[0].item) == {"sku": "x", "price": 700, "stock": 5}
    assert table.ignored == ["цвет"]


def test_empty_cells_are_omitted_and_empty_rows_skipped() -> None:
    table = read(b"\n;;\nsku;name;price\nA;;\n;;\n\nB;b;1\n", "kopecks")
    assert [(row.number, dict(row.item)) for row in table.rows] == [
        (4, {"sku": "A"}),
        (7, {"sku": "B", "name": "b", "price": 1}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'sku;name\n="00145";a\n',
        'sku;name\n"=""00145""";a\n',
        "sku;name\n'00145;a\n",
        'sku,name\n"=""00145""",a\n',
        'sku;name\n="00145";="a"\n',
        "sep=;\nsku;name\n00145;a\n",
        "SEP=,\r\nsku,name\r\n00145,a\r\n",
        "sep=\t\nsku\tname\n00145\ta\n",
        "sep=|\nsku|name\n00145|a\n",
        '"sep=;"\n"sku";"name"\n"00145";"a"\n',
        "sep=;;\nsku;name\n00145;a\n",
        "Price list of 1 May\nsku;name\n00145;a\n",
        "Goods, all; new\n;\n;Prices in rubles\nsku;name\n00145;a\n",
        '"Two\nlines";\n;\n\nsku;name\n00145;a\n',
        '"sku";"Product\nname"\n00145;a\n'.replace("Product\nname", "name\n"),
    ],
)
def test_ways_in_which_spreadsheets_write_a_table_are_understood(text: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        rows = read(text.encode(encoding), "rubles").rows
        assert [dict(row.item) for row in rows] == [{"sku": "00145", "name": "a"}]


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ('"Black tea\nCeylon"', "Black tea Ceylon"),
        ('"Black tea \r\n Ceylon\r"', "Black tea Ceylon"),
        ("'-50% today", "-50% today"),
        ("'90s radio", "'90s radio"),
        ("'quoted'", "'quoted'"),
        ('"=""1-2"""', "1-2"),
        ("=1+1", "=1+1"),
    ],
)
def test_a_name_is_read_as_it_was_entered(cell: str, name: str) -> None:
    assert items(f"sku;name\nA;{cell}\n") == [{"sku": "A", "name": name}]


@pytest.mark.parametrize("code", ["4,00638E+12", "4.00638E+12", "1E+05", " 4,00638e+12 ", "1E-07"])
def test_a_code_that_lost_digits_is_refused(code: str) -> None:
    (fault,) = faults(f"name;barcode;sku\na;;{code}\n")
    assert (fault or "").startswith("sku: expected all digits, received")
    assert items("sku;name\n1E5;4,00638E+12\n") == [{"sku": "1E5", "name": "4,00638E+12"}]


def test_a_report_keeps_the_zeros_of_codes_in_a_spreadsheet() -> None:
    table = read(b"sku;barcode;price\n007;00123457;dear\n", "rubles")
    raw = report(table, [(table.rows[0], "price: no number")])
    assert raw.decode("utf-8-sig").splitlines()[1].endswith(';"=""007""";"=""00123457""";dear')
    assert items(raw.decode("utf-8-sig").replace("dear", "1"))[0]["sku"] == "007"


def test_images_may_be_on_separate_lines() -> None:
    imported_items = items('sku;фото\nA;"https://a.example/1,2.png\nhttps://a.example/3.png|"\n')
    assert [image["url"] for image in imported_items[0]["images"]] == [
        "https://a.example/1,2.png",
        "https://a.example/3.png",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("a;b\n", "No column has the header"),
        ("name;price\na;1\n", "name, price"),
        ("sku;Артикул\na;b\n", "Several columns contain sku"),
        ("sku;цена;price\na;1;2\n", "contain price"),
    ],
)
def test_table_with_missing_or_duplicate_columns_is_refused(text: str, expected: str) -> None:
    with pytest.raises(TableError, match=expected):
        read(text.encode(), "rubles")


def test_faults_are_reported_by_row() -> None:
    text = (
        "sku;price;stock;status\nA;dear;1;\n;1;1;\nB;1;half;\nC;1;1;gone\nD;1;1,5;\nE;1;1;;x\n"
        "F;1;1;;\nG;1;1\n"
    )
    faults_found = faults(text)
    assert faults_found[0] == 'price: expected a number, received "dear"'
    assert faults_found[1] == "sku: is required"
    assert faults_found[2] == 'stock: expected a number, received "half"'
    assert faults_found[3] == 'status: expected active or inactive, received "gone"'
    assert faults_found[4] == 'stock: expected a whole number, received "1,5"'
    assert faults_found[5] == "expected at most 4 cells, received 5"
    assert faults_found[6:] == [None, None]


def test_all_rows_that_share_an_sku_are_refused() -> None:
    assert faults("sku;price\nЁж;1\nB;1\nеЖ;2\nёж;3\n") == [
        "sku: expected once in the table, also in rows 4, 5",
        None,
        "sku: expected once in the table, also in rows 2, 5",
        "sku: expected once in the table, also in rows 2, 4",
    ]


def test_a_corrected_report_can_be_imported() -> None:
    table = read("артикул;цена;цвет\nA;dear;red\nB;1;blue\n".encode(), "rubles")
    (first, _) = table.rows
    raw = report(table, [(first, 'price: expected a number, received "dear"')])
    assert raw.startswith(b"\xef\xbb\xbfrow;sku;reason;")
    (line,) = csv.DictReader(io.StringIO(raw.decode("utf-8-sig")), delimiter=";")
    assert (line["row"], line["sku"], line["цвет"]) == ("2", "A", "red")
    corrected = read(raw.replace(b"dear" + b";red", b"5;red"), "rubles")
    assert [dict(row.item) for row in corrected.rows] == [{"sku": "A", "price": 500}]


def test_the_sku_of_a_row_is_empty_if_the_row_has_none() -> None:
    assert Row(2, []).sku == ""


def test_an_exported_table_has_a_column_for_every_field_of_a_product() -> None:
    columns = {to_camel(name.partition(" (")[0].replace(" ", "_")) for name in EXPORT_COLUMNS}
    fields = {wire_name(ProductOut, name) for name in ProductOut.model_fields}
    check_register(
        columns - {"category"},
        declared=fields - {"descriptionTruncated"},
        place="EXPORT_FIELDS of chalicelib/domains/imports/rules/tables/product_table.py",
        line="a column named as the field",
    )


class TestCurrencies:
    @pytest.mark.parametrize(
        ("text", "currency", "amount"),
        [
            ("1500", "JPY", 1_500),
            ("¥1,500", "JPY", 1_500),
            ("1,234,500", "JPY", 1_234_500),
            ("1500.00", "JPY", 1_500),
            ("£12.50", "GBP", 1_250),
            ("12,50 EUR", "EUR", 1_250),
            ("1.299,90 €", "EUR", 129_990),
            ("CA$5", "CAD", 500),
            ("1.500", "KWD", 1_500),
            ("1.5 KWD", "KWD", 1_500),
        ],
    )
    def test_a_price_has_the_digits_of_its_currency(
        self, text: str, currency: str, amount: int
    ) -> None:
        assert parse_price(text, Prices(currency)) == amount

    @pytest.mark.parametrize(
        ("text", "currency"),
        [
            ("12.5", "JPY"),
            ("12.505", "GBP"),
            ("1,500", "GBP"),  # 1500 or 1.50
            ("1,500", "KWD"),
            ("1.5005", "KWD"),
            ("12 ₽", "GBP"),
            ("$12", "GBP"),
        ],
    )
    def test_a_price_that_the_currency_does_not_have_is_refused(
        self, text: str, currency: str
    ) -> None:
        with pytest.raises(CellError):
            parse_price(text, Prices(currency))

    def test_an_exported_table_is_refused_in_another_currency(self) -> None:
        head = ",".join(export_fields("GBP"))
        row = ",".join(["", "S-1", "Tea", "12.50", *[""] * (len(EXPORT_COLUMNS) - 4)])
        raw = f"{head}\r\n{row}\r\n".encode()
        assert read(raw, None, "GBP").rows[0].item["price"] == 1_250
        for currency in ("RUB", "EUR", "JPY"):
            with pytest.raises(UnitError):
                read(raw, None, currency)

    def test_a_table_in_rubles_is_refused_in_another_currency(self) -> None:
        with pytest.raises(UnitError):
            read(b"sku;name;price\nA;a;1\n", "rubles", "GBP")
        assert read(b"sku;name;price\nA;a;1\n", "major", "KWD").rows[0].item["price"] == 1_000

    def test_a_column_of_the_currency_is_compared_with_the_workspaces(self) -> None:
        raw = b"sku;name;price;currency\nA;a;5;GBP\nB;b;5;RUB\n"
        first, second = read(raw, "major", "GBP").rows
        assert (first.fault, bool(second.fault)) == (None, True)
