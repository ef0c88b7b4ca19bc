"""Products: what the product calls promise (tools.md, rows 30, 31 and 34-39)."""

import io
import itertools
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from chalicelib.core import retry
from chalicelib.core import settings as service_settings
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.domains.products import records
from chalicelib.rules import barcodes
from chalicelib.store import audit, counters, jobs, limits, products
from chalicelib.store.products import PRODUCTS
from chalicelib.store.unit import UnitOfWork
from chalicelib.transports.schedules import run_jobs
from tests.conftest import Answer, Api, Owner, Time, at_once, everything
from tests.effort import examples
from tests.fakes.internet import Internet, Server, says

LIST, CREATE, UPDATE, DELETE, DUPLICATE, REORDER, BULK = (
    f"/api/products/{call}"
    for call in ("list", "create", "update", "delete", "duplicate", "reorder", "bulk")
)
AWAY = "https://images.example.com"
EAN = "4006381333931"


@cache
def png(number: int = 0) -> bytes:
    body = io.BytesIO()
    Image.new("RGB", (8 + number, 8), (number * 5 % 256, 80, 160)).save(body, "PNG")
    return body.getvalue()


@pytest.fixture
def away(net: Internet) -> Server:
    """A host of images; what is not among its pages is not found."""
    server = net.serve(AWAY, says(b"no", "404 Not Found"))
    for number in range(10):
        server.pages[f"/{number}.png"] = says(png(number), content_type="image/png")
    return server


def create(api: Api, name: str = "Loaf", price: int = 100, **fields: Any) -> Any:
    return api.post(CREATE, {"name": name, "price": price, **fields})["product"]


