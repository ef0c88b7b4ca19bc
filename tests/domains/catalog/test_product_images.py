"""Tests that a product's images are copied, and kept if they cannot be replaced."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import settings as service_settings
from chalicelib.core.ids import new_id
from chalicelib.engine import limits
from tests.conftest import Api
from tests.factories.products import (
    CREATE,
    IMAGE_SERVER,
    UPDATE,
    create,
    create_category,
    image_files,
    read,
    refusal,
    update,
)
from tests.fakes.internet import Server
from tests.support.warned import warned


class TestImages:
    def test_images_become_files_of_the_workspace(self, api: Api, image_server: Server) -> None:
        urls = [f"{IMAGE_SERVER}/{number}.png" for number in range(10)]
        product = create(api, images=[{"url": url} for url in urls])
        assert [(i["width"], i["height"]) for i in product["images"]] == [
            (8 + number, 8) for number in range(10)
        ]
        files = {file["id"]: file["url"] for file in image_files(api)}
        assert {i["fileId"]: i["url"] for i in product["images"]} == files
        assert all(IMAGE_SERVER not in image["url"] for image in product["images"])
        assert read(api, product) == product

    def test_images_that_cannot_be_imported_are_warnings(
        self, api: Api, image_server: Server
    ) -> None:
        bad = [f"{IMAGE_SERVER}/none.png", "https://127.0.0.1/x.png", "http://a.example/x.png", "x"]
        body = {
            "name": "x",
            "price": 1,
            "images": [{"url": u} for u in [*bad, f"{IMAGE_SERVER}/1.png"]],
        }
        answer = api.post(CREATE, body)
        assert [image["width"] for image in answer["product"]["images"]] == [9]
        lost = [(warning["code"], warning["url"]) for warning in warned(answer)]
        assert lost == [("image_not_imported", url) for url in bad]

    def test_an_update_replaces_all_images_and_keeps_own_files(
        self, api: Api, image_server: Server
    ) -> None:
        product = create(api, images=[{"url": f"{IMAGE_SERVER}/{n}.png"} for n in (0, 1)])
        first, second = product["images"]
        request_count = len(image_server.requests)
        swapped = update(api, product, images=[{"url": second["url"]}, {"url": first["url"]}])
        assert swapped["images"] == [second, first]
        assert len(image_server.requests) == request_count
        updated_product = update(
            api, product, images=[{"url": first["url"]}, {"url": f"{IMAGE_SERVER}/2.png"}]
        )
        assert [image["width"] for image in updated_product["images"]] == [8, 10]
        assert update(api, product, images=[])["images"] == []
        assert update(api, product, images=[{"url": first["url"]}])["images"] == [first]
        assert update(api, product, images=None)["images"] == []

    def test_old_images_are_kept_with_a_warning_if_all_new_ones_fail(
        self, api: Api, image_server: Server
    ) -> None:
        product = create(api, images=[{"url": f"{IMAGE_SERVER}/{n}.png"} for n in (0, 1)])
        new = [{"url": f"{IMAGE_SERVER}/none.png"}]
        answer = api.post(UPDATE, {"id": product["id"], "name": "New", "images": new})
        assert answer["product"]["images"] == product["images"]
        assert answer["product"]["name"] == "New"
        assert warned(answer)[-1] == {"code": "images_kept"}
        assert read(api, product)["images"] == product["images"]
        some = update(api, product, images=[*new, {"url": f"{IMAGE_SERVER}/2.png"}])
        assert [image["width"] for image in some["images"]] == [10]

    def test_images_may_be_given_as_file_ids_of_the_workspace(
        self, api: Api, image_server: Server
    ) -> None:
        (first,) = create(api, images=[{"url": f"{IMAGE_SERVER}/0.png"}])["images"]
        request_count = len(image_server.requests)
        product = create(api, images=[{"fileId": first["fileId"]}])
        assert product["images"] == [first]
        mixed = [
            {"url": f"{IMAGE_SERVER}/1.png"},
            {"fileId": first["fileId"]},
            {"url": first["url"]},
        ]
        assert update(api, product, images=mixed)["images"][1:] == [first, first]
        assert len(image_server.requests) == request_count + 1

    def test_an_unknown_file_id_is_404_before_anything_is_fetched(
        self, api: Api, image_server: Server, new_owner: Any
    ) -> None:
        (theirs,) = create(new_owner().api(), images=[{"url": f"{IMAGE_SERVER}/0.png"}])["images"]
        product, request_count = create(api), len(image_server.requests)
        for unknown in (new_id(), theirs["fileId"]):
            images = [{"url": f"{IMAGE_SERVER}/1.png"}, {"fileId": unknown}]
            body = {"name": "x", "price": 1, "images": images}
            assert refusal(api, CREATE, body) == (404, "not_found")
            body = {"id": product["id"], "images": images}
            assert refusal(api, UPDATE, body) == (404, "not_found")
        assert len(image_server.requests) == request_count

    def test_a_file_that_is_not_an_image_is_400(self, api: Api) -> None:
        text = api.post("/api/files/upload", {"name": "a.txt", "content": "aGVsbG8="})["file"]
        body = {"name": "x", "price": 1, "images": [{"fileId": text["id"]}]}
        answer = api.call_refused("POST", CREATE, body)
        (error,) = answer.data["errors"]
        assert (answer.status, error["field"], error["key"]) == (400, "images.0.fileId", "no_image")
        assert "text/plain" in error["message"]

    def test_images_are_not_fetched_if_the_category_is_unknown(
        self, api: Api, image_server: Server, new_owner: Any
    ) -> None:
        product, images = create(api), [{"url": f"{IMAGE_SERVER}/1.png"}]
        for unknown in (
            new_id(),
            create_category(new_owner().api()),
            create_category(api, kind="service"),
        ):
            more = {"categoryId": unknown, "images": images}
            assert refusal(api, CREATE, {"name": "x", "price": 1, **more}) == (404, "not_found")
            assert refusal(api, UPDATE, {"id": product["id"], **more}) == (404, "not_found")
        assert refusal(api, UPDATE, {"id": new_id(), "images": images}) == (404, "not_found")
        assert image_server.paths == []

    def test_external_images_make_a_call_heavy_and_own_files_do_not(
        self, api: Api, image_server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = create(api, images=[{"url": f"{IMAGE_SERVER}/1.png"}])["images"][0]["url"]
        monkeypatch.setattr(
            limits, "settings", lambda: replace(service_settings.settings(), rate_limit_scale=0)
        )
        product = create(api, images=[{"url": mine}])
        update(api, product, images=[{"url": mine}], name="New")
        update(api, product, images=None)
        strange = {"images": [{"url": mine}, {"url": f"{IMAGE_SERVER}/2.png"}]}
        for path, body in (
            (CREATE, {"name": "x", "price": 1, **strange}),
            (UPDATE, {"id": product["id"], **strange}),
        ):
            answer = api.call_refused("POST", path, body)
            assert (answer.status, answer.data["code"]) == (429, "rate_limited")
            assert int(answer.headers["Retry-After"]) <= 60
        assert image_server.paths == ["/1.png"]

    def test_a_refused_call_leaves_no_image(self, api: Api, image_server: Server) -> None:
        create(api, sku="S")
        body = {"name": "x", "price": 1, "sku": "s", "images": [{"url": f"{IMAGE_SERVER}/1.png"}]}
        assert refusal(api, CREATE, body) == (409, "sku_taken")
        assert image_files(api) == []
