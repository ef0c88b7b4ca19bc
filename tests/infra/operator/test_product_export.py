"""``import-products`` accepts a table of ``export-products`` unchanged."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chalicelib.core.ids import new_id
from chalicelib.core.text import fold
from chalicelib.lib.markup.csv_text import is_formula
from tests.conftest import Api, Owner
from tests.factories.operator import Operator
from tests.factories.products import (
    EAN,
    IMAGE_SERVER,
    create,
    create_category,
    list_products,
    read,
    serve_images,
    update,
)
from tests.fakes.internet import Internet
from tests.support.effort import examples

pytestmark = pytest.mark.usefixtures("reload_settings")

HEADER = (
    "id,sku,name,price (kopecks),description,stock,barcode,category,category id,images,status,"
    "sort order,external id,metadata,created at,updated at"
)
OF_ITS_OWN = {"id", "categoryId", "images", "createdAt", "updatedAt"}
"""Fields of a product that differ in another workspace."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The path of the exported table."""
    return tmp_path / "goods.csv"


def export(operator: Operator, owner: Owner, path: Path) -> list[dict[str, str]]:
    """Export the products, and return the rows of the table."""
    words = ("export-products", "--workspace", owner.workspace.id, "--csv", str(path))
    printed = operator.run(*words)
    rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    assert printed == {
        "workspaceId": owner.workspace.id,
        "products": len(rows),
        "file": str(path),
        "bytes": path.stat().st_size,
    }
    return rows


def imported(operator: Operator, owner: Owner, path: Path, *more: str) -> dict[str, Any]:
    return operator.run(
        *("import-products", "--workspace", owner.workspace.id, "--csv", str(path), *more)
    )


def full_products(api: Api) -> list[Any]:
    """Return all products with complete descriptions."""
    return [read(api, product) for product in list_products(api)]


def compared(api: Api) -> list[Any]:
    """Return the fields that products of two workspaces share, with categories as paths."""
    rows = api.get("/api/categories/list?kind=product")["categories"]
    by_id = {row["id"]: row for row in rows}

    def path(category_id: str | None) -> tuple[str, ...]:
        row = by_id.get(category_id or "")
        return (*path(row["parentId"]), row["name"]) if row else ()

    differences = [
        {name: value for name, value in product.items() if name not in OF_ITS_OWN}
        | {"category": path(product["categoryId"]), "images": len(product["images"])}
        for product in full_products(api)
    ]
    return sorted(differences, key=lambda one: (one["sortOrder"], repr(one)))