def update(api: Api, product: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": product["id"], **fields})["product"]


def read(api: Api, product: Any) -> Any:
    return api.get(f"/api/products/{product['id']}")["product"]


def listed(api: Api, **query: Any) -> list[Any]:
    found: list[Any] = api.get(f"{LIST}?{urlencode({'size': 100, **query})}")["products"]
    return found


def names(api: Api, **query: Any) -> str:
    return " ".join(product["name"] for product in listed(api, **query))


def category(api: Api, name: str = "Bread", **fields: Any) -> str:
    made: str = api.post("/api/categories/create", {"name": name, **fields})["category"]["id"]
    return made


def refused_field(api: Api, path: str, body: Any) -> Any:
    """Send what must be refused for one field; return that field's error."""
    answer = api.refused("POST", path, body)
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    return answer.data["errors"][0]


def refusal(api: Api, path: str, body: Any) -> tuple[int, str]:
    answer = api.refused("POST", path, body)
    return answer.status, answer.data["code"]


class TestListProducts:
    def test_is_ordered_by_their_own_order_creation_price_or_name(self, api: Api) -> None:
        for name, price in (("Ёлка", 300), ("ель", 100), ("Дуб", 200)):
            create(api, name, price)
        assert names(api) == "Ёлка ель Дуб"
        assert names(api, sort="sortOrder") == "Ёлка ель Дуб"
        assert names(api, sort="createdAt") == "Дуб ель Ёлка"
        assert names(api, sort="price") == "ель Дуб Ёлка"
        assert names(api, sort="name") == "Дуб Ёлка ель"

    def test_finds_by_a_part_of_the_name_or_the_sku_in_any_case(self, api: Api) -> None:
        create(api, "Ёлка", sku="AB-17")
        create(api, "Oak", sku="CD-18")
        assert names(api, q="елк") == "Ёлка"
        assert names(api, q="b-1") == "Ёлка"
        assert names(api, q="-1") == "Ёлка Oak"
        assert names(api, q="nothing") == ""

    def test_may_be_turned_around(self, api: Api) -> None:
        for name, price in (("A", 300), ("C", 100), ("B", 200)):
            create(api, name, price)
        assert names(api, sortDir="desc") == "B C A"
        assert names(api, sort="price", sortDir="desc") == "A B C"
        assert names(api, sort="name", sortDir="desc") == "C B A"
        assert names(api, sort="createdAt", sortDir="asc") == "A C B"
        assert names(api, sort="createdAt", sortDir="desc") == names(api, sort="createdAt")

    def test_filters_by_price_with_both_bounds_included(self, api: Api) -> None:
        for price in (0, 100, 199, 200, 201):
            create(api, str(price), price)
        assert names(api, minPrice=100, maxPrice=200) == "100 199 200"
        assert names(api, minPrice=200) == "200 201"
        assert names(api, maxPrice=0) == "0"
        assert names(api, minPrice=100, maxPrice=100) == "100"
        assert names(api, minPrice=1, maxPrice=200, q="19", sortDir="desc") == "199"

    def test_finds_the_one_with_an_sku_or_those_with_a_barcode(self, api: Api) -> None:
        bread = category(api)
        create(api, "A", sku="Ёж-1", barcode=EAN, categoryId=bread)
        create(api, "B", sku="Ёж-10", barcode="0" + EAN, status="inactive", price=7)
        create(api, "C", barcode="12345670")
        assert names(api, sku=" еЖ-1") == "A"
        assert names(api, sku="Ёж") == ""
        assert names(api, barcode=EAN) == names(api, barcode=f"0{EAN}") == "A B"
        assert names(api, barcode=EAN, status="active") == "A"
        assert names(api, barcode=EAN, sort="price") == "B A"
        assert names(api, barcode=EAN, categoryId=bread, minPrice=8) == "A"
        assert names(api, barcode=EAN, sku="Ёж-10", q="b") == "B"
        assert names(api, barcode="12345670", sku="Ёж-10") == ""
        found = api.get(f"{LIST}?{urlencode({'barcode': EAN, 'size': 1, 'page': 2})}")
        assert ([p["name"] for p in found["products"]], found["total"]) == (["B"], 2)

    def test_of_a_category_can_include_those_below_it(self, api: Api, new_owner: Any) -> None:
        bakery = category(api, "Bakery")
        bread, cakes = category(api, parentId=bakery), category(api, "Cakes", parentId=bakery)
        rye = category(api, "Rye", parentId=bread)
        for name, place in zip("ABCDE", (rye, bakery, None, cakes, bread), strict=True):
            create(api, name, categoryId=place)
        assert names(api, categoryId=bakery) == "B"
        assert names(api, categoryId=bakery, subcategories="true") == "A B D E"
        assert names(api, categoryId=bread, subcategories="true", sortDir="desc") == "E A"
        assert names(api, categoryId=rye, subcategories="true") == "A"
        assert names(api, categoryId=bakery, subcategories="true", q="d") == "D"
        paged = {"categoryId": bakery, "subcategories": "true", "size": 3}
        found = [api.get(f"{LIST}?{urlencode({**paged, 'page': page})}") for page in (1, 2)]
        assert [len(each["products"]) for each in found] == [3, 1]
        assert [each["total"] for each in found] == [4, 4]
        foreign = category(new_owner().api())
        assert names(api, categoryId=foreign, subcategories="true") == ""
        warned = api.get(f"{LIST}?subcategories=true")
        assert (warned["total"], len(warned["warnings"])) == (5, 1)

    def test_filters_by_status_and_by_category(self, api: Api) -> None:
        bread, cakes = category(api), category(api, "Cakes")
        create(api, "A", categoryId=bread)
        create(api, "B", categoryId=bread, status="inactive")
        create(api, "C", categoryId=cakes)
        assert names(api, status="active") == "A C"
        assert names(api, status="inactive") == "B"
        assert names(api, status="all") == "A B C"
        assert names(api, categoryId=bread) == "A B"
        assert names(api, categoryId=bread, status="active") == "A"

    def test_of_an_unknown_or_foreign_category_is_empty(self, api: Api, new_owner: Any) -> None:
        create(api, categoryId=category(api))
        foreign = category(new_owner().api())
        for unknown in (foreign, new_id(), "x"):
            found = api.get(f"{LIST}?categoryId={unknown}")
            assert (found["products"], found["total"]) == ([], 0)

    def test_has_pages_of_twenty_and_a_total(self, api: Api) -> None:
        for number in range(23):
            create(api, f"{number:02}")
        first, second = api.get(LIST), api.get(f"{LIST}?page=2")
        assert [len(first["products"]), len(second["products"])] == [20, 3]
        assert first["total"] == second["total"] == 23
        assert api.get(f"{LIST}?page=9")["products"] == []
        assert names(api, page=3, size=7).split()[0] == "14"

    @pytest.mark.parametrize(
        "query",
        [
            *("size=0", "size=101", "page=0", "sort=sku", "status=on", "sortDir=down"),
            *("minPrice=2&maxPrice=1", "minPrice=-1", "maxPrice=1.5", "subcategories=maybe"),
            *("barcode=4006381333932", "barcode=x"),
        ],
    )
    def test_refuses_what_it_does_not_know(self, query: str, api: Api) -> None:
        assert api.refused("GET", f"{LIST}?{query}").status == 400

    def test_cuts_long_descriptions_and_says_so(self, api: Api) -> None:
        whole = create(api, description="ж" * 20_000)
        short = create(api, description="ж" * 500)
        found = api.get(LIST)
        assert [len(p["description"]) for p in found["products"]] == [500, 500]
        assert found["products"][0]["description"].endswith("…")
        assert found["products"][1] == short
        (warning,) = found["warnings"]
        assert warning.startswith("The description of 1 product(s) is cut to 500 characters; ")
        assert read(api, whole) == whole

    def test_a_hundred_long_products_fit_one_answer(self, api: Api, owner: Owner) -> None:
        make(owner, 100, name="Ж" * 255, description="ж" * 20_000)
        assert len(listed(api)) == 100


class TestCreateProduct:
    def test_shows_all_its_fields(self, api: Api, owner: Owner) -> None:
        bread = category(api)
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
            "sku": "L-1",
            "barcode": EAN,
            "stock": 0,
            "categoryId": bread,
            "images": [],
            "status": "inactive",
            "sortOrder": 0,
        }
        assert read(api, product) == product == listed(api)[0]
        assert product["createdAt"] == product["updatedAt"]
        assert counters.read(owner.workspace.id, "PRODUCT")["status:inactive"] == 1

    def test_needs_no_more_than_a_name_and_a_price(self, api: Api) -> None:
        product = create(api, price=0)
        assert product["status"] == "active"
        empty = ("description", "sku", "barcode", "stock", "categoryId")
        assert [product[name] for name in empty] == [None] * 5

    def test_comes_last_whatever_orders_there_are(self, api: Api) -> None:
        first = create(api, "A")
        update(api, first, sortOrder=10**12)
        create(api, "B")
        create(api, "C")
        assert names(api) == "A B C"

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", ""),
            ("name", "  "),
            ("name", "a" * 256),
            ("name", "a\x00"),
            ("price", -1),
            ("price", 10**11 + 1),
            ("price", 9.5),
            ("price", "100"),
            ("price", True),
            ("description", "a" * 20_001),
            ("sku", "a" * 65),
            ("sku", " "),
            ("stock", -1),
            ("stock", 1.5),
            ("status", "all"),
            ("images", [{"url": f"https://a.example/{n}"} for n in range(11)]),
            ("images", ["https://a.example/1.png"]),
            ("images", [{}]),
            ("images", [{"url": "https://a.example/1.png", "fileId": "a"}]),
        ],
    )
    def test_refuses_what_is_out_of_bounds(self, field: str, value: Any, api: Api) -> None:
        body = {"name": "x", "price": 1, field: value}
        assert refused_field(api, CREATE, body)["field"].split(".")[0] == field
        assert listed(api) == []

    def test_takes_what_is_on_the_bounds(self, api: Api) -> None:
        fields = {"description": "a" * 20_000, "sku": "ﷺ" * 64, "stock": 10**9}
        product = create(api, "a" * 255, 10**11, **fields)
        assert read(api, product) == product

    @pytest.mark.parametrize(
        ("barcode", "message"),
        [
            ("4006381333932", 'expected the check digit 1 at the end of "4006381333932"'),
            ("123", "expected 8, 12, 13 or 14 digits"),
            ("400638133393x", "expected 8, 12, 13 or 14 digits"),
        ],
    )
    def test_refuses_a_wrong_barcode_with_the_digit_it_expected(
        self, barcode: str, message: str, api: Api
    ) -> None:
        product = create(api)
        for path, body in (
            (CREATE, {"name": "x", "price": 1, "barcode": barcode}),
            (UPDATE, {"id": product["id"], "barcode": barcode}),
        ):
            assert refusal(api, path, body) == (400, "invalid_barcode")
            (error,) = api.refused("POST", path, body).data["errors"]
            assert error["field"] == "barcode"
            assert message in error["message"]

    def test_a_price_in_rubles_is_told_in_kopecks(self, api: Api) -> None:
        error = refused_field(api, CREATE, {"name": "x", "price": 199.9})
        assert error["field"] == "price"
        assert "kopecks: 19990" in error["message"]

    def test_an_sku_is_unique_in_the_workspace_whatever_its_case(
        self, api: Api, new_owner: Any
    ) -> None:
        create(api, sku="Ёж-1")
        for sku in ("Ёж-1", " ЁЖ-1", "еж-1"):
            assert refusal(api, CREATE, {"name": "x", "price": 1, "sku": sku}) == (409, "sku_taken")
        create(new_owner().api(), sku="Ёж-1")
        create(api, sku="Ёж-2")
        assert len(listed(api)) == 2

    def test_a_taken_sku_names_who_has_it_and_what_the_call_can_do(self, api: Api) -> None:
        first, second = create(api, sku="S"), create(api, sku="T")
        made = api.refused("POST", CREATE, {"name": "x", "price": 1, "sku": "s"}).data
        changed = api.refused("POST", UPDATE, {"id": second["id"], "sku": "s"}).data
        for refused in (made, changed):
            assert (refused["code"], refused["productId"]) == ("sku_taken", first["id"])
            assert first["id"] in refused["message"]
        assert "svc_update_product" in made["message"]
        assert "null" in changed["message"]
        assert "svc_update_product" not in changed["message"]

    def test_an_unknown_foreign_or_service_category_is_404(self, api: Api, new_owner: Any) -> None:
        strange = [new_id(), category(new_owner().api()), category(api, kind="service")]
        for unknown in strange:
            body = {"name": "x", "price": 1, "categoryId": unknown}
            answer = api.refused("POST", CREATE, body)
            assert (answer.status, answer.data["code"]) == (404, "not_found")
            assert "svc_list_categories" in answer.data["message"]
        assert listed(api) == []

    def test_the_same_key_makes_one_product(self, api: Api) -> None:
        body = {"name": "x", "price": 1, "sku": "S"}
        assert api.post(CREATE, body, key="k") == api.post(CREATE, body, key="k")
        assert len(listed(api)) == 1

    def test_is_found_by_its_barcode_in_any_form(self, api: Api, owner: Owner) -> None:
        workspace = owner.workspace.id
        product = create(api, barcode="012345678905")
        create(api, barcode="12345670")
        for form in ("012345678905", "0012345678905", "00012345678905"):
            found = products.with_barcode(workspace, barcodes.parse(form).gtin14)
            assert found is not None
            assert found.id == product["id"]
        assert products.with_barcode(workspace, barcodes.gtin14(EAN)) is None


