"""``import-products`` imports a table of products once or repeatedly."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.engine import audit
from infra.operator import admin as command_line
from tests.conftest import Api, Owner, all_rows
from tests.factories.operator import Operator
from tests.factories.products import IMAGE_SERVER, create_category, list_products, serve_images
from tests.factories.workbooks import xlsx
from tests.fakes.internet import Internet, Server

pytestmark = pytest.mark.usefixtures("reload_settings")


@pytest.fixture
def image_server(net: Internet) -> Server:
    """A server of images."""
    return serve_images(net)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The path of the table to import."""
    return tmp_path / "goods.csv"


def words(owner: Owner, path: Path, *more: str, prices: str = "rubles") -> tuple[str, ...]:
    workspace = ("--workspace", owner.workspace.id)
    return ("import-products", *workspace, "--csv", str(path), "--prices", prices, *more)


def reported(printed: Any) -> list[dict[str, str]]:
    text = Path(printed["report"]).read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text), delimiter=";"))


class TestImportProducts:
    def test_import_creates_and_updates_products(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        bread = create_category(api, "Хлеб", parentId=create_category(api, "Выпечка"))
        table.write_text(
            "Артикул;Название;Цена;Остаток;Категория\n"
            "A;Ржаной;1 299,90 руб.;5;хлеб\n"
            "B;Белый;99;;Выпечка / Хлеб\n",
            encoding="cp1251",
        )
        printed = operator.run(*words(owner, table))
        assert printed | {"seconds": 0} == {
            "created": 2,
            "updated": 0,
            "unchanged": 0,
            "failed": 0,
            "categoriesCreated": 0,
            "calls": 1,
            "seconds": 0,
            "report": None,
        }
        first, second = list_products(api)
        assert (first["name"], first["price"], first["stock"]) == ("Ржаной", 129_990, 5)
        assert [p["categoryId"] for p in (first, second)] == [bread, bread]
        assert second["stock"] is None
        (audit_event,) = [
            row for row in audit.latest(owner.workspace.id) if row.actor == "operator"
        ][:1]
        assert audit_event.operation == "upsert_products"

        table.write_text("sku;price\na;7,50\nB;99\n")
        printed = operator.run(*words(owner, table))
        assert (printed["created"], printed["updated"], printed["unchanged"]) == (0, 1, 1)
        product = list_products(api)[0]
        assert product | {"updatedAt": ""} == first | {"price": 750, "updatedAt": ""}

    def test_dry_run_changes_nothing_and_reports_the_outcome(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        table.write_text("sku;name;price;category\nA;a;1;New / Deep\nB;b;x;New\nC;c;1;New\n")
        old_rows = all_rows()
        printed = operator.run(*words(owner, table, "--dry-run", "--create-categories"))
        assert all_rows() == old_rows
        assert (printed["wouldCreate"], printed["failed"]) == (2, 1)
        assert printed["categoriesCreated"] == 2
        assert "created" not in printed
        assert len(reported(printed)) == 1

    def test_unknown_and_ambiguous_categories_are_refused_rows(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        for above in ("Чай", "Кофе"):
            create_category(api, "Зёрна", parentId=create_category(api, above))
        table.write_text("sku;name;price;category\nA;a;1;зерна\nB;b;1;Сыр\nC;c;1;чай/ зёрна\n")
        printed = operator.run(*words(owner, table))
        assert (printed["created"], printed["failed"]) == (1, 2)
        ambiguous, unknown = (line["reason"] for line in reported(printed))
        assert "write the path" in ambiguous
        assert "--create-categories" in unknown
        second_import = operator.run(*words(owner, table, "--create-categories"))
        assert (
            second_import["created"],
            second_import["unchanged"],
            second_import["categoriesCreated"],
        ) == (1, 1, 1)

    def test_import_creates_each_missing_category_once(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        create_category(api, "Чай")
        table.write_text(
            "sku;name;price;category\n"
            "A;a;1;Чай / Чёрный / Цейлон\nB;b;1;чай/чёрный\nC;c;1;Кофе\nD;d;1;A/B/C/D/E/F\n"
        )
        printed = operator.run(*words(owner, table, "--create-categories"))
        tree = api.get("/api/categories/list?kind=product")["categories"]
        by_id = {category["id"]: category["name"] for category in tree}
        assert sorted(by_id.values()) == sorted(["Чай", "Чёрный", "Цейлон", "Кофе", *"ABCDE"])
        assert [by_id[p["categoryId"]] for p in list_products(api)] == ["Цейлон", "Чёрный", "Кофе"]
        assert (printed["failed"], printed["categoriesCreated"]) == (1, 8)
        assert "5 levels" in reported(printed)[0]["reason"]

    def test_rows_that_the_service_refuses_are_reported(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        table.write_text(
            f"sku;name;price;barcode\nA;{'x' * 256};1;\nB;b;-1;\nC;;1;\n{'S' * 65};e;1;\nF;f;1;\n"
        )
        printed = operator.run(*words(owner, table))
        assert (printed["created"], printed["failed"]) == (1, 4)
        lines = reported(printed)
        assert [line["row"] for line in lines] == ["2", "3", "4", "5"]
        reasons = [line["reason"] for line in lines]
        for part, reason in zip(("name", "price", "needs a name", "sku"), reasons, strict=True):
            assert part in reason
        report = Path(printed["report"])
        assert report.name == "goods.refused.csv"
        fixed = report.read_text(encoding="utf-8-sig").replace(";-1;", ";1;")
        report.write_text(fixed, encoding="utf-8-sig")
        second_import = operator.run(*words(owner, report))
        assert (second_import["created"], second_import["failed"]) == (1, 3)

    def test_import_fetches_images_and_reports_failures(
        self,
        operator: Operator,
        owner: Owner,
        api: Api,
        table: Path,
        image_server: Server,
    ) -> None:
        table.write_text(
            f"sku;name;price;images\nA;a;1;{IMAGE_SERVER}/1.png|{IMAGE_SERVER}/none.png\n"
        )
        result = operator.invoke(*words(owner, table))
        assert result.exit_code == 0, result.output
        assert "Row 2 (A): " in result.stderr
        assert "none.png" in result.stderr
        assert len(list_products(api)[0]["images"]) == 1

    def test_interrupted_import_reports_its_position_and_can_be_repeated(
        self,
        operator: Operator,
        owner: Owner,
        api: Api,
        table: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        rows = "".join(f"S{n};n{n};1\n" for n in range(150))
        table.write_text(f"sku;name;price\n{rows}bad;;x\n")
        call, calls = command_line.call, iter(range(9))

        def breaks(operation: str, *args: Any, **more: Any) -> Any:
            if operation == "upsert_products" and next(calls) == 1:
                raise UnavailableError
            return call(operation, *args, **more)

        with monkeypatch.context() as broken:
            broken.setattr(command_line, "call", breaks)
            result = operator.invoke(*words(owner, table))
        assert (result.exit_code, result.stdout) == (1, "")
        assert "Stopped after 100 of 151 rows" in result.stderr
        printed = operator.run(*words(owner, table))
        assert (printed["created"], printed["unchanged"], printed["failed"]) == (50, 100, 1)

    def test_unusable_table_is_refused_in_one_line(
        self, operator: Operator, owner: Owner, table: Path
    ) -> None:
        table.write_text("name\na\n")
        assert "header sku" in operator.run_failing(*words(owner, table))
        table.write_text("sku\na\n")
        assert "--prices" in operator.run_failing(*words(owner, table)[:-2])
        assert "overwrite" in operator.run_failing(*words(owner, table, "--report", str(table)))
        line = ("import-products", "--workspace", "nowhere", "--csv", str(table))
        assert "nowhere" in operator.run_failing(*line, "--prices", "rubles")


def shop(count: int, faulty: int) -> str:
    """Return a table of products, with rows for every kind of error."""
    lines = ["Артикул;Название;Цена;Остаток;Штрихкод;Категория"]
    faults = (
        "{sku};Товар {n};дорого;1;;Хлеб",
        "{sku};Товар {n};10;пять;;Хлеб",
        "{sku};;10;1;;Хлеб",
        "{sku};Товар {n};-10;1;;Хлеб",
        ";Товар {n};10;1;;Хлеб",
    )
    for n in range(count):
        row = "{sku};Товар {n};1 {price},90;{n};;Хлеб"
        if n % (count // faulty) == 0:
            row = faults[n // (count // faulty) % len(faults)]
        lines.append(row.format(sku=f"T-{n:04}", n=n, price=f"{n:03}"))
    return "\n".join(lines)


@pytest.mark.dynamodb  # half a minute on moto
def test_five_hundred_rows_of_which_twenty_are_faulty(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    table.write_text(shop(500, 20), encoding="cp1251")
    printed = operator.run(*words(owner, table, "--create-categories"))
    assert (printed["created"], printed["failed"], printed["calls"]) == (480, 20, 5)
    lines = reported(printed)
    assert [int(line["row"]) for line in lines] == list(range(2, 502, 25))
    assert all(line["reason"] for line in lines)
    products = api.get("/api/products/list?size=1&sort=price&sortDir=desc")
    assert (products["total"], products["products"][0]["price"]) == (480, 149_990)
    second_import = operator.run(*words(owner, table))
    assert (second_import["created"], second_import["updated"], second_import["unchanged"]) == (
        0,
        0,
        480,
    )


def test_categories_of_other_workspaces_are_unknown(
    operator: Operator, owner: Owner, new_owner: Any, table: Path
) -> None:
    create_category(new_owner().api(), "Хлеб")
    table.write_text("sku;name;price;category\nA;a;1;Хлеб\n")
    assert operator.run(*words(owner, table))["failed"] == 1


SHOPIFY = """Handle,Title,Body (HTML),Vendor,Type,Tags,Published,Option1 Name,Option1 Value,\
Option2 Name,Option2 Value,Variant SKU,Variant Inventory Qty,Variant Price,Variant Barcode,\
Image Src,Image Position,Variant Image,Status
mug,Mug,"<p>A <b>large</b> mug.</p><script>x()</script>",Mill,Kitchen,"gift, new",true,\
Color,Red,Size,L,MUG-R,5,1299.90,4006381333931,{photo},1,,active
mug,,,,,,,,Blue,,S,,-3,1199.00,,{other},2,,
tea,Black tea,Loose leaf,Mill,,,true,Title,Default Title,,,TEA,,450,,,,,draft
tin,Old tin,,Mill,,,false,Title,Default Title,,,,2,99.5,,,,,archived
""".replace("\\\n", "")


WOOCOMMERCE = """ID,Type,SKU,Name,Published,Stock,In stock?,Sale price,Regular price,Categories,\
Tags,Parent,Attribute 1 value(s),GTIN
44,variable,tee,Tee,1,,1,,,Clothing > Tees,new,,"Red, Blue",
45,variation,tee-red,,1,,1,,20,,,tee,Red,4006381333932
46,variation,tee-blue,,1,7,1,15,20,,,id:44,Blue,4006381333931
47,simple,cd,CD,1,,0,,9,Media > CD/DVD,,,Gold,
""".replace("\\\n", "")


class TestWooCommercesExport:
    def test_products_arrive_with_their_categories(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        table.write_text(WOOCOMMERCE)
        printed = operator.run(*words(owner, table, "--create-categories"))
        assert (printed["created"], printed["failed"]) == (3, 0)
        products = {product["sku"]: product for product in list_products(api)}
        assert {
            sku: (product["name"], product["price"], product["stock"], product["barcode"])
            for sku, product in products.items()
        } == {
            "tee-red": ("Tee / Red", 2000, None, None),
            "tee-blue": ("Tee / Blue", 1500, 7, "4006381333931"),
            "cd": ("CD", 900, 0, None),
        }
        categories = api.get("/api/categories/list?kind=product")["categories"]
        assert sorted(category["name"] for category in categories) == sorted(
            ["Clothing", "Tees", "Media", "CD/DVD"]
        )
        again = operator.run(*words(owner, table, "--create-categories"))
        assert (again["unchanged"], again["categoriesCreated"]) == (3, 0)

    def test_what_does_not_arrive_is_named_before_anything_is_written(
        self,
        operator: Operator,
        owner: Owner,
        table: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        call = command_line.call

        def refuses_writes(operation: str, *args: Any, **more: Any) -> Any:
            if operation.startswith("upsert"):
                raise UnavailableError
            return call(operation, *args, **more)

        table.write_text(WOOCOMMERCE)
        monkeypatch.setattr(command_line, "call", refuses_writes)
        stderr = operator.invoke(*words(owner, table, "--create-categories")).stderr
        assert "This is a table of WooCommerce." in stderr
        assert "Columns that mean nothing here: ID, Tags." in stderr
        assert "Columns that are not read in some rows: Attribute 1 value(s) (2)." in stderr

    def test_left_out_values_are_told_in_a_dry_run(
        self, operator: Operator, owner: Owner, table: Path
    ) -> None:
        table.write_text(WOOCOMMERCE)
        result = operator.invoke(*words(owner, table, "--create-categories", "--dry-run"))
        assert "Row 3 (tee-red): barcode: left out" in result.stderr
        assert "Row 4 (tee-blue): price: 15 is the sale price" in result.stderr

    def test_a_stock_that_is_no_longer_counted_has_no_limit(
        self, operator: Operator, owner: Owner, api: Api, table: Path
    ) -> None:
        table.write_text(WOOCOMMERCE)
        operator.run(*words(owner, table, "--create-categories"))
        table.write_text(WOOCOMMERCE.replace("1,7,1,15", "1,,1,15"))
        assert operator.run(*words(owner, table))["updated"] == 1
        assert {product["stock"] for product in list_products(api)} == {None, 0}


def test_a_workbook_is_imported_like_a_table_of_text(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    table.write_bytes(xlsx([["Артикул", "Название", "Цена"], ["A-1", "Хлеб", 12.5]]))
    assert operator.run(*words(owner, table))["created"] == 1
    assert list_products(api)[0]["price"] == 1250


def test_a_damaged_workbook_is_named_and_nothing_is_imported(
    operator: Operator, owner: Owner, table: Path
) -> None:
    table.write_bytes(b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml")
    message = operator.run_failing(*words(owner, table))
    assert "damaged" in message
    assert "PK" not in message


class TestShopifysExport:
    @pytest.fixture
    def import_output(
        self, operator: Operator, owner: Owner, table: Path, image_server: Server
    ) -> Any:
        """The printed result of importing an export, and its messages."""
        text = SHOPIFY.format(photo=f"{IMAGE_SERVER}/1.png", other=f"{IMAGE_SERVER}/2.png")
        table.write_text(text, encoding="utf-8")
        result = operator.invoke(*words(owner, table, "--create-categories"))
        assert result.exit_code == 0, result.output
        return result

    def test_each_variant_becomes_a_product_named_after_its_options(
        self, import_output: Any, api: Api
    ) -> None:
        products = {product["sku"]: product for product in list_products(api)}
        assert {sku: product["name"] for sku, product in products.items()} == {
            "MUG-R": "Mug / Red / L",
            "mug-Blue-S": "Mug / Blue / S",
            "TEA": "Black tea",
            "tin": "Old tin",
        }
        red = products["MUG-R"]
        assert (red["price"], red["stock"], red["barcode"]) == (129990, 5, "4006381333931")
        assert red["description"].strip() == "A large mug."
        assert len(red["images"]) == 2
        assert red["categoryId"] == products["mug-Blue-S"]["categoryId"] is not None

    def test_drafts_and_archived_products_are_inactive(self, import_output: Any, api: Api) -> None:
        statuses = {product["sku"]: product["status"] for product in list_products(api)}
        assert statuses == {
            "MUG-R": "active",
            "mug-Blue-S": "active",
            "TEA": "inactive",
            "tin": "inactive",
        }

    def test_a_negative_stock_is_imported_as_0_with_a_note(
        self, import_output: Any, api: Api
    ) -> None:
        stocks = {product["sku"]: product["stock"] for product in list_products(api)}
        assert (stocks["mug-Blue-S"], stocks["TEA"], stocks["tin"]) == (0, None, 2)
        assert "Row 3 (mug-Blue-S): stock: -3 is read as 0" in import_output.stderr

    def test_columns_without_a_field_are_named(self, import_output: Any) -> None:
        assert (
            "mean nothing here: Vendor, Tags, Option1 Name, Option2 Name, Image Position."
            in import_output.stderr
        )

    def test_importing_a_shopify_export_again_creates_nothing(
        self, import_output: Any, operator: Operator, owner: Owner, table: Path
    ) -> None:
        second_import = operator.run(*words(owner, table, "--create-categories"))
        assert (
            second_import["created"],
            second_import["updated"] + second_import["unchanged"],
            second_import["failed"],
        ) == (
            0,
            4,
            0,
        )
