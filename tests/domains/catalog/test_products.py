"""Tests of creating, updating, deleting and duplicating products."""

from typing import Any

import pytest

from chalicelib.domains.catalog.store import products
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine.listing import counters
from chalicelib.lib import barcodes
from tests.conftest import Api, Owner, Time
from tests.factories.products import (
    CREATE,
    DELETE,
    DUPLICATE,
    EAN,
    IMAGE_SERVER,
    UPDATE,
    create,
    create_category,
    image_files,
    list_products,
    names,
    read,
    refusal,
    refused_field,
    update,
)
from tests.fakes.internet import Server


class TestCreateProduct:
    def test_create_returns_all_fields(self, api: Api, owner: Owner) -> None:
        bread = create_category(api)
        product = create(
            api,
            "  Loaf ",
            9900,
            description="Round",
            sku=" L-1 ",
            stock=0,
            categoryId=bread,
            barcode="4 006381-333931",
            status="inactive",
        )
        assert {k: v for k, v in product.items() if k not in {"id", "createdAt", "updatedAt"}} == {
            "name": "Loaf",
            "price": 9900,
            "description": "Round",
            "descriptionTruncated": False,
            "sku": "L-1",
            "barcode": EAN,
            "stock": 0,
            "categoryId": bread,
            "images": [],
            "status": "inactive",
            "sortOrder": 0,
            "externalId": None,
            "metadata": {},
        }
        assert read(api, product) == product == list_products(api)[0]
        assert product["createdAt"] == product["updatedAt"]
        assert counters.read(owner.workspace.id, noun="PRODUCT")["status:inactive"] == 1

    def test_create_needs_only_a_name_and_a_price(self, api: Api) -> None:
        product = create(api, price=0)
        assert product["status"] == "active"
        empty = ("description", "sku", "barcode", "stock", "categoryId")
        assert [product[name] for name in empty] == [None] * 5

    def test_a_new_product_comes_last_whatever_the_existing_sort_orders(self, api: Api) -> None:
        first = create(api, "A")
        update(api, first, sortOrder=10**12)
        create(api, "B")
        create(api, "C")
        assert names(api) == "A B C"

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", "  "),
            ("name", "a\x00"),
            ("price", -1),
            ("price", 9.5),
            ("price", "100"),
            ("price", True),
            ("sku", " "),
            ("images", [{}]),
            ("images", [{"url": "https://a.example/1.png", "fileId": "a"}]),
        ],
    )
    def test_invalid_values_are_refused(self, field: str, value: Any, api: Api) -> None:
        body = {"name": "x", "price": 1, field: value}
        assert refused_field(api, CREATE, body)["field"].split(".")[0] == field
        assert list_products(api) == []

    def test_values_on_the_bounds_are_accepted(self, api: Api) -> None:
        fields = {"description": "a" * 20_000, "sku": "ﷺ" * 64, "stock": 10**9}
        product = create(api, "a" * 255, 10**11, **fields)
        assert read(api, product) == product

    @pytest.mark.parametrize(
        ("barcode", "message"),
        [
            ("4006381333932", 'expected the check digit 1 at the end of "4006381333932"'),
            ("123", "expected 8, 12, 13 or 14 digits"),
        ],
    )
    def test_a_wrong_barcode_is_refused_with_the_expected_check_digit(
        self, barcode: str, message: str, api: Api
    ) -> None:
        product = create(api)
        for path, body in (
            (CREATE, {"name": "x", "price": 1, "barcode": barcode}),
            (UPDATE, {"id": product["id"], "barcode": barcode}),
        ):
            assert refusal(api, path, body) == (400, "invalid_barcode")
            (error,) = api.call_refused("POST", path, body).data["errors"]
            assert (error["field"], error["key"]) == ("barcode", "barcode")
            assert message in error["message"]

    def test_an_empty_barcode_is_omitted_or_explained(self, api: Api) -> None:
        product = api.post(CREATE, {"name": "x", "price": 1, "barcode": "", "sku": ""})["product"]
        assert (product["barcode"], product["sku"]) == (None, None)
        listing = api.get("/api/products/list?barcode=&sku=")["products"]
        assert [listed_product["id"] for listed_product in listing] == [product["id"]]
        error = refused_field(api, UPDATE, {"id": product["id"], "barcode": ""})
        assert (error["field"], error["key"]) == ("barcode", "too_short")
        assert "null" in error["message"]

    def test_a_price_in_rubles_is_refused_with_the_amount_in_kopecks(self, api: Api) -> None:
        error = refused_field(api, CREATE, {"name": "x", "price": 199.9})
        assert (error["field"], error["key"]) == ("price", "invalid_type")
        assert "kopecks: 19990" in error["message"]

    def test_an_sku_is_unique_in_the_workspace_in_any_case(self, api: Api, new_owner: Any) -> None:
        create(api, sku="Ёж-1")
        for sku in ("Ёж-1", " ЁЖ-1", "еж-1"):
            assert refusal(api, CREATE, {"name": "x", "price": 1, "sku": sku}) == (409, "sku_taken")
        create(new_owner().api(), sku="Ёж-1")
        create(api, sku="Ёж-2")
        assert len(list_products(api)) == 2

    def test_a_taken_sku_names_its_product_and_the_next_step(self, api: Api) -> None:
        first, second = create(api, sku="S"), create(api, sku="T")
        create_error = api.call_refused("POST", CREATE, {"name": "x", "price": 1, "sku": "s"}).data
        update_error = api.call_refused("POST", UPDATE, {"id": second["id"], "sku": "s"}).data
        for error in (create_error, update_error):
            assert (error["code"], error["productId"]) == ("sku_taken", first["id"])
            assert [name in error["message"] for name in ('"S"', '"s"')] == [True, True]
        assert "POST /api/products/update" in create_error["message"]
        assert "null" in update_error["message"]
        assert "POST /api/products/update" not in update_error["message"]

    def test_a_category_of_services_is_404(self, api: Api) -> None:
        product, category = create(api), {"categoryId": create_category(api, kind="service")}
        for path, body in ((CREATE, {"name": "x", "price": 1}), (UPDATE, {"id": product["id"]})):
            assert refusal(api, path, body | category) == (404, "not_found")
        assert list_products(api) == [product]


