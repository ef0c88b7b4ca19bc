"""Import of exported tables that a spreadsheet has opened and saved."""

import csv
import io
import os
import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Api, Owner
from tests.factories.operator import Operator
from tests.factories.products import EAN, create, create_category, list_products, read
from tests.support.effort import examples

pytestmark = pytest.mark.usefixtures("reload_settings")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The path of the table."""
    return tmp_path / "goods.csv"


def export(operator: Operator, owner: Owner, path: Path) -> None:
    operator.run("export-products", "--workspace", owner.workspace.id, "--csv", str(path))


def imported(operator: Operator, owner: Owner, path: Path, *more: str) -> dict[str, Any]:
    return operator.run(
        *("import-products", "--workspace", owner.workspace.id, "--csv", str(path), *more)
    )


def retyped(cell: str) -> str:
    """Return a cell as Excel in Russian shows it, which is what a CSV file gets."""
    text = cell.strip()
    if re.fullmatch(r"[+-]?\d+([.,]\d+)?(e[+-]?\d+)?", text, re.IGNORECASE):
        number = float(text.replace(",", "."))
        displayed = (
            f"{number:.5E}" if abs(number) >= 1e11 or "e" in text.lower() else f"{number:.10g}"
        )
        return displayed.replace(".", ",")
    if day := re.fullmatch(r"(\d\d?)[-/.](\d\d?)", text):
        return f"{int(day[1]):02}.{int(day[2]):02}.2027"
    if re.fullmatch(r"(\d\d?[- ])?(mar|may|sept|мар)[a-zа-я]*[- ]?\d*", text, re.IGNORECASE):
        return "01.03.2027"
    if text.lower() in {"true", "false", "истина", "ложь"}:
        return text.upper()
    return re.sub(r"\r\n?", "\n", cell)


def save_again(path: Path, delimiter: str = ";", encoding: str = "utf-8-sig") -> None:
    """Write a table as a spreadsheet does that has opened it and saved it as CSV."""
    text = path.read_bytes().decode("utf-8-sig")
    rows = csv.reader(io.StringIO(text, newline=""))
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(
        [retyped(cell) for cell in row] for row in rows
    )
    path.write_bytes(out.getvalue().encode(encoding))


SOFFICE = os.environ.get("SOFFICE", "")
"""The path of LibreOffice, if there is one."""
needs_libreoffice = pytest.mark.skipif(
    not SOFFICE, reason="No LibreOffice. make test-clients runs this, and installs it if apt can."
)
DEFAULTS = ""
"""Options of LibreOffice when it opens a CSV file by a double click."""
SPECIAL_NUMBERS = "Text - txt - csv (StarCalc):44,34,76,1,,{language},false,true"
"""Options that also read dates, percentages and truth values of a language (LCID)."""


def save_with_libreoffice(path: Path, reading: str) -> None:
    """Open a table in LibreOffice and save it as CSV, cells as they are shown."""
    folder = path.parent / "saved"
    options = [f"--infilter={reading}"] if reading else []
    profile = f"-env:UserInstallation={(path.parent / 'profile').as_uri()}"
    saving = "csv:Text - txt - csv (StarCalc):59,34,76,1,,0,false,true" if reading else "csv"
    command = [SOFFICE, profile, "--headless", *options, "--convert-to", saving, "--outdir"]
    subprocess.run([*command, str(folder), str(path)], check=True, capture_output=True, timeout=120)
    path.write_bytes((folder / path.name).read_bytes())


def full_products(api: Api) -> list[Any]:
    return [read(api, product) for product in list_products(api)]


CODES = (
    *("00123", "123", "4006381333931", "1E5", "1e-3", "1,5", "10.50", "1-2", "3/4", "12.10"),
    *("MAR1", "SEPT2", "1-Mar", "true", "ЛОЖЬ", "5%", "'007", '="007"', "12:30", "\\7", "-7"),
    *("2027-01-18", "1 000", "100 руб.", "$5", "5 мая", "-", "A-1"),
)
Save = Callable[[Path], None]


def save_as(delimiter: str, encoding: str) -> Save:
    return lambda path: save_again(path, delimiter, encoding)


@pytest.mark.parametrize(
    "save",
    [
        pytest.param(save_as(";", "utf-8-sig"), id="excel"),
        pytest.param(save_as(",", "utf-8"), id="commas"),
        pytest.param(save_as("\t", "utf-16"), id="unicode"),
        pytest.param(
            partial(save_with_libreoffice, reading=DEFAULTS),
            id="libreoffice",
            marks=needs_libreoffice,
        ),
        *(
            pytest.param(
                partial(save_with_libreoffice, reading=SPECIAL_NUMBERS.format(language=lcid)),
                id=f"libreoffice-{name}",
                marks=needs_libreoffice,
            )
            for name, lcid in (("english", 1033), ("russian", 1049), ("german", 1031))
        ),
    ],
)
def test_a_table_that_a_spreadsheet_saved_changes_nothing(
    save: Save, operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    for number, code in enumerate(CODES):
        folder = create_category(api, code, slug=f"c{number}")
        create(api, code, number, sku=code, description=f"{code}\r\nб", categoryId=folder)
    create(api, '😀, "b"; c|d', 10**9 + 1, description=" \ufeff<b>\rя\n\n ", stock=10**9)
    for barcode in (EAN, "036000291452", "00012348"):
        create(api, "No SKU", barcode=barcode, stock=0)
    export(operator, owner, table)
    save(table)
    old_products = full_products(api)
    printed = imported(operator, owner, table)
    assert (printed["unchanged"], printed["failed"]) == (len(old_products), 0)
    assert full_products(api) == old_products


TEXT = st.text("0123456789.,-/:% eEma'\\=\"\r\nя", min_size=1, max_size=12).filter(str.strip)


@examples(40)
@given(texts=st.lists(TEXT, min_size=1, max_size=6), saves=st.integers(1, 2))
def test_no_string_changes_in_a_spreadsheet(
    texts: list[str], saves: int, operator: Operator, new_owner: Any, table: Path
) -> None:
    owner = new_owner()
    api = owner.api()
    for number, text in enumerate(texts):
        line = re.sub(r"[\r\n]", " ", text).strip() or "x"
        create(api, line, sku=f"{line}{number}", description=text)
    export(operator, owner, table)
    text = table.read_bytes()
    save_again(table, ",")
    if saves == 2:
        save_again(table, ",")
    old_products = full_products(api)
    printed = imported(operator, owner, table)
    assert (printed["unchanged"], printed["failed"]) == (len(texts), 0), text
    assert full_products(api) == old_products


class TestTablesOfFormerExports:
    """Their codes were not marked as strings."""

    @pytest.fixture
    def products(self, api: Api) -> list[dict[str, Any]]:
        """Products whose SKUs a spreadsheet rewrites."""
        return [
            create(api, "A", sku="00123", barcode="036000291452"),
            create(api, "B", sku="0123"),
            create(api, "C", sku="4006381333931"),
        ]

    def write(self, table: Path, products: list[dict[str, Any]], *rows: str) -> None:
        """Write a table of ids and what the rows say of SKU, name, price and barcode."""
        lines = [f"{product['id']};{row}" for product, row in zip(products, rows, strict=False)]
        header = "id;sku;name;price (kopecks);barcode"
        table.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8-sig")

    def test_the_id_names_the_product_whose_sku_lost_its_zeros(
        self, products: Any, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        old_products = full_products(api)
        self.write(table, products, "123;A;100;36000291452", "123;B;100;")
        assert imported(operator, owner, table)["unchanged"] == 2
        assert full_products(api) == old_products
        self.write(table, products, "123;New;100;", "123;B;250;")
        assert imported(operator, owner, table)["updated"] == 2
        assert [
            (product["name"], product["sku"], product["price"]) for product in full_products(api)
        ] == [
            ("New", "00123", 100),
            ("B", "0123", 250),
            ("C", "4006381333931", 100),
        ]

    @pytest.mark.parametrize("code", ["4,00638E+12", "4.00638E+12", "\\4,00638E+12"])
    def test_a_shortened_sku_is_refused_and_changes_nothing(
        self, code: str, products: Any, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        old_products = full_products(api)
        self.write(table, products, "00123;A;100;", "0123;B;100;", f"{code};C;250;")
        printed = imported(operator, owner, table)
        assert (printed["unchanged"], printed["failed"]) == (2, 1)
        assert "expected all digits" in Path(printed["report"]).read_text(encoding="utf-8-sig")
        assert full_products(api) == old_products

    def test_edited_sku_is_stored_unless_it_is_taken(
        self, products: Any, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        self.write(table, products, "NEW-1;A;100;", "4006381333931;B;100;", ";C;7;")
        dry = imported(operator, owner, table, "--dry-run")
        assert (dry["wouldUpdate"], dry["failed"]) == (2, 1)
        printed = imported(operator, owner, table)
        assert (printed["updated"], printed["created"], printed["failed"]) == (2, 0, 1)
        assert "Another product has this SKU" in Path(printed["report"]).read_text()
        assert [(product["sku"], product["price"]) for product in full_products(api)] == [
            ("NEW-1", 100),
            ("0123", 100),
            ("4006381333931", 7),
        ]
        assert api.get("/api/products/list?sku=new-1")["total"] == 1

    def test_in_another_workspace_the_sku_names_the_product(
        self, products: Any, operator: Operator, new_owner: Any, table: Path
    ) -> None:
        other = new_owner()
        mine = create(other.api(), "Mine", sku="NEW")
        self.write(table, products, "new;Theirs;7;", "123;B;100;", "123;C;100;")
        printed = imported(operator, other, table)
        assert (printed["updated"], printed["created"], printed["failed"]) == (1, 0, 2)
        assert "also in rows 4" in Path(printed["report"]).read_text(encoding="utf-8-sig")
        assert read(other.api(), mine)["name"] == "Theirs"

    def test_repeated_and_damaged_ids_are_refused(
        self, products: Any, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        first = products[0]
        self.write(table, [first, first, {"id": "0"}], "1;A;1;", "2;A;2;", "00123;A;3;")
        printed = imported(operator, owner, table)
        assert printed["failed"] == 3
        assert full_products(api) == products


def test_columns_of_an_exported_table_may_be_moved_removed_and_added(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    product = create(api, "=A", sku="007", stock=3)
    table.write_text(
        f"Stock take of May;;\nmargin;name;stock;id;\n1;\\=A;5;{product['id']};\n2;;;;\n",
    )
    result = operator.invoke(
        *("import-products", "--workspace", owner.workspace.id, "--csv", str(table))
    )
    assert "mean nothing here: margin." in result.stderr
    (new_product,) = full_products(api)
    assert (new_product["stock"], new_product["name"], new_product["sku"]) == (5, "=A", "007")