class TestImages:
    def test_become_files_of_the_workspace(self, api: Api, away: Server) -> None:
        urls = [f"{AWAY}/{number}.png" for number in range(10)]
        product = create(api, images=[{"url": url} for url in urls])
        assert [(i["width"], i["height"]) for i in product["images"]] == [
            (8 + number, 8) for number in range(10)
        ]
        files = {file["id"]: file["url"] for file in files_of(api)}
        assert {i["fileId"]: i["url"] for i in product["images"]} == files
        assert all(AWAY not in image["url"] for image in product["images"])
        assert read(api, product) == product

    def test_that_cannot_be_taken_are_warnings(self, api: Api, away: Server) -> None:
        bad = [f"{AWAY}/none.png", "https://127.0.0.1/x.png", "http://a.example/x.png", "x"]
        body = {"name": "x", "price": 1, "images": [{"url": u} for u in [*bad, f"{AWAY}/1.png"]]}
        answer = api.post(CREATE, body)
        assert [image["width"] for image in answer["product"]["images"]] == [9]
        assert len(answer["warnings"]) == 4
        for url, warning in zip(bad, answer["warnings"], strict=True):
            assert url in warning

    def test_are_replaced_as_a_whole_and_own_ones_are_kept(self, api: Api, away: Server) -> None:
        product = create(api, images=[{"url": f"{AWAY}/{n}.png"} for n in (0, 1)])
        first, second = product["images"]
        asked = len(away.requests)
        swapped = update(api, product, images=[{"url": second["url"]}, {"url": first["url"]}])
        assert swapped["images"] == [second, first]
        assert len(away.requests) == asked
        added = update(api, product, images=[{"url": first["url"]}, {"url": f"{AWAY}/2.png"}])
        assert [image["width"] for image in added["images"]] == [8, 10]
        assert update(api, product, images=[])["images"] == []
        assert update(api, product, images=[{"url": first["url"]}])["images"] == [first]
        assert update(api, product, images=None)["images"] == []

    def test_stay_with_a_warning_if_none_of_the_new_ones_can_be_taken(
        self, api: Api, away: Server
    ) -> None:
        product = create(api, images=[{"url": f"{AWAY}/{n}.png"} for n in (0, 1)])
        new = [{"url": f"{AWAY}/none.png"}]
        answer = api.post(UPDATE, {"id": product["id"], "name": "New", "images": new})
        assert answer["product"]["images"] == product["images"]
        assert answer["product"]["name"] == "New"
        assert answer["warnings"][-1] == "None of the new images could be taken; the old ones stay."
        assert read(api, product)["images"] == product["images"]
        some = update(api, product, images=[*new, {"url": f"{AWAY}/2.png"}])
        assert [image["width"] for image in some["images"]] == [10]

    def test_may_be_files_of_the_workspace_by_their_ids(self, api: Api, away: Server) -> None:
        (first,) = create(api, images=[{"url": f"{AWAY}/0.png"}])["images"]
        asked = len(away.requests)
        product = create(api, images=[{"fileId": first["fileId"]}])
        assert product["images"] == [first]
        mixed = [{"url": f"{AWAY}/1.png"}, {"fileId": first["fileId"]}, {"url": first["url"]}]
        assert update(api, product, images=mixed)["images"][1:] == [first, first]
        assert len(away.requests) == asked + 1

    def test_of_an_unknown_file_are_404_before_anything_is_fetched(
        self, api: Api, away: Server, new_owner: Any
    ) -> None:
        (theirs,) = create(new_owner().api(), images=[{"url": f"{AWAY}/0.png"}])["images"]
        product, asked = create(api), len(away.requests)
        for unknown in (new_id(), theirs["fileId"]):
            images = [{"url": f"{AWAY}/1.png"}, {"fileId": unknown}]
            body = {"name": "x", "price": 1, "images": images}
            assert refusal(api, CREATE, body) == (404, "not_found")
            body = {"id": product["id"], "images": images}
            assert refusal(api, UPDATE, body) == (404, "not_found")
        assert len(away.requests) == asked

    def test_of_a_file_that_is_no_image_are_400(self, api: Api) -> None:
        text = api.post("/api/files/upload", {"name": "a.txt", "content": "aGVsbG8="})["file"]
        body = {"name": "x", "price": 1, "images": [{"fileId": text["id"]}]}
        answer = api.refused("POST", CREATE, body)
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "images.0.fileId")
        assert "text/plain" in answer.data["message"]

    def test_are_not_fetched_for_an_unknown_category(
        self, api: Api, away: Server, new_owner: Any
    ) -> None:
        product, images = create(api), [{"url": f"{AWAY}/1.png"}]
        for unknown in (new_id(), category(new_owner().api()), category(api, kind="service")):
            more = {"categoryId": unknown, "images": images}
            assert refusal(api, CREATE, {"name": "x", "price": 1, **more}) == (404, "not_found")
            assert refusal(api, UPDATE, {"id": product["id"], **more}) == (404, "not_found")
        assert refusal(api, UPDATE, {"id": new_id(), "images": images}) == (404, "not_found")
        assert away.paths == []

    def test_from_elsewhere_make_a_heavy_call_and_own_ones_do_not(
        self, api: Api, away: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = create(api, images=[{"url": f"{AWAY}/1.png"}])["images"][0]["url"]
        monkeypatch.setattr(
            limits, "settings", lambda: replace(service_settings.settings(), rate_limit_scale=0)
        )
        product = create(api, images=[{"url": mine}])
        update(api, product, images=[{"url": mine}], name="New")
        update(api, product, images=None)
        strange = {"images": [{"url": mine}, {"url": f"{AWAY}/2.png"}]}
        for path, body in (
            (CREATE, {"name": "x", "price": 1, **strange}),
            (UPDATE, {"id": product["id"], **strange}),
        ):
            answer = api.refused("POST", path, body)
            assert (answer.status, answer.data["code"]) == (429, "rate_limited")
            assert int(answer.headers["Retry-After"]) <= 60
        assert away.paths == ["/1.png"]

    def test_of_a_refused_call_leave_nothing(self, api: Api, away: Server) -> None:
        create(api, sku="S")
        body = {"name": "x", "price": 1, "sku": "s", "images": [{"url": f"{AWAY}/1.png"}]}
        assert refusal(api, CREATE, body) == (409, "sku_taken")
        assert files_of(api) == []


def files_of(api: Api) -> list[Any]:
    """Return the files in the folder of the products' images."""
    folders = {f["name"]: f["id"] for f in api.get("/api/file-folders")["folders"]}
    if "products" not in folders:
        return []
    found: list[Any] = api.get(f"/api/files/list?size=100&folderId={folders['products']}")["files"]
    return found


class TestUpdateProduct:
    def test_changes_what_is_sent_and_nothing_else(self, api: Api, time: Time) -> None:
        product = create(
            api, sku="S", stock=3, barcode=EAN, description="d", categoryId=category(api)
        )
        time.pass_by(minutes=5)
        changes = {"name": "Roll", "price": 7, "status": "inactive", "sortOrder": -5}
        after = update(api, product, **changes)
        assert after == product | changes | {"updatedAt": "2027-01-15T12:05:00.000Z"}
        assert read(api, product) == after

    def test_null_clears_what_is_optional(self, api: Api, owner: Owner) -> None:
        product = create(
            api, sku="S", stock=3, barcode=EAN, description="d", categoryId=category(api)
        )
        cleared = dict.fromkeys(("sku", "stock", "barcode", "description", "categoryId"))
        after = update(api, product, **cleared)
        assert cleared.items() <= after.items()
        create(api, sku="S")
        assert products.with_barcode(owner.workspace.id, barcodes.gtin14(EAN)) is None

    @pytest.mark.parametrize("field", ["name", "price", "status", "sortOrder", "stockDelta"])
    def test_null_does_not_clear_what_is_not(self, field: str, api: Api) -> None:
        product = create(api, stock=1)
        after = update(api, product, **{field: None}, description="Kept")
        assert (after.get(field), after["stock"]) == (product.get(field), 1)

    def test_without_a_change_is_400(self, api: Api) -> None:
        answer = api.refused("POST", UPDATE, {"id": create(api)["id"], "color": "red"})
        assert answer.status == 400
        assert answer.data["message"].startswith("Nothing to change")
        assert '"color"' in answer.data["warnings"][0]

    def test_moves_the_claim_on_the_sku(self, api: Api) -> None:
        first, second = create(api, sku="A"), create(api, sku="B")
        assert refusal(api, UPDATE, {"id": second["id"], "sku": "a"}) == (409, "sku_taken")
        assert update(api, first, sku="a")["sku"] == "a"
        update(api, first, sku="C")
        assert update(api, second, sku="A")["sku"] == "A"
        assert refusal(api, UPDATE, {"id": second["id"], "sku": "C"}) == (409, "sku_taken")

    def test_moves_the_look_up_by_barcode(self, api: Api, owner: Owner) -> None:
        product = create(api, barcode="012345678905")
        assert update(api, product, barcode="0012345678905")["barcode"] == "0012345678905"
        update(api, product, barcode=EAN)
        workspace = owner.workspace.id
        assert products.with_barcode(workspace, "00012345678905") is None
        assert products.with_barcode(workspace, barcodes.gtin14(EAN)) is not None

    def test_an_unknown_category_is_404(self, api: Api, new_owner: Any) -> None:
        product = create(api)
        for unknown in (new_id(), category(new_owner().api()), category(api, kind="service")):
            body = {"id": product["id"], "categoryId": unknown}
            assert refusal(api, UPDATE, body) == (404, "not_found")

    def test_counts_it_in_its_new_category(self, api: Api, owner: Owner) -> None:
        bread, cakes = category(api), category(api, "Cakes")
        product = create(api, categoryId=bread)
        update(api, product, categoryId=cakes)
        assert counters.read_facet(owner.workspace.id, "PRODUCT", "category_id") == {
            f"category_id:{cakes}": 1
        }


class TestStockDelta:
    def test_adds_and_takes(self, api: Api) -> None:
        product = create(api, stock=5)
        assert update(api, product, stockDelta=-5)["stock"] == 0
        assert update(api, product, stockDelta=7)["stock"] == 7
        assert update(api, product, stockDelta=0)["stock"] == 7
        assert read(api, product)["stock"] == 7

    def test_goes_with_other_changes(self, api: Api) -> None:
        product = create(api, stock=5)
        after = update(api, product, stockDelta=-2, price=9)
        assert (after["stock"], after["price"]) == (3, 9)
        assert read(api, product) == after

    @pytest.mark.parametrize("more", [{}, {"price": 9}])
    def test_below_zero_is_409_with_what_there_is(self, more: Any, api: Api) -> None:
        product = create(api, stock=5)
        answer = api.refused("POST", UPDATE, {"id": product["id"], "stockDelta": -6, **more})
        assert (answer.status, answer.data["code"]) == (409, "insufficient_stock")
        assert answer.data["stock"] == 5
        assert read(api, product) == product

    @pytest.mark.parametrize("more", [{}, {"price": 9}])
    def test_past_the_limit_is_409(self, more: Any, api: Api) -> None:
        product = create(api, stock=10**9)
        body = {"id": product["id"], "stockDelta": 1, **more}
        assert refusal(api, UPDATE, body) == (409, "conflict")
        assert read(api, product) == product

    def test_of_a_stock_that_is_not_tracked_is_409(self, api: Api) -> None:
        product = create(api)
        answer = api.refused("POST", UPDATE, {"id": product["id"], "stockDelta": 1})
        assert (answer.status, answer.data["code"]) == (409, "conflict")
        assert "Set stock to a number first" in answer.data["message"]

    def test_with_stock_is_400(self, api: Api) -> None:
        product = create(api, stock=1)
        body = {"id": product["id"], "stock": 2, "stockDelta": 1}
        answer = api.refused("POST", UPDATE, body)
        assert answer.status == 400
        assert "not both" in answer.data["message"]

    def test_alone_is_audited_as_a_change_of_the_product(self, api: Api, owner: Owner) -> None:
        product = create(api, stock=1)
        update(api, product, stockDelta=1)
        last = audit.latest(owner.workspace.id)[0]
        assert (last.operation, last.resources[0]) == ("update_product", f"product:{product['id']}")
        assert last.fields == ["stockDelta"]

    def test_under_a_key_is_added_once(self, api: Api) -> None:
        product = create(api, stock=5)
        body = {"id": product["id"], "stockDelta": -1}
        assert api.post(UPDATE, body, key="k") == api.post(UPDATE, body, key="k")
        assert read(api, product)["stock"] == 4


class TestDeleteProduct:
    def test_frees_its_sku_and_barcode(self, api: Api, owner: Owner) -> None:
        product = create(api, sku="S", barcode=EAN, categoryId=category(api))
        assert api.post(DELETE, {"id": product["id"]}) == {
            "status": True,
            "id": product["id"],
            "deleted": True,
        }
        assert listed(api) == []
        assert api.refused("GET", f"/api/products/{product['id']}").status == 404
        assert counters.read(owner.workspace.id, "PRODUCT") == {}
        assert counters.read_facet(owner.workspace.id, "PRODUCT", "category_id") == {}
        assert products.with_barcode(owner.workspace.id, barcodes.gtin14(EAN)) is None
        create(api, sku="S")

    def test_keeps_it_for_a_month_out_of_sight(self, api: Api, owner: Owner, time: Time) -> None:
        product = create(api)
        api.post(DELETE, {"id": product["id"]})
        kept = PRODUCTS.row.find(PRODUCTS.trash(owner.workspace.id), product["id"])
        assert kept is not None
        assert (kept.expires - time.now).days == 30

    def test_again_is_404(self, api: Api) -> None:
        product = create(api)
        api.post(DELETE, {"id": product["id"]})
        assert refusal(api, DELETE, {"id": product["id"]}) == (404, "not_found")

    def test_dry_changes_nothing(self, api: Api) -> None:
        product = create(api, sku="S")
        before = everything()
        answer = api.post(DELETE, {"id": product["id"], "dryRun": True})
        assert answer["deleted"] is False
        assert everything() == before


class TestDuplicateProduct:
    def test_makes_an_inactive_copy_without_what_is_unique(self, api: Api, away: Server) -> None:
        source = create(
            api,
            sku="S",
            stock=4,
            barcode=EAN,
            description="d",
            categoryId=category(api),
            images=[{"url": f"{AWAY}/1.png"}],
        )
        copy = api.post(DUPLICATE, {"id": source["id"]})["product"]
        made = {"id", "createdAt", "updatedAt", "sortOrder"}
        expected = source | {
            "name": "Loaf (копия)",
            "sku": None,
            "barcode": None,
            "status": "inactive",
        }
        assert {k: v for k, v in copy.items() if k not in made} == {
            k: v for k, v in expected.items() if k not in made
        }
        assert copy["id"] != source["id"]
        assert len(files_of(api)) == 1
        assert read(api, copy) == copy
        assert read(api, source) == source

    def test_stands_right_behind_its_source(self, api: Api) -> None:
        first = create(api, "A")
        create(api, "B")
        api.post(DUPLICATE, {"id": first["id"], "name": "A2"})
        api.post(DUPLICATE, {"id": first["id"], "name": "A1"})
        assert names(api) == "A A1 A2 B"

    def test_stands_behind_its_source_where_there_is_no_room(self, api: Api) -> None:
        for number, name in enumerate("ABC"):
            update(api, create(api, name), sortOrder=number)
        source = listed(api)[1]
        api.post(DUPLICATE, {"id": source["id"], "name": "B2"})
        assert names(api) == "A B B2 C"

    def test_of_a_long_name_fits_and_a_given_one_is_taken(self, api: Api) -> None:
        source = create(api, "x" * 255)
        copy = api.post(DUPLICATE, {"id": source["id"]})["product"]
        assert copy["name"] == "x" * 247 + " (копия)"
        assert api.post(DUPLICATE, {"id": source["id"], "name": " Y "})["product"]["name"] == "Y"

    def test_of_an_unknown_product_is_404(self, api: Api) -> None:
        assert refusal(api, DUPLICATE, {"id": new_id()}) == (404, "not_found")


class TestReorderProducts:
    def test_puts_the_listed_first_and_keeps_the_rest(self, api: Api) -> None:
        ids = {name: create(api, name)["id"] for name in "ABCDE"}
        answer = api.post(REORDER, {"ids": [ids["D"], ids["B"]]})
        assert names(api) == "D B A C E"
        assert [place["id"] for place in answer["products"]] == [ids["D"], ids["B"]]
        orders = {product["id"]: product["sortOrder"] for product in listed(api)}
        assert all(orders[place["id"]] == place["sortOrder"] for place in answer["products"])

    def test_rewrites_only_what_moves(self, api: Api) -> None:
        ids = [create(api, name)["id"] for name in "ABCDE"]
        before = {p["id"]: p for p in listed(api)}
        api.post(REORDER, {"ids": [ids[1], ids[2], ids[0], ids[3], ids[4]]})
        assert names(api) == "B C A D E"
        assert [p["name"] for p in listed(api) if p != before[p["id"]]] == ["A"]

    def test_of_what_is_in_order_writes_nothing(self, api: Api) -> None:
        ids = [create(api, name)["id"] for name in "ABC"]
        before = everything()
        api.post(REORDER, {"ids": ids[:2]})
        assert everything().keys() == before.keys()

    def test_too_many_for_one_transaction_are_finished_by_the_runner_if_need_be(
        self, time: Time, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bread = category(api)
        ids = make(owner, 60, category_id=bread)
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: False)
            api.post(REORDER, {"ids": ids[::-1]})
        assert run_jobs()["late-entries"] == 1
        assert [p["id"] for p in listed(api, categoryId=bread, size=60)] == ids[::-1]

    def test_in_a_category_leaves_the_others_alone(self, api: Api) -> None:
        bread = category(api)
        ids = {
            name: create(api, name, categoryId=bread if name in "BDF" else None)["id"]
            for name in "ABCDEF"
        }
        api.post(REORDER, {"ids": [ids["F"], ids["D"]], "categoryId": bread})
        assert names(api, categoryId=bread) == "F D B"
        assert [n for n in names(api).split() if n in "ACE"] == ["A", "C", "E"]

    def test_names_the_missing_and_moves_nothing(self, api: Api, new_owner: Any) -> None:
        ids = [create(api, name)["id"] for name in "ABC"]
        foreign, unknown = create(new_owner().api())["id"], new_id()
        answer = api.refused("POST", REORDER, {"ids": [ids[2], foreign, unknown]})
        assert answer.status == 404
        assert foreign in answer.data["message"]
        assert unknown in answer.data["message"]
        assert ids[2] not in answer.data["message"]
        assert names(api) == "A B C"

    def test_takes_only_products_of_the_category(self, api: Api) -> None:
        bread = category(api)
        inside, outside = create(api, categoryId=bread)["id"], create(api)["id"]
        body = {"ids": [inside, outside], "categoryId": bread}
        answer = api.refused("POST", REORDER, body)
        assert answer.status == 404
        assert outside in answer.data["message"]
        assert inside not in answer.data["message"]
        assert refusal(api, REORDER, {"ids": [inside], "categoryId": new_id()})[0] == 404

    @pytest.mark.parametrize("ids", [[], ["a", "a"], [str(n) for n in range(91)]])
    def test_takes_one_to_ninety_different_ids(self, ids: list[str], api: Api) -> None:
        assert refused_field(api, REORDER, {"ids": ids})["field"] == "ids"

    def test_ninety_at_once_fit_a_transaction(self, api: Api, owner: Owner) -> None:
        bread = category(api)
        ids = make(owner, 90, category_id=bread)[::-1]
        api.post(REORDER, {"ids": ids, "categoryId": bread})
        assert [product["id"] for product in listed(api)] == ids

    @pytest.mark.slow
    def test_ninety_with_60_kb_of_description_move_without_it(self, api: Api, owner: Owner) -> None:
        ids = make(owner, 90, description="ー" * 20_000)[::-1]
        api.post(REORDER, {"ids": ids})
        found = PRODUCTS.fetch(owner.workspace.id, ids)
        assert [product.id for product in sorted(found, key=lambda p: p.sort_order)] == ids
        assert {product.description for product in found} == {"ー" * 20_000}

    def test_without_room_before_the_first_is_409(self, api: Api, owner: Owner) -> None:
        lowest, other = create(api, "A"), create(api, "B")
        unit = UnitOfWork(owner.workspace.id, "test")
        product = PRODUCTS.find(owner.workspace.id, lowest["id"])
        assert product is not None
        product.sort_order = -(2**52)
        unit.save(product)
        unit.commit()
        assert refusal(api, REORDER, {"ids": [other["id"]]}) == (409, "conflict")

    @examples(20)
    @given(moves=st.lists(st.tuples(st.permutations(range(6)), st.integers(1, 6)), max_size=5))
    def test_any_sequence_of_moves_is_that_of_a_list(
        self, moves: list[tuple[list[int], int]], new_owner: Any
    ) -> None:
        owner = new_owner()
        api, model = owner.api(), make(owner, 6, sort_order=lambda number: number // 2)
        first = list(model)
        for order, count in moves:
            ids = [first[number] for number in order[:count]]
            api.post(REORDER, {"ids": ids})
            model = ids + [product for product in model if product not in ids]
            assert [product["id"] for product in listed(api)] == model


def outcomes(answer: Any) -> list[tuple[int, str]]:
    return [(result["status"], result["message"].split(".")[0]) for result in answer["results"]]


class TestBulkProducts:
    @pytest.fixture
    def some(self, api: Api) -> list[Any]:
        """Three products, the last inactive."""
        return [
            create(api, "A", 105, stock=1),
            create(api, "B", 15, sku="B"),
            create(api, "C", 0, status="inactive"),
        ]

    def bulk(self, api: Api, some: list[Any], action: str, **more: Any) -> Any:
        ids = [product["id"] for product in some]
        return api.post(BULK, {"ids": ids, "action": action, **more})

    @pytest.mark.parametrize(
        ("action", "more", "field", "after"),
        [
            ("activate", {}, "status", ["active"] * 3),
            ("deactivate", {}, "status", ["inactive"] * 3),
            ("setPrice", {"value": 7}, "price", [7, 7, 7]),
            ("changePricePercent", {"value": -10}, "price", [95, 14, 0]),
            ("changePricePercent", {"value": 12.5}, "price", [118, 17, 0]),
            ("changePricePercent", {"value": -100}, "price", [0, 0, 0]),
            ("changePricePercent", {"value": 1000}, "price", [1155, 165, 0]),
            ("setStock", {"value": 4}, "stock", [4, 4, 4]),
            ("setStock", {"value": None}, "stock", [None, None, None]),
        ],
    )
    def test_does_it_to_each(
        self, action: str, more: Any, field: str, after: Any, api: Api, some: list[Any]
    ) -> None:
        before = [product[field] for product in some]
        answer = self.bulk(api, some, action, **more)
        words = ["unchanged" if b == a else "changed" for b, a in zip(before, after, strict=True)]
        assert outcomes(answer) == [(200, word) for word in words]
        assert [result["before"] for result in answer["results"]] == before
        assert [result["after"] for result in answer["results"]] == after
        assert answer["summary"] == {"ok": 3, "failed": 0}
        assert [product[field] for product in listed(api)] == after

    def test_moves_to_a_category_and_out_of_it(self, api: Api, some: list[Any]) -> None:
        bread = category(api)
        self.bulk(api, some, "setCategory", value=bread)
        assert names(api, categoryId=bread) == "A B C"
        self.bulk(api, some[:1], "setCategory", value=None)
        assert names(api, categoryId=bread) == "B C"

    def test_an_unknown_category_is_404_for_the_call(self, api: Api, some: list[Any]) -> None:
        for unknown in (new_id(), category(api, kind="service")):
            body = {"ids": [some[0]["id"]], "action": "setCategory", "value": unknown}
            assert refusal(api, BULK, body) == (404, "not_found")

    def test_an_unknown_or_foreign_id_fails_alone(
        self, api: Api, some: list[Any], new_owner: Any
    ) -> None:
        strange = [create(new_owner().api()), {"id": new_id()}]
        answer = self.bulk(api, [some[0], *strange, some[1]], "setPrice", value=7)
        missing = (404, "No product has this id in the workspace")
        assert outcomes(answer) == [(200, "changed"), missing, missing, (200, "changed")]
        assert answer["summary"] == {"ok": 2, "failed": 2}
        assert answer["status"] is True

    def test_a_price_past_the_limit_fails_alone(self, api: Api, some: list[Any]) -> None:
        dear = create(api, "D", 10**11)
        answer = self.bulk(api, [dear, some[0]], "changePricePercent", value=1)
        assert [result["status"] for result in answer["results"]] == [400, 200]
        assert "100,000,000,000" in answer["results"][0]["message"]
        assert [result["after"] for result in answer["results"]] == [None, 106]
        assert read(api, dear) == dear

    def test_deletes_when_confirmed(self, api: Api, some: list[Any]) -> None:
        body = {"ids": [product["id"] for product in some], "action": "delete"}
        assert refusal(api, BULK, body) == (400, "confirmation_required")
        assert len(listed(api)) == 3
        answer = api.post(BULK, body | {"confirm": True})
        assert outcomes(answer) == [(200, "deleted")] * 3
        assert listed(api) == []
        create(api, sku="b")

    @pytest.mark.parametrize(
        ("action", "value", "done", "would"),
        [
            ("delete", None, "deleted", "would be deleted"),
            ("setPrice", 15, "changed", "would change"),
            ("changePricePercent", 10, "changed", "would change"),
            ("deactivate", None, "changed", "would change"),
        ],
    )
    def test_dry_changes_nothing_and_says_what_would_be(
        self, action: str, value: Any, done: str, would: str, api: Api, some: list[Any]
    ) -> None:
        more = {"confirm": True} | ({} if value is None else {"value": value})
        both = [*some, {"id": new_id()}]
        before = everything()
        dry = self.bulk(api, both, action, **more, dryRun=True)
        assert everything() == before
        real = self.bulk(api, both, action, **more)
        assert {result["message"] for result in real["results"][:3]} <= {done, "unchanged"}
        for one, other in zip(dry["results"], real["results"], strict=True):
            assert one["message"] == {done: would}.get(other["message"], other["message"])
            assert one | {"message": ""} == other | {"message": ""}

    def test_a_deletion_names_what_goes(self, api: Api, some: list[Any]) -> None:
        dry = self.bulk(api, some, "delete", dryRun=True)["results"]
        assert [(each["before"], each["after"]) for each in dry] == [(name, None) for name in "ABC"]

    @pytest.mark.parametrize(
        ("action", "value"),
        [
            ("setPrice", None),
            ("setPrice", -1),
            ("setPrice", 1.5),
            ("setPrice", "7"),
            ("setPrice", 10**11 + 1),
            ("setStock", -1),
            ("setStock", "1"),
            ("setCategory", 5),
            ("setCategory", ""),
            ("changePricePercent", "10%"),
            ("changePricePercent", None),
            ("changePricePercent", 1000.01),
            ("changePricePercent", -100.01),
            ("changePricePercent", True),
        ],
    )
    def test_refuses_a_value_that_the_action_does_not_take(
        self, action: str, value: Any, api: Api, some: list[Any]
    ) -> None:
        body = {"ids": [some[0]["id"]], "action": action, "value": value}
        assert refused_field(api, BULK, body)["field"] == "value"
        assert read(api, some[0]) == some[0]

    @pytest.mark.parametrize(
        "action", ["setPrice", "setStock", "setCategory", "changePricePercent"]
    )
    def test_demands_the_value_of_an_action_that_takes_one(
        self, action: str, api: Api, some: list[Any]
    ) -> None:
        error = refused_field(api, BULK, {"ids": [some[0]["id"]], "action": action})
        assert error == {"field": "value", "message": "is required"}

    def test_warns_of_a_value_without_meaning(self, api: Api, some: list[Any]) -> None:
        answer = self.bulk(api, some, "activate", value=1)
        assert answer["warnings"] == ["value has no meaning for activate and was ignored."]

    @pytest.mark.parametrize("ids", [[], ["a", "a"], [str(n) for n in range(101)]])
    def test_takes_one_to_a_hundred_different_ids(self, ids: list[str], api: Api) -> None:
        assert refused_field(api, BULK, {"ids": ids, "action": "activate"})["field"] == "ids"

    def test_a_hundred_are_deleted_in_one_call(self, api: Api, owner: Owner) -> None:
        made = hundred(owner)
        body = {"ids": made, "action": "delete", "confirm": True}
        assert api.post(BULK, body)["summary"] == {"ok": 100, "failed": 0}
        assert counters.read(owner.workspace.id, "PRODUCT") == {}

    def test_what_fails_midway_is_told_and_the_rest_is_done(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = hundred(owner)
        commit, commits = UnitOfWork.commit, itertools.count()

        def fail_once(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 1:
                raise UnavailableError
            commit(unit, *args)

        monkeypatch.setattr(UnitOfWork, "commit", fail_once)
        answer = api.post(BULK, {"ids": made, "action": "setPrice", "value": 7})
        assert [r["status"] for r in answer["results"]] == [200] * 15 + [503] * 15 + [200] * 70
        assert answer["summary"] == {"ok": 85, "failed": 15}

    @pytest.mark.slow
    def test_a_call_that_died_goes_on_under_its_key(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Prices are raised once, however far the first call came."""
        made = hundred(owner)
        body = {"ids": made, "action": "changePricePercent", "value": 10}
        commit, commits = UnitOfWork.commit, itertools.count()

        def die(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 3:
                raise KeyboardInterrupt
            commit(unit, *args)

        with monkeypatch.context() as dying:
            dying.setattr(UnitOfWork, "commit", die)
            with pytest.raises(KeyboardInterrupt):
                api.call("POST", BULK, body, {"Idempotency-Key": "k"})
        assert Counter(p["price"] for p in listed(api)) == {110: 45, 100: 55}
        other = api.refused("POST", BULK, body | {"value": 20}, **{"Idempotency-Key": "k"})
        assert (other.status, other.data["code"]) == (409, "idempotency_mismatch")
        assert Counter(p["price"] for p in listed(api)) == {110: 45, 100: 55}
        answer = api.post(BULK, body, key="k")
        assert answer["summary"] == {"ok": 100, "failed": 0}
        assert {p["price"] for p in listed(api)} == {110}
        assert api.post(BULK, body, key="k") == answer
        assert {p["price"] for p in listed(api)} == {110}

    def test_each_step_is_audited(self, api: Api, owner: Owner) -> None:
        self.bulk(api, [{"id": product} for product in hundred(owner)], "deactivate")
        made = [row for row in audit.latest(owner.workspace.id) if row.operation == "bulk_products"]
        assert len(made) == 7
        assert sum(len(row.resources) for row in made) == 100
        assert {tuple(row.fields) for row in made} == {("ids", "action")}


def make(owner: Owner, count: int, **fields: Any) -> list[str]:
    """Make products without the API, at 100 kopecks; return their ids.

    A field may be a function of a product's number.
    """
    ids = []
    for start in range(0, count, 20):
        unit = UnitOfWork(owner.workspace.id, "test")
        for number in range(start, min(start + 20, count)):
            values = {"name": f"{number}", "price": 100, "status": "active", "sort_order": number}
            own = {k: v(number) if callable(v) else v for k, v in fields.items()}
            product = PRODUCTS.new(owner.workspace.id, **values | own)
            unit.create(product)
            ids.append(product.id)
        unit.commit()
    return ids


def hundred(owner: Owner) -> list[str]:
    """Make a hundred products with SKU and barcode: the most to change of each."""
    return make(owner, 100, sku=lambda number: f"S{number}", barcode=EAN)


class TestOverTheToolServer:
    def test_a_product_lives_and_dies_by_tools(self, api: Api) -> None:
        def call(tool: str, **arguments: Any) -> Any:
            params = {"name": f"svc_{tool}", "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            result = json.loads(api.call("POST", "/api/mcp", message).body)["result"]
            return json.loads(result["content"][0]["text"])["data"]

        bread = call("create_category", name="Bread")["category"]["id"]
        loaf = call("create_product", name="Loaf", price=100, stock=3, categoryId=bread)["product"]
        assert call("update_product", id=loaf["id"], stockDelta=-1)["product"]["stock"] == 2
        assert call("update_product", id=loaf["id"], stockDelta=-3)["code"] == "insufficient_stock"
        copy = call("duplicate_product", id=loaf["id"])["product"]["id"]
        call("reorder_products", ids=[copy])
        assert [p["id"] for p in call("list_products")["products"]] == [copy, loaf["id"]]
        assert call("bulk_products", ids=[copy], action="activate")["summary"]["ok"] == 1
        assert call("list_categories")["categories"][0]["itemsCount"] == 2
        assert call("delete_product", id=loaf["id"])["deleted"] is True
        assert call("get_product", id=loaf["id"])["code"] == "not_found"
        assert call("delete_category", id=bread)["movedItems"] == 1
        assert call("get_product", id=copy)["product"]["categoryId"] is None


def statuses(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    return Counter((a.status, a.data.get("code")) for a in answers)


@pytest.mark.store
class TestAtOnce:
    @pytest.mark.slow
    def test_fifty_sell_one_stock_exactly_and_never_below_zero(self, api: Api) -> None:
        product = create(api, stock=30)
        body = {"id": product["id"], "stockDelta": -1}
        answers = at_once(50, lambda _: api.call("POST", UPDATE, body))
        assert statuses(answers) == {(200, None): 30, (409, "insufficient_stock"): 20}
        assert read(api, product)["stock"] == 0
        told = [a.data for a in answers if a.status == 200 and "warnings" not in a.data]
        assert len({data["product"]["stock"] for data in told}) == len(told)

    def test_who_does_not_insist_on_the_stock_it_read_is_exact_as_well(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(records, "EXACT_TRIES", 0)
        product = create(api, stock=30)
        deltas = [-1, 2] * 25

        def act(number: int) -> Answer:
            return api.call("POST", UPDATE, {"id": product["id"], "stockDelta": deltas[number]})

        answers = at_once(50, act)
        assert statuses(answers) == {(200, None): 50}
        assert read(api, product)["stock"] == 30 + sum(deltas)
        assert all(answer.data["warnings"] for answer in answers)

    def test_a_stock_survives_other_changes_of_its_product(self, api: Api) -> None:
        product = create(api, stock=100)

        def act(number: int) -> Answer:
            change = {"stockDelta": -1} if number % 2 else {"name": f"Name {number}"}
            return api.call("POST", UPDATE, {"id": product["id"], **change})

        assert statuses(at_once(16, act)) == {(200, None): 16}
        assert read(api, product)["stock"] == 92

    def test_of_many_claims_on_one_sku_one_wins(self, api: Api) -> None:
        body = {"name": "x", "price": 1, "sku": "S"}
        answers = at_once(20, lambda _: api.call("POST", CREATE, body))
        assert statuses(answers) == {(200, None): 1, (409, "sku_taken"): 19}

    def test_of_ten_reorders_of_the_same_products_one_wins_whole(self, api: Api) -> None:
        ids = [create(api, str(number))["id"] for number in range(6)]
        wanted = [
            list(order) for order in itertools.islice(itertools.permutations(ids), 0, 700, 70)
        ]
        answers = at_once(10, lambda n: api.call("POST", REORDER, {"ids": wanted[n]}))
        assert statuses(answers) == {(200, None): 10}
        assert [product["id"] for product in listed(api)] in wanted

    def test_reorders_of_different_products_come_one_after_the_other(self, api: Api) -> None:
        ids = [create(api, str(number))["id"] for number in range(13)]
        groups = [ids[start : start + 3] for start in range(0, 12, 3)]
        answers = at_once(4, lambda n: api.call("POST", REORDER, {"ids": groups[n]}))
        assert statuses(answers) == {(200, None): 4}
        order = [product["id"] for product in listed(api)]
        assert order[12] == ids[12]
        assert sorted(order[start : start + 3] for start in range(0, 12, 3)) == sorted(groups)

    def test_bulk_changes_of_the_same_products_do_not_mix_up_the_counters(
        self, api: Api, owner: Owner
    ) -> None:
        ids = [create(api, str(number))["id"] for number in range(30)]

        def act(number: int) -> Answer:
            action = ("activate", "deactivate")[number % 2]
            return api.call("POST", BULK, {"ids": ids, "action": action})

        answers = at_once(6, act)
        assert {a.data["summary"]["failed"] for a in answers} == {0}
        states = Counter(f"status:{product['status']}" for product in listed(api))
        assert counters.read(owner.workspace.id, "PRODUCT") == states | {"total": 30}

    def test_a_bulk_call_repeated_at_once_under_one_key_is_done_once(self, api: Api) -> None:
        ids = [create(api, str(number), 100)["id"] for number in range(30)]
        body = {"ids": ids, "action": "changePricePercent", "value": 10}
        answers = at_once(6, lambda _: api.call("POST", BULK, body, {"Idempotency-Key": "k"}))
        assert {answer.status for answer in answers} == {200}
        assert len({answer.body for answer in answers}) == 1
        assert {product["price"] for product in listed(api)} == {110}

    def test_lost_races_past_patience_are_a_503_for_their_items(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        product = create(api)
        fetch = PRODUCTS.fetch

        def stale(self: Any, workspace_id: str, ids: Any, *more: Any) -> Any:
            found = fetch(workspace_id, ids)
            update(api, product, name=f"Name {new_id()}")
            return found

        monkeypatch.setattr(type(PRODUCTS), "fetch", stale)
        answer = api.post(BULK, {"ids": [product["id"]], "action": "setPrice", "value": 7})
        assert [result["status"] for result in answer["results"]] == [503]