class TestUpdateProduct:
    def test_an_update_changes_only_the_given_fields(self, api: Api, time: Time) -> None:
        product = create(
            api, sku="S", stock=3, barcode=EAN, description="d", categoryId=create_category(api)
        )
        time.pass_by(minutes=5)
        changes = {"name": "Roll", "price": 7, "status": "inactive", "sortOrder": -5}
        updated_product = update(api, product, **changes)
        assert updated_product == product | changes | {"updatedAt": "2027-01-15T12:05:00.000Z"}
        assert read(api, product) == updated_product

    def test_null_clears_optional_fields(self, api: Api, owner: Owner) -> None:
        product = create(
            api, sku="S", stock=3, barcode=EAN, description="d", categoryId=create_category(api)
        )
        cleared = dict.fromkeys(("sku", "stock", "barcode", "description", "categoryId"))
        updated_product = update(api, product, **cleared)
        assert cleared.items() <= updated_product.items()
        create(api, sku="S")
        assert products.find_by_barcode(owner.workspace.id, gtin14=barcodes.gtin14(EAN)) is None

    def test_a_new_sku_frees_the_old_one(self, api: Api) -> None:
        first, second = create(api, sku="A"), create(api, sku="B")
        assert refusal(api, UPDATE, {"id": second["id"], "sku": "a"}) == (409, "sku_taken")
        assert update(api, first, sku="a")["sku"] == "a"
        update(api, first, sku="C")
        assert update(api, second, sku="A")["sku"] == "A"
        assert refusal(api, UPDATE, {"id": second["id"], "sku": "C"}) == (409, "sku_taken")

    def test_a_new_barcode_replaces_the_old_one_in_lookups(self, api: Api, owner: Owner) -> None:
        product = create(api, barcode="012345678905")
        assert update(api, product, barcode="0012345678905")["barcode"] == "0012345678905"
        update(api, product, barcode=EAN)
        workspace = owner.workspace.id
        assert products.find_by_barcode(workspace, gtin14="00012345678905") is None
        assert products.find_by_barcode(workspace, gtin14=barcodes.gtin14(EAN)) is not None

    def test_a_moved_product_counts_in_its_new_category(self, api: Api, owner: Owner) -> None:
        bread, cakes = create_category(api), create_category(api, "Cakes")
        product = create(api, categoryId=bread)
        update(api, product, categoryId=cakes)
        assert counters.read_facet(owner.workspace.id, noun="PRODUCT", facet="category_id") == {
            f"category_id:{cakes}": 1
        }


