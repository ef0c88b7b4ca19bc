"""Tests of creating and updating many products by their SKUs in one call."""

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import deadline
from chalicelib.core import settings as service_settings
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.domains.catalog.operations import upsert as module
from chalicelib.domains.catalog.operations.products import ProductPatch
from chalicelib.domains.catalog.operations.upsert_items import UpsertItem
from chalicelib.engine import audit, limits
from chalicelib.engine.listing import counters
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import (
    Answer,
    Api,
    Owner,
    Time,
    all_rows,
    run_concurrently,
)
from tests.factories.products import (
    EAN,
    IMAGE_SERVER,
    create,
    create_category,
    image_files,
    list_products,
    names,
    read,
    update,
)
from tests.fakes.internet import Internet, Server, http_response

UPSERT = "/api/products/upsert"


def upsert(api: Api, *items: Any, **more: Any) -> Any:
    return api.post(UPSERT, {"items": [*items], **more})


def outcomes(answer: Any) -> list[tuple[int, str]]:
    return [(result["status"], result["message"]) for result in answer["results"]]


def item(sku: str, **fields: Any) -> dict[str, Any]:
    return {"sku": sku, "name": f"Name {sku}", "price": 100, **fields}


class TestUpsertProducts:
    def test_new_skus_are_created_and_existing_ones_updated(self, api: Api) -> None:
        old = create(api, "Loaf", 100, sku="Ёж-1", stock=3, description="d")
        bread = create_category(api)
        answer = upsert(
            api,
            {"sku": "еж-1", "price": 7},
            item("N-1", barcode="4 006381 333931", categoryId=bread, stock=0, status="inactive"),
            item("N-2"),
        )
        assert outcomes(answer) == [(200, "updated"), (200, "created"), (200, "created")]
        assert answer["summary"] == {"ok": 3, "failed": 0}
        assert [result["created"] for result in answer["results"]] == [False, True, True]
        assert [result["sku"] for result in answer["results"]] == ["еж-1", "N-1", "N-2"]
        first, second, third = list_products(api)
        assert [result["id"] for result in answer["results"]] == [
            old["id"],
            second["id"],
            third["id"],
        ]
        assert first | {"updatedAt": ""} == old | {"price": 7, "updatedAt": ""}
        expected = {"barcode": EAN, "categoryId": bread, "stock": 0, "status": "inactive"}
        assert expected.items() <= second.items()
        assert third["status"] == "active"

    def test_repeating_an_upsert_changes_nothing(self, api: Api, owner: Owner) -> None:
        items = [
            item(f"S{number}", categoryId=create_category(api, f"c{number}")) for number in range(3)
        ]
        upsert(api, *items)
        products_before = list_products(api)
        changes = len(audit.latest(owner.workspace.id))
        answer = upsert(api, *items)
        assert outcomes(answer) == [(200, "unchanged")] * 3
        assert list_products(api) == products_before
        assert len(audit.latest(owner.workspace.id)) == changes

    def test_null_clears_optional_fields_and_omitted_fields_are_kept(self, api: Api) -> None:
        product = create(
            api, sku="S", description="d", barcode=EAN, stock=1, categoryId=create_category(api)
        )
        upsert(api, {"sku": "S", "stock": None, "barcode": None})
        assert read(api, product) | {"updatedAt": ""} == product | {
            "stock": None,
            "barcode": None,
            "updatedAt": "",
        }
        upsert(api, {"sku": "S", "categoryId": None, "description": None})
        updated_product = read(api, product)
        assert (updated_product["categoryId"], updated_product["description"]) == (None, None)

    def test_an_error_of_one_item_affects_only_that_item(self, api: Api, new_owner: Any) -> None:
        create(api, sku="T")
        answer = upsert(
            api,
            item("A", categoryId=new_id()),
            item("B", categoryId=create_category(new_owner().api())),
            item("C", categoryId=create_category(api, kind="service")),
            {"sku": "D", "price": 1},
            {"sku": "E"},
            item("F", barcode="4006381333932"),
            item("Ёж"),
            item("еЖ"),
            {"sku": "T", "categoryId": new_id()},
            item("G"),
        )
        statuses = [result["status"] for result in answer["results"]]
        assert statuses == [404, 404, 404, 400, 400, 400, 400, 400, 404, 200]
        messages = [result["message"] for result in answer["results"]]
        assert "GET /api/categories/list" in messages[0]
        assert ["name" in messages[3], "price" in messages[3]] == [True, False]
        assert ["name" in messages[4], "price" in messages[4]] == [True, True]
        assert "check digit 1" in messages[5]
        assert messages[6] == messages[7]
        keys = [result["key"] for result in answer["results"]]
        assert keys == [
            *["category"] * 3,
            *["incomplete_item"] * 2,
            "barcode",
            *["repeated_item"] * 2,
            "category",
            None,
        ]
        codes = [result["code"] for result in answer["results"]]
        assert codes[:3] == ["not_found"] * 3
        assert codes[3:8] == [
            *["validation_error"] * 2,
            "invalid_barcode",
            *["validation_error"] * 2,
        ]
        assert codes[8:] == ["not_found", "created"]
        assert all(result["id"] is None for result in answer["results"][:9])
        assert answer["summary"] == {"ok": 1, "failed": 9}
        assert names(api) == "Loaf Name G"

    def test_a_dry_run_changes_nothing_and_reports_the_changes(
        self, api: Api, image_server: Server
    ) -> None:
        for sku in "ABC":
            create(api, f"Name {sku}", sku=sku)
        bread = create_category(api)
        items = [
            item("A", price=7, categoryId=bread),
            item("B"),
            item("C", images=[{"url": f"{IMAGE_SERVER}/1.png"}]),
            item("D", images=[{"url": f"{IMAGE_SERVER}/1.png"}]),
            {"sku": "E"},
        ]
        rows_before = all_rows()
        answer = upsert(api, *items, dryRun=True)
        assert all_rows() == rows_before
        assert image_server.paths == []
        assert outcomes(answer) == [
            (200, "would update"),
            (200, "unchanged"),
            (200, "would update"),
            (200, "would create"),
            (400, answer["results"][4]["message"]),
        ]
        assert [result["key"] for result in answer["results"]] == [None] * 4 + ["incomplete_item"]
        codes = [result["code"] for result in answer["results"]]
        assert codes == ["updated", "unchanged", "updated", "created", "validation_error"]
        assert not any(result["created"] for result in answer["results"])
        assert [result["id"] is None for result in answer["results"]] == [False] * 3 + [True] * 2

    @pytest.mark.parametrize(
        ("field", "message"),
        [
            ({"stock": -2}, "stock: expected at least 0, received number -2"),
            ({"price": 1.5}, "price: expected an integer of kopecks"),
            ({"name": ""}, "name: expected at least 1 character(s)"),
            ({"images": [{}]}, "images.0.url: expected exactly one of url and fileId"),
            (
                {"status": "gone", "barcode": 5},
                "barcode: expected a string, received number 5; status: expected 'active'",
            ),
        ],
    )
    def test_an_invalid_item_fails_alone_among_a_hundred(
        self, field: Any, message: str, api: Api
    ) -> None:
        items = [item(f"S{number}") for number in range(100)]
        items[41] |= field
        answer = upsert(api, *items)
        assert [result["sku"] for result in answer["results"]] == [body["sku"] for body in items]
        assert [result["status"] for result in answer["results"]] == (
            [200] * 41 + [400] + [200] * 58
        )
        assert answer["results"][41]["message"].startswith(message)
        assert answer["summary"] == {"ok": 99, "failed": 1}
        assert [product["sku"] for product in list_products(api)] == [
            body["sku"] for body in items if body is not items[41]
        ]

    @pytest.mark.parametrize(
        ("invalid_item", "sku", "message"),
        [
            ({"sku": " "}, "", "sku: expected at least 1 character(s)"),
            ({"sku": "s" * 70, "name": "x"}, "s" * 64, "sku: expected at most 64 characters"),
            ({"sku": 5}, "", "sku: expected a string, received number 5"),
            ({"name": "x"}, "", "sku: is required"),
            ({"vendorCode": "x"}, "", "sku: is required, unless you send externalId"),
            (None, "", "item: expected an object, received null"),
            ("S", "", 'item: expected an object, received string "S"'),
        ],
    )
    def test_an_item_without_a_valid_sku_fails_alone(
        self, invalid_item: Any, sku: str, message: str, api: Api
    ) -> None:
        answer = upsert(api, item("A"), invalid_item, item("B"))
        assert [result["status"] for result in answer["results"]] == [200, 400, 200]
        assert answer["results"][1]["sku"] == sku
        assert answer["results"][1]["message"].startswith(message)

    def test_a_valid_item_with_the_sku_of_an_invalid_one_is_refused(self, api: Api) -> None:
        answer = upsert(api, item("A", stock=-2), item("a"))
        assert [result["status"] for result in answer["results"]] == [400, 400]
        assert [result["code"] for result in answer["results"]] == ["validation_error"] * 2
        assert "SKU" in answer["results"][1]["message"]
        assert list_products(api) == []

    def test_an_idempotency_key_with_another_invalid_item_is_a_mismatch(self, api: Api) -> None:
        body = {"items": [item("A"), item("B", stock=-2)]}
        answer = api.post(UPSERT, body, key="k")
        assert api.post(UPSERT, body, key="k") == answer
        other = api.call(
            "POST",
            UPSERT,
            {"items": [item("A"), item("B", stock=-3)]},
            {"Idempotency-Key": "k"},
        )
        assert (other.status, other.data["code"]) == (409, "idempotency_mismatch")

    def test_new_products_come_last_in_the_order_of_the_items(self, api: Api) -> None:
        create(api, "Z", sku="z")
        skus = [f"S{number:02}" for number in range(25)]
        upsert(api, *(item(sku) for sku in skus))
        assert [product["sku"] for product in list_products(api)] == ["z", *skus]

    def test_the_largest_change_of_ten_items_fits_a_transaction(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Names too long for an index entry, new categories and new barcodes."""
        long = "\ufdfa" * 255
        places = [[create_category(api, f"{kind}{n}") for n in range(10)] for kind in "ab"]
        codes = [f"{number:07}" for number in range(20)]
        codes = [code + _check_digit(code) for code in codes]
        for some, barcodes_, name in ((places[0], codes[:10], "x"), (places[1], codes[10:], long)):
            items = [
                item(f"S{n}", name=name, description="ж" * 20_000, categoryId=p, barcode=b)
                for n, (p, b) in enumerate(zip(some, barcodes_, strict=True))
            ]
            assert upsert(api, *items)["summary"] == {"ok": 10, "failed": 0}
        assert {product["categoryId"] for product in list_products(api)} == set(places[1])
        log = [row for row in audit.latest(owner.workspace.id) if row.operation.startswith("ups")]
        assert [len(row.resources) for row in log] == [10, 10]

    def test_a_hundred_items_are_ten_audited_transactions(self, api: Api, owner: Owner) -> None:
        answer = upsert(api, *(item(f"S{number}") for number in range(100)))
        assert answer["summary"] == {"ok": 100, "failed": 0}
        assert counters.read(owner.workspace.id, noun="PRODUCT")["total"] == 100
        log = [row for row in audit.latest(owner.workspace.id) if row.operation.startswith("ups")]
        assert len(log) == 10
        assert {tuple(row.fields) for row in log} == {("items",)}

    def test_a_failure_midway_is_reported_and_the_rest_is_done(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit, commits = UnitOfWork.commit, itertools.count()

        def fail_once(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 1:
                raise UnavailableError
            commit(unit, *args)

        monkeypatch.setattr(UnitOfWork, "commit", fail_once)
        answer = upsert(api, *(item(f"S{number}") for number in range(25)))
        statuses = [result["status"] for result in answer["results"]]
        assert statuses == [200] * 10 + [503] * 10 + [200] * 5

    def test_a_call_that_died_continues_under_its_key(
        self, api: Api, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = {"items": [item(f"S{number}") for number in range(25)]}
        commit, commits = UnitOfWork.commit, itertools.count()

        def die(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 1:
                raise KeyboardInterrupt
            commit(unit, *args)

        with monkeypatch.context() as dying:
            dying.setattr(UnitOfWork, "commit", die)
            with pytest.raises(KeyboardInterrupt):
                api.call("POST", UPSERT, body, {"Idempotency-Key": "k"})
        products = list_products(api)
        assert len(products) == 10
        update(api, products[0], price=5)
        time.pass_by(minutes=3)  # the dead call's record has expired
        answer = api.post(UPSERT, body, key="k")
        assert outcomes(answer) == [(200, "created")] * 25
        assert read(api, products[0])["price"] == 5
        assert api.post(UPSERT, body, key="k") == answer
        assert len(list_products(api)) == 25


def _check_digit(digits: str) -> str:
    total = sum(int(d) * (3 if n % 2 == 0 else 1) for n, d in enumerate(reversed(digits)))
    return str(-total % 10)


class TestImages:
    def test_images_become_files_and_own_files_are_kept(
        self, api: Api, image_server: Server
    ) -> None:
        images = [{"url": f"{IMAGE_SERVER}/{number}.png"} for number in range(4)]
        answer = upsert(api, item("A", images=images[:2]), item("B"), item("C", images=images[2:]))
        assert outcomes(answer) == [(200, "created")] * 3
        by_sku = {product["sku"]: product for product in list_products(api)}
        assert [[i["width"] for i in by_sku[sku]["images"]] for sku in "ABC"] == [
            [8, 9],
            [],
            [10, 11],
        ]
        own_images = [{"url": image["url"]} for image in by_sku["A"]["images"]]
        assert outcomes(upsert(api, item("A", images=own_images))) == [(200, "unchanged")]
        assert outcomes(upsert(api, item("A", images=own_images[::-1]))) == [(200, "updated")]
        assert read(api, by_sku["A"])["images"] == by_sku["A"]["images"][::-1]
        upsert(api, item("A", images=[]))
        assert read(api, by_sku["A"])["images"] == []
        assert len(image_server.paths) == 4

    def test_images_may_be_file_ids_and_an_unknown_id_fails_its_item(
        self,
        api: Api,
        image_server: Server,
    ) -> None:
        upsert(api, item("A", images=[{"url": f"{IMAGE_SERVER}/1.png"}]))
        (image,) = list_products(api)[0]["images"]
        own_file, none = {"fileId": image["fileId"]}, {"fileId": "none"}
        answer = upsert(
            api,
            item("A", images=[own_file]),
            item("B", images=[{"url": f"{IMAGE_SERVER}/2.png"}, own_file]),
            item("C", images=[none]),
        )
        statuses = [(result["status"], result["message"]) for result in answer["results"]]
        assert statuses[:2] == [(200, "unchanged"), (200, "created")]
        assert statuses[2][0] == 404
        images_by_sku = {product["sku"]: product["images"] for product in list_products(api)}
        assert (images_by_sku["A"], images_by_sku["B"][1:]) == ([image], [image])

    def test_an_image_shown_by_several_items_is_one_file(
        self, api: Api, image_server: Server
    ) -> None:
        same = [{"url": f"{IMAGE_SERVER}/1.png"}]
        answer = upsert(api, *(item(sku, images=same) for sku in "ABC"))
        assert [result["warnings"] for result in answer["results"]] == [[], [], []]
        assert len({product["images"][0]["fileId"] for product in list_products(api)}) == 1
        assert len(image_files(api)) == len(image_server.paths) == 1

    def test_failed_images_are_warnings_and_old_images_are_kept(
        self,
        api: Api,
        image_server: Server,
    ) -> None:
        upsert(api, item("A", images=[{"url": f"{IMAGE_SERVER}/1.png"}]))
        old_images = list_products(api)[0]["images"]
        none = {"url": f"{IMAGE_SERVER}/none.png"}
        answer = upsert(api, item("A", images=[none], price=7), item("B", images=[none]))
        assert outcomes(answer) == [(200, "updated"), (200, "created")]
        for result in answer["results"]:
            (detail,) = (w for w in result["warningDetails"] if "url" in w)
            assert (detail["code"], detail["url"]) == ("image_not_imported", none["url"])
            assert [w["message"] for w in result["warningDetails"]] == result["warnings"]
        first, second = list_products(api)
        assert (first["images"], first["price"]) == (old_images, 7)
        assert second["images"] == []

    def test_items_are_saved_without_new_images_if_time_is_short(
        self, api: Api, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tests.factories.products import png

        server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
        for number in range(3):
            server.pages[f"/{number}.png"] = http_response(png(number), content_type="image/png")
        upsert(api, item("A", images=[{"url": f"{IMAGE_SERVER}/0.png"}]))
        old_images = list_products(api)[0]["images"]
        monkeypatch.setattr(deadline, "REQUEST_SECONDS", module.COMMIT_SECONDS)
        monkeypatch.setattr(module, "IMAGE_SECONDS", module.COMMIT_SECONDS)
        answer = upsert(
            api,
            item("A", images=[{"url": f"{IMAGE_SERVER}/{n}.png"} for n in (1, 2)], price=7),
            item("B", images=[{"url": f"{IMAGE_SERVER}/1.png"}]),
        )
        assert outcomes(answer) == [(200, "updated"), (200, "created")]
        assert [[w["code"] for w in result["warningDetails"]] for result in answer["results"]] == [
            ["images_not_in_time"],
            ["image_not_imported"],
        ]
        first, second = list_products(api)
        assert (first["images"], first["price"], second["images"]) == (old_images, 7, [])

    def test_a_repeated_call_does_not_fetch_images_again(
        self,
        api: Api,
        image_server: Server,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        pictured = [item(f"S{n}", images=[{"url": f"{IMAGE_SERVER}/{n}.png"}]) for n in range(4)]
        commit, commits = UnitOfWork.commit, itertools.count()

        def die(unit: UnitOfWork, *args: Any) -> None:
            if next(commits) == 2:
                raise KeyboardInterrupt
            commit(unit, *args)

        with monkeypatch.context() as dying:
            dying.setattr(UnitOfWork, "commit", die)
            with pytest.raises(KeyboardInterrupt):
                api.call("POST", UPSERT, {"items": pictured}, {"Idempotency-Key": "k"})
        assert Counter(image_server.paths) == {f"/{n}.png": 1 for n in range(4)}
        time.pass_by(minutes=3)
        api.post(UPSERT, {"items": pictured}, key="k")
        assert Counter(image_server.paths) == {"/0.png": 1, "/1.png": 1, "/2.png": 2, "/3.png": 2}
        assert [len(product["images"]) for product in list_products(api)] == [1] * 4
        assert len(image_files(api)) == 4

    def test_the_images_of_ten_items_count_as_one_heavy_call(
        self,
        api: Api,
        image_server: Server,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(
            limits, "settings", lambda: replace(service_settings.settings(), rate_limit_scale=1)
        )
        pictured = [item(f"S{n}", images=[{"url": f"{IMAGE_SERVER}/1.png"}]) for n in range(11)]
        remaining = []
        for items in (pictured[:10], pictured):
            answer = api.call("POST", UPSERT, {"items": items})
            remaining.append(int(answer.headers["RateLimit-Remaining"]))
        assert remaining == [59, 57]
        for free in ({"items": pictured, "dryRun": True}, {"items": [item("A")]}):
            assert "RateLimit-Remaining" not in api.call("POST", UPSERT, free).headers


@pytest.mark.store
class TestConcurrency:
    def test_concurrent_upserts_of_one_sku_create_it_once(self, api: Api) -> None:
        def act(number: int) -> Answer:
            return api.call(
                "POST", UPSERT, {"items": [item("S", price=number), item(f"T{number}")]}
            )

        answers = run_concurrently(8, act)
        firsts = Counter(answer.data["results"][0]["message"] for answer in answers)
        assert firsts["created"] == 1
        assert firsts["updated"] + firsts["unchanged"] == 7
        assert {answer.data["summary"]["failed"] for answer in answers} == {0}
        assert len(list_products(api)) == 9

    def test_a_category_deleted_during_the_call_fails_only_its_items(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone = create_category(api)
        real, calls = module._Rows.read, itertools.count()

        def read(*args: Any) -> Any:
            rows = real(*args)
            if next(calls) == 0:
                api.post("/api/categories/delete", {"id": gone})
            return rows

        monkeypatch.setattr(module._Rows, "read", read)
        answer = upsert(api, item("A", categoryId=gone), item("B"))
        assert [result["status"] for result in answer["results"]] == [404, 200]
        assert names(api) == "Name B"


def test_an_item_takes_every_field_that_an_update_takes() -> None:
    differing = set(ProductPatch.model_fields) ^ set(UpsertItem.model_fields)
    assert differing == {"id", "stock_delta"}, (
        "ProductItem of chalicelib/domains/catalog/operations/upsert_items.py has the same fields "
        "as ProductPatch."
    )


class TestUpsertByExternalId:
    def test_an_external_id_names_a_product_before_its_sku_does(self, api: Api) -> None:
        (created,) = upsert(api, item("S-1", externalId="1"))["results"]
        assert (created["code"], created["externalId"], created["sku"]) == ("created", "1", "S-1")
        answer = upsert(api, {"externalId": "1", "sku": "S-2", "price": 7})
        assert outcomes(answer) == [(200, "updated")]
        (product,) = list_products(api)
        assert (product["sku"], product["externalId"], product["price"]) == ("S-2", "1", 7)
        assert outcomes(upsert(api, {"externalId": "1", "sku": "s-2"})) == [(200, "unchanged")]

    def test_a_product_with_the_sku_and_no_external_id_gets_it(self, api: Api) -> None:
        old = create(api, "Loaf", 100, sku="S-1")
        (outcome,) = upsert(api, {"externalId": "1", "sku": "s-1"})["results"]
        assert (outcome["code"], outcome["id"]) == ("updated", old["id"])
        product = read(api, old)
        assert (product["externalId"], product["sku"]) == ("1", "S-1")

    def test_a_product_with_the_sku_and_another_external_id_is_a_conflict(self, api: Api) -> None:
        old = create(api, "Loaf", 100, sku="S-1", externalId="1")
        (outcome,) = upsert(api, item("S-1", externalId="2"))["results"]
        assert (outcome["status"], outcome["code"]) == (409, "sku_taken")
        assert outcome["conflictId"] == old["id"]

    def test_another_products_sku_is_a_conflict(self, api: Api) -> None:
        create(api, "Loaf", 100, externalId="1")
        holder = create(api, "Roll", 100, sku="S-2")
        (outcome,) = upsert(api, {"externalId": "1", "sku": "S-2"})["results"]
        assert (outcome["code"], outcome["conflictId"]) == ("sku_taken", holder["id"])

    def test_items_that_name_one_product_are_refused(self, api: Api) -> None:
        create(api, "Loaf", 100, sku="S-1", externalId="1")
        items = ({"externalId": "1", "price": 1}, {"sku": "S-1", "price": 2})
        assert [r["status"] for r in upsert(api, *items)["results"]] == [200, 400]
        new = (item("S-9", externalId="8"), item("S-9", externalId="9"), item("S-7"))
        assert [r["status"] for r in upsert(api, *new)["results"]] == [400, 400, 200]

    def test_an_item_needs_no_sku(self, api: Api) -> None:
        items = [{"externalId": str(n), "name": "Loaf", "price": n} for n in range(25)]
        answer = upsert(api, *items)
        assert answer["summary"] == {"ok": 25, "failed": 0}
        assert {product["sku"] for product in list_products(api)} == {None}
        assert outcomes(upsert(api, *items)) == [(200, "unchanged")] * 25
