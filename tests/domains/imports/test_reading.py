"""Files of every format are read as tables, or named with what to do."""

import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from chalicelib.domains.imports.flows.reading import read_table
from chalicelib.domains.imports.rules import workbooks
from chalicelib.domains.imports.rules.nouns import Noun
from chalicelib.domains.imports.rules.tables.rows import Table
from chalicelib.domains.imports.rules.tables.table_errors import TableError
from tests.factories.workbooks import ods, xlsx, xlsx_of

HEADER = ["Артикул", "Название", "Цена", "Штрихкод"]


def read(noun: Noun, body: bytes, **more: Any) -> Table:
    return read_table(noun, body, country="RU", **more)


class TestWorkbooks:
    def test_numbers_of_a_workbook_are_read_as_a_person_sees_them(self) -> None:
        body = xlsx([HEADER, ["A-1", "Хлеб", 1299.9, 4601234567893]])
        (row,) = read("products", body).rows
        assert row.item == {
            "sku": "A-1",
            "name": "Хлеб",
            "price": 129_990,
            "barcode": "4601234567893",
        }

    @pytest.mark.parametrize(
        ("names", "delimiter"),
        [
            (["Артикул", "Название"], ";"),
            (["SKU", "Название"], ";"),
            (["SKU", "Name"], ","),
        ],
    )
    def test_a_report_is_separated_as_spreadsheets_of_the_language_do(
        self, names: list[str], delimiter: str
    ) -> None:
        table = read("products", xlsx([names, ["A-1", "Bread"]]))
        assert table.delimiter == delimiter

    def test_rows_count_from_the_top_of_the_sheet(self) -> None:
        body = xlsx([["Прайс"], [], HEADER, ["A-1", "Хлеб", "x", ""]])
        (row,) = read("products", body).rows
        assert row.number == 4
        assert row.fault

    def test_the_sheet_with_known_headers_is_read_and_the_others_are_named(self) -> None:
        body = xlsx([["О нас", "…"]], [HEADER, ["A-1", "Хлеб", 1, ""]], [["secret"]], hidden=[3])
        table = read("products", body)
        assert len(table.rows) == 1
        (note,) = table.notes
        assert (note.facts["text"], note.facts["others"]) == ("Sheet2", "Sheet1")

    def test_a_table_of_libreoffice_is_read_without_its_million_empty_rows(self) -> None:
        empty = (
            '<table:table-row table:number-rows-repeated="1048000">'
            '<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
        )
        table = read("products", ods([HEADER, ["A-1", "Хлеб", "10", ""]], empty))
        assert [row.item["sku"] for row in table.rows] == ["A-1"]

    def test_a_workbook_from_before_2007_is_read_with_its_dates_and_numbers(self) -> None:
        # Gnumeric 1.12.55 has written it (BIFF8), with dates and a phone as numbers of cells.
        table = read("clients", (Path(__file__).parent / "workbooks/clients.xls").read_bytes())
        anna, levin, nobody = table.rows
        assert anna.item == {
            "name": "Анна Каренина",
            "phone": "+7 912 345-67-89",
            "email": "anna@example.com",
            "birthday": "1985-04-12",
            "tags": ["VIP"],
            "notes": "Любит ржаной",
        }
        assert levin.item["phone"] == "89123456780"
        assert nobody.item["birthday"] == "1990-01-31"
        assert nobody.fault
        assert not table.ignored

    @pytest.mark.parametrize(
        "data",
        [
            (
                '<row r="1"><c r="A1"><v>1</v></c></row>'
                '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
            ),
            '<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>1</v></c></row>',
            '<row r="90000"><c r="ALL90000"><v>1</v></c></row>',
        ],
        ids=["corners of a sheet", "last column", "more cells than the maximum"],
    )
    def test_cells_in_far_corners_are_refused_before_the_library_reads_them(
        self, data: str
    ) -> None:
        with pytest.raises(TableError, match="reaches to row"):
            read("products", xlsx_of([data]))

    def test_a_file_that_ends_the_library_s_process_is_refused(
        self,
    ) -> None:
        # The format before XLSX is not counted first, so only the limits of the process remain.
        body = xlsx_of(
            ['<row r="1048576"><c r="XFD1048576"><v>1</v></c><c r="A1"><v>1</v></c></row>']
        )
        hidden = body.replace(b"xl/worksheets/sheet1.xml", b"xl/worksheets/sheet1.XML")
        with pytest.raises(TableError):
            read("products", hidden)

    def test_a_zip_bomb_is_refused_by_what_is_unpacked(self) -> None:
        bomb = BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr("xl/workbook.xml", "<workbook/>")
            with file.open("xl/media/1.bin", "w", force_zip64=True) as part:
                for _ in range(workbooks.MAX_UNPACKED // 2**20 + 1):
                    part.write(bytes(2**20))
        assert len(bomb.getvalue()) < 2_000_000
        with pytest.raises(TableError, match="unpacked"):
            read("products", bomb.getvalue())
        # A directory that lies about the size changes nothing.
        lying = bomb.getvalue().replace(
            (workbooks.MAX_UNPACKED + 2**20).to_bytes(4, "little"), (10).to_bytes(4, "little")
        )
        with pytest.raises(TableError):
            read("products", lying)

    @pytest.mark.parametrize(
        "body",
        [
            b"PK\x03\x04xl/workbook.xml and nothing more",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
            xlsx([HEADER])[:-30],
        ],
        ids=["no zip", "no XLS", "cut off"],
    )
    def test_a_damaged_workbook_is_refused_without_its_bytes(self, body: bytes) -> None:
        with pytest.raises(TableError) as failed:
            read("products", body)
        assert "PK" not in str(failed.value)

    def test_a_feed_is_named_and_never_shown(self) -> None:
        feed = '<?xml version="1.0"?><yml_catalog date="2026-01-01"><shop/></yml_catalog>'
        with pytest.raises(TableError, match="Yandex Market"):
            read("products", feed.encode())


CARDS = (
    "BEGIN:VCARD\r\nVERSION:2.1\r\n"
    "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:=D0=98=D0=B2=D0=B0=D0=BD=D0=BE=D0=B2;=D0=\r\n"
    "=98=D0=B2=D0=B0=D0=BD;;;\r\n"
    "TEL;HOME:84951234567\r\nTEL;CELL;PREF:+7 912 345-67-89\r\n"
    "PHOTO;ENCODING=BASE64;JPEG:/9j/4AAQ\r\n SkZJ\r\n\r\nEND:VCARD\r\n"
    "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada\\, Countess\r\n"
    "item1.TEL;type=CELL:+1 212\r\n  555 0100\r\nNOTE:a\\nb\r\nCATEGORIES:vip,old\r\nEND:VCARD\r\n"
    'BEGIN:VCARD\nVERSION:4.0\nFN:Zed\nTEL;VALUE=uri;TYPE="voice,cell";PREF=1:tel:+44-20-7946-0018\n'
    "EMAIL:zed@example.com\nORG:Bakery;Ovens\nEND:VCARD\n"
    "BEGIN:VCARD\nVERSION:3.0\nFN:Nobody\nADR:;;Street;City;;;\nEND:VCARD\n"
)


class TestContacts:
    def test_cards_of_all_versions_become_clients(self) -> None:
        table = read("clients", CARDS.encode())
        ivan, ada, zed, nobody = table.rows
        assert ivan.item["name"] == "Иван Иванов"
        assert ivan.item["phone"] == "+7 912 345-67-89"
        assert "84951234567" in ivan.item["notes"]
        assert ada.item == {
            "name": "Ada, Countess",
            "phone": "+1 212 555 0100",
            "notes": "a\nb",
            "tags": ["vip", "old"],
        }
        assert (zed.item["phone"], zed.item["email"]) == ("+44-20-7946-0018", "zed@example.com")
        assert nobody.fault
        assert {*table.ignored} == {"photo", "adr", "company"}

    def test_google_contacts_are_recognized(self) -> None:
        header = "First Name,Middle Name,Last Name,Organization Name,Labels,E-mail 1 - Label,"
        header += "E-mail 1 - Value,Phone 1 - Label,Phone 1 - Value,Birthday\n"
        line = "Ada,,Lovelace,,* myContacts ::: VIP,*,ada@example.com ::: a@b.co,Mobile,"
        table = read("clients", (header + line + "+44 20 7946 0018,1915-12-10\n").encode())
        assert table.shop == "Google Contacts"
        (row,) = table.rows
        assert row.item == {
            "name": "Ada Lovelace",
            "email": "ada@example.com",
            "phone": "+44 20 7946 0018",
            "birthday": "1915-12-10",
            "tags": ["VIP"],
            "notes": "a@b.co",
        }

    def test_outlook_contacts_are_recognized(self) -> None:
        raw = (
            '"First Name","Last Name","Company","Home Phone","Mobile Phone","E-mail Address",'
            '"Notes","Categories"\n'
            '"Ada","Lovelace","","","+44 20 7946 0018","ada@example.com","x",""\n'
        )
        table = read("clients", raw.encode())
        assert table.shop == "Outlook"
        assert table.rows[0].item["phone"] == "+44 20 7946 0018"

    def test_yclients_are_recognized_and_visits_are_named(self) -> None:
        raw = "Имя;Телефон;Email;Категории;Последний визит\nАнна;79123456789;;VIP;2026-01-01\n"
        table = read("clients", raw.encode("cp1251"))
        assert table.shop == "YCLIENTS"
        assert table.rows[0].item == {"name": "Анна", "phone": "79123456789", "tags": ["VIP"]}
        assert [*table.ignored] == ["Последний визит"]

    def test_a_row_with_a_contact_of_an_earlier_row_is_refused(self) -> None:
        raw = "name,phone\nA,+79123456789\nB,+79123456780\nC,+7 (912) 345-67-89\n"
        *faults, fault = [row.fault for row in read("clients", raw.encode()).rows]
        assert faults == [None, None]
        assert fault is not None
        assert (fault.code, fault.facts["row"]) == ("repeated_contact", "2")

    def test_columns_are_chosen_by_their_names(self) -> None:
        raw = "Кто,Куда\nАнна,+79123456789\n"
        assert read("clients", raw.encode()).fault
        table = read("clients", raw.encode(), chosen={"Кто": "name", "Куда": "phone"})
        assert table.rows[0].item == {"name": "Анна", "phone": "+79123456789"}


class TestServices:
    def test_a_range_of_prices_is_read_from_its_lower_end(self) -> None:
        raw = "Название;Цена от;Цена до;Длительность\nСтрижка;от 1 500 ₽;2 000;60\n"
        table = read("services", raw.encode())
        assert table.shop == "YCLIENTS"
        assert table.rows[0].item["price"] == 150_000
        assert table.rows[0].notes
        assert [*table.ignored] == ["Цена до"]


def test_a_product_without_an_sku_is_found_by_its_name() -> None:
    raw = "Название;Цена\nРжаной хлеб;120\nРжаной хлеб;130\n"
    table = read("products", raw.encode())
    assert len({row.sku for row in table.rows}) == 1
    assert table.rows[0].sku
    assert all(row.fault for row in table.rows)


def test_a_product_that_shopify_does_not_count_is_not_sold_out() -> None:
    raw = (
        "Title,URL handle,Price,SKU,Inventory tracker,Inventory quantity,Barcode\n"
        "Tee,tee,10.00,T-1,,0,4601234567890\n"
    )
    table = read("products", raw.encode())
    assert table.shop == "Shopify"
    (row,) = table.rows
    assert row.item["stock"] is None
    assert "barcode" not in row.item
    assert row.fault is None
    assert row.notes