def test_export_writes_every_field_completely(
    operator: Operator, owner: Owner, api: Api, table: Path, net: Internet
) -> None:
    serve_images(net)
    bread = create_category(api, "Rye / wheat", parentId=create_category(api, "Bread"))
    images = [{"url": f"{IMAGE_SERVER}/1.png"}, {"url": f"{IMAGE_SERVER}/2.png"}]
    product = create(
        api,
        'A "loaf", big',
        9900,
        sku="L-1",
        description="ж" * 6007,
        stock=3,
        barcode=EAN,
        categoryId=bread,
        images=images,
        status="inactive",
        externalId="00145",
        metadata={"shelf": "A7"},
    )
    (row,) = export(operator, owner, table)
    assert ",".join(row) == HEADER
    assert list(row.values()) == [
        product["id"],
        "L-1",
        'A "loaf", big',
        "9900",
        "ж" * 6007,
        "3",
        f"\\{EAN}",
        "Bread / Rye \\/ wheat",
        bread,
        "|".join(image["url"] for image in product["images"]),
        "inactive",
        str(product["sortOrder"]),
        "\\00145",
        '{"shelf": "A7"}',
        product["createdAt"],
        product["updatedAt"],
    ]


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(1)", "\uff1d1", "=HYPERLINK(A1)"])
def test_no_cell_of_a_caller_begins_like_a_formula(
    formula: str, operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    folder = create_category(api, formula)
    create(api, formula, 1, sku=f"{formula}s", description=f"\t{formula}", categoryId=folder)
    (row,) = export(operator, owner, table)
    assert [cell for cell in row.values() if is_formula(cell)] == []
    assert imported(operator, owner, table)["unchanged"] == 1


def test_images_are_copied_to_another_workspace(
    operator: Operator, owner: Owner, api: Api, table: Path, net: Internet, new_owner: Any
) -> None:
    serve_images(net)
    for sku in ("A", None):
        create(
            api,
            sku=sku,
            images=[{"url": f"{IMAGE_SERVER}/1.png"}, {"url": f"{IMAGE_SERVER}/2.png"}],
        )
    export(operator, owner, table)
    old_products = full_products(api)
    assert imported(operator, owner, table)["unchanged"] == 2
    assert full_products(api) == old_products
    other = new_owner()
    assert imported(operator, other, table)["created"] == 2
    for product, copy in zip(old_products, full_products(other.api()), strict=True):
        assert [image["width"] for image in copy["images"]] == [
            image["width"] for image in product["images"]
        ]
        assert not {i["url"] for i in copy["images"]} & {i["url"] for i in product["images"]}


def test_a_table_of_another_unit_is_refused(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    create(api, sku="A", price=9900)
    export(operator, owner, table)
    words = ("import-products", "--workspace", owner.workspace.id, "--csv", str(table))
    assert "--prices kopecks" in operator.run_failing(*words, "--prices", "rubles")
    assert operator.run(*words, "--prices", "kopecks")["unchanged"] == 1
    table.write_text("sku,price\nA,7\n")
    assert "--prices rubles" in operator.run_failing(*words)
    assert list_products(api)[0]["price"] == 9900


def test_an_edited_table_changes_what_was_edited(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    first, second = create(api, "A", sku="A"), create(api, "B")
    export(operator, owner, table)
    table.write_bytes(table.read_bytes().replace(b'"100"', b'"250"').replace(b'"B"', b'"New"'))
    printed = imported(operator, owner, table)
    assert (printed["updated"], printed["unchanged"], printed["failed"]) == (2, 0, 0)
    assert [product["price"] for product in full_products(api)] == [250, 250]
    assert read(api, second)["name"] == "New"
    update(api, first, price=7)
    assert imported(operator, owner, table, "--dry-run")["wouldUpdate"] == 1


def test_a_report_of_refused_rows_is_read_as_the_table_is(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    create(api, sku="A", description=" spaced ")
    export(operator, owner, table)
    good = table.read_bytes()
    table.write_bytes(good.replace(b'"active"', b'"gone"').replace(b'"100"', b'"7"'))
    printed = imported(operator, owner, table)
    assert printed["failed"] == 1
    report = Path(printed["report"])
    report.write_bytes(report.read_bytes().replace(b"gone", b"active"))
    assert imported(operator, owner, report)["updated"] == 1
    (product,) = full_products(api)
    assert (product["price"], product["description"]) == (7, " spaced ")


def test_deleted_product_without_an_sku_is_restored(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    product = create(api)
    export(operator, owner, table)
    for _ in range(2):
        api.post("/api/products/delete", {"id": product["id"]})
        assert imported(operator, owner, table)["created"] == 1
        assert read(api, product)["name"] == "Loaf"


def test_export_replaces_a_file_and_writes_none_for_an_unknown_workspace(
    operator: Operator, owner: Owner, table: Path
) -> None:
    table.write_text("old")
    words = ("export-products", "--csv", str(table), "--workspace")
    assert "nowhere" in operator.run_failing(*words, "nowhere")
    assert table.read_text() == "old"
    assert export(operator, owner, table) == []
    missing = table.parent / "none" / "goods.csv"
    line = operator.run_failing(
        "export-products", "--csv", str(missing), "--workspace", owner.workspace.id
    )
    assert "cannot be written" in line


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30)
ODD = st.sampled_from(
    ["", "\\", "\\x", " ", "a\r\nb\rc\n", '"', '""', "=1+1", ";,\t|", "\ufeff", "\x00"]
)
NAME = st.sampled_from(
    [
        "Loaf",
        'A "b"; c, d',
        "=SUM(1)",
        "\\",
        "a/b",
        "a / b",
        "a \\/ b",
        "/",
        "Ёж",
        "1 299,90 ₽",
        "null",
    ]
)
PRODUCT = st.fixed_dictionaries(
    {"name": NAME, "price": st.integers(0, 10**11)},
    optional={
        "description": TEXT | ODD | st.just("ж" * 6007),
        "stock": st.integers(0, 10**9),
        "barcode": st.sampled_from([EAN, "96385074", "036000291452"]),
        "status": st.sampled_from(["active", "inactive"]),
        "sku": NAME,
        "externalId": NAME,
        "metadata": st.dictionaries(NAME, TEXT | ODD, max_size=3),
    },
)


@examples(30)
@example(
    products=[
        ({"name": "A", "price": 0, "description": text}, ["a/b", "Ёж"][: n % 3], n)
        for n, text in enumerate(
            ["", "\\", "\\x", " a\r\nb\rc\n ", '""', ";,\t|", "\ufeff", "\x00"]
        )
    ]
)
@given(
    products=st.lists(
        st.tuples(PRODUCT, st.lists(NAME, max_size=3), st.integers(-5, 5)), max_size=6
    )
)
def test_exported_table_creates_equal_products_in_another_workspace(
    products: list[Any], operator: Operator, new_owner: Any, table: Path
) -> None:
    owner, other = new_owner(), new_owner()
    api, theirs = owner.api(), other.api()
    skus, skus_made = set[str](), dict[tuple[str, ...], str]()
    external_ids = set[str]()
    for fields, path, place in products:
        sku = fields.pop("sku", None)
        if sku is not None and fold(sku) not in skus:
            fields["sku"] = sku
            skus.add(fold(sku))
        if (external_id := fields.pop("externalId", None)) not in {None, *external_ids}:
            fields["externalId"] = external_id
            external_ids.add(external_id)
        for depth in range(1, len(path) + 1):
            names, above = tuple(path[:depth]), skus_made.get(tuple(path[: depth - 1]))
            if names not in skus_made:
                skus_made[names] = create_category(
                    api, names[-1], parentId=above, slug=new_id().lower()
                )
        product = create(api, **fields, categoryId=skus_made.get(tuple(path)))
        if place:
            update(api, product, sortOrder=place)
    export(operator, owner, table)
    old_products = full_products(api)
    printed = imported(operator, owner, table)
    assert (printed["unchanged"], printed["failed"]) == (len(products), 0)
    assert full_products(api) == old_products
    for created, unchanged in ((len(products), 0), (0, len(products))):
        printed = imported(operator, other, table, "--create-categories")
        counts = (printed["created"], printed["unchanged"], printed["failed"])
        assert counts == (created, unchanged, 0)
        assert compared(theirs) == compared(api)


def test_an_external_id_in_a_table_must_be_free(
    operator: Operator, owner: Owner, api: Api, table: Path
) -> None:
    first, second = create(api, "Loaf", 100, externalId="1"), create(api, "Roll", 100)
    rows = f'{first["id"]},007,"{{""shelf"": ""A7""}}"\n{second["id"]},1,none\n'
    table.write_text(f"id,external id,metadata\n{rows}")
    printed = imported(operator, owner, table)
    assert (printed["updated"], printed["failed"]) == (1, 1)
    table.write_text(f"id,external id\n{second['id']},007\n")
    assert imported(operator, owner, table)["failed"] == 1
    assert read(api, first)["metadata"] == {"shelf": "A7"}
    assert [read(api, one)["externalId"] for one in (first, second)] == ["007", None]