class TestDeleteProduct:
    def test_delete_frees_the_sku_and_barcode(self, api: Api, owner: Owner) -> None:
        product = create(api, sku="S", barcode=EAN, categoryId=create_category(api))
        assert api.post(DELETE, {"id": product["id"]}) == {
            "status": True,
            "id": product["id"],
            "deleted": True,
        }
        assert list_products(api) == []
        assert api.call_refused("GET", f"/api/products/{product['id']}").status == 404
        assert counters.read(owner.workspace.id, noun="PRODUCT") == {}
        assert counters.read_facet(owner.workspace.id, noun="PRODUCT", facet="category_id") == {}
        assert products.find_by_barcode(owner.workspace.id, gtin14=barcodes.gtin14(EAN)) is None
        create(api, sku="S")

    def test_a_deleted_product_is_hidden_and_kept_for_a_month(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        product = create(api)
        api.post(DELETE, {"id": product["id"]})
        deleted_row = PRODUCTS.row.find(PRODUCTS.trash(owner.workspace.id), product["id"])
        assert deleted_row is not None
        assert (deleted_row.expires - time.now).days == 30


class TestDuplicateProduct:
    def test_a_copy_is_inactive_and_without_unique_fields(
        self, api: Api, image_server: Server
    ) -> None:
        source = create(
            api,
            sku="S",
            stock=4,
            barcode=EAN,
            description="d",
            categoryId=create_category(api),
            images=[{"url": f"{IMAGE_SERVER}/1.png"}],
        )
        copy = api.post(DUPLICATE, {"id": source["id"]})["product"]
        generated_fields = {"id", "createdAt", "updatedAt", "sortOrder"}
        expected = source | {
            "name": "Loaf (копия)",
            "sku": None,
            "barcode": None,
            "status": "inactive",
        }
        assert {k: v for k, v in copy.items() if k not in generated_fields} == {
            k: v for k, v in expected.items() if k not in generated_fields
        }
        assert copy["id"] != source["id"]
        assert len(image_files(api)) == 1
        assert read(api, copy) == copy
        assert read(api, source) == source

    def test_a_copy_is_listed_after_its_source(self, api: Api) -> None:
        first = create(api, "A")
        create(api, "B")
        api.post(DUPLICATE, {"id": first["id"], "name": "A2"})
        api.post(DUPLICATE, {"id": first["id"], "name": "A1"})
        assert names(api) == "A A1 A2 B"

    def test_a_copy_is_listed_after_its_source_even_without_room(self, api: Api) -> None:
        for number, name in enumerate("ABC"):
            update(api, create(api, name), sortOrder=number)
        source = list_products(api)[1]
        api.post(DUPLICATE, {"id": source["id"], "name": "B2"})
        assert names(api) == "A B B2 C"

    def test_a_copy_of_a_long_name_fits_and_a_given_name_is_used(self, api: Api) -> None:
        source = create(api, "x" * 255)
        copy = api.post(DUPLICATE, {"id": source["id"]})["product"]
        assert copy["name"] == "x" * 247 + " (копия)"
        assert api.post(DUPLICATE, {"id": source["id"], "name": " Y "})["product"]["name"] == "Y"
