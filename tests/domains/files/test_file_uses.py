"""Tests of deleting files that records show."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from chalicelib.core.ids import new_id
from chalicelib.domains.files.operations import deletion
from chalicelib.engine import file_uses, jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.files import DELETE, list_stored_files, upload, used
from tests.factories.products import png
from tests.fakes.internet import Internet, http_response
from tests.support.warned import warned

IMAGE_SERVER = "https://images.example.com"


def image(api: Api, name: str = "a.png") -> Any:
    body = io.BytesIO()
    Image.new("RGB", (4, 3), "red").save(body, "PNG")
    return upload(api, name, body.getvalue())


def product(api: Api, *files: Any, name: str = "Loaf") -> Any:
    images = [{"fileId": file["id"]} for file in files]
    body = {"name": name, "price": 1, "images": images}
    return api.post("/api/products/create", body)["product"]


def page(api: Api, html: str) -> Any:
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]
    new_page = api.post("/api/pages/create", {"projectId": site["id"], "title": "About"})["page"]
    save(api, new_page, html)
    return new_page


def page_with_late_uses(api: Api, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], Any]:
    """Return files and a page that shows them. Its uses wait for the runner of jobs."""
    files = [upload(api, f"{number}.txt") for number in range(60)]
    html = "".join(f"<a href='{file['url']}'>x</a>" for file in files)
    with monkeypatch.context() as killed:
        killed.setattr(jobs, "attempt", lambda *_: False)
        return files, page(api, html)


def act_after(monkeypatch: pytest.MonkeyPatch, name: str, action: Callable[[], None]) -> None:
    """Act once after the next call of a function of ``file_uses``, before its caller goes on."""
    function = getattr(file_uses, name)

    def call(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(file_uses, name, function)
        result = function(*arguments, **options)
        action()
        return result

    monkeypatch.setattr(file_uses, name, call)


def save(api: Api, page: Any, html: str) -> None:
    api.post("/api/pages/save-html", {"id": page["id"], "html": html})


def read(api: Api, product: Any) -> Any:
    return api.get(f"/api/products/{product['id']}")["product"]


def used_by(api: Api, file: Any) -> list[tuple[str, str]]:
    """Return the types and names of the records that show a file."""
    answer = api.post(DELETE, {"id": file["id"], "dryRun": True})
    assert answer["usedByTotal"] == len(answer["usedBy"])
    return [(use["type"], use["name"]) for use in answer["usedBy"]]


def rows(owner: Owner, file: Any) -> list[str]:
    return file_uses.records_showing(owner.workspace.id, file_id=file["id"])


class TestDeletion:
    def test_deleting_a_file_in_use_is_refused_with_its_uses(self, api: Api) -> None:
        file = image(api)
        loaf = product(api, file)
        about = page(api, f"<img src='{file['url']}'>")
        answer = api.call_refused("POST", DELETE, {"id": file["id"]})
        assert (answer.status, answer.data["code"]) == (409, "file_in_use")
        assert answer.data["usedBy"] == [
            {"type": "page", "id": about["id"], "name": "About"},
            {"type": "product", "id": loaf["id"], "name": "Loaf"},
        ]
        assert answer.data["usedByTotal"] == 2
        assert "force" in answer.data["message"]
        assert read(api, loaf)["images"][0]["fileId"] == file["id"]

    def test_a_dry_run_lists_the_uses_and_explains_force(self, api: Api) -> None:
        file = image(api)
        loaf, objects_before = product(api, file), list_stored_files()
        for force, is_warned in ((False, True), (True, False)):
            answer = api.post(DELETE, {"id": file["id"], "dryRun": True, "force": force})
            assert (answer["deleted"], answer["usedBy"][0]["id"]) == (False, loaf["id"])
            facts = {"error": "file_in_use", "count": len(answer["usedBy"])}
            expected = [{"code": "force_required", **facts}] if is_warned else []
            assert warned(answer) == expected
        assert list_stored_files() == objects_before

    def test_force_removes_the_file_from_the_records(self, api: Api, owner: Owner) -> None:
        objects_before = list_stored_files()
        gone, stays = image(api), image(api)
        loaf = product(api, gone, stays, gone)
        html = f"<img src='{gone['url']}'>"
        about = page(api, html)
        answer = api.post(DELETE, {"id": gone["id"], "force": True})
        assert (answer["deleted"], answer["usedByTotal"]) == (True, 2)
        stored_loaf = read(api, loaf)
        assert [one["fileId"] for one in stored_loaf["images"]] == [stays["id"]]
        assert api.get(f"/api/pages/{about['id']}")["page"]["html"] == html
        assert rows(owner, gone) == []
        assert all(gone["id"] not in key for key in list_stored_files() - objects_before)
        save(api, about, html + "!")
        assert rows(owner, gone) == []

    def test_force_removes_a_file_from_more_records_than_a_transaction_holds(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deletion, "MAX_LISTED_USES", 2)
        monkeypatch.setattr(deletion, "RECORDS_PER_TRANSACTION", 3)
        file = image(api)
        products = [product(api, file, name=str(number)) for number in range(8)]
        answer = api.call_refused("POST", DELETE, {"id": file["id"]})
        assert (len(answer.data["usedBy"]), answer.data["usedByTotal"]) == (2, 8)
        api.post(DELETE, {"id": file["id"], "force": True})
        assert [read(api, one)["images"] for one in products] == [[]] * 8
        assert rows(owner, file) == []

    def test_the_runner_finishes_a_forced_deletion_after_a_kill(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        objects_before, file = list_stored_files(), image(api)
        products = [product(api, file) for _ in range(3)]
        with monkeypatch.context() as killed:
            killed.setattr(deletion, "RECORDS_PER_TRANSACTION", 1)
            killed.setattr(jobs, "attempt", lambda *_: False)
            api.post(DELETE, {"id": file["id"], "force": True})
        assert list_stored_files() != objects_before
        time.pass_by(minutes=1)
        run_jobs()
        assert [read(api, one)["images"] for one in products] == [[]] * 3
        assert list_stored_files() == objects_before

    def test_a_file_that_is_no_longer_in_use_may_be_deleted(self, api: Api, owner: Owner) -> None:
        file = image(api)
        changed_product, dropped = product(api, file), product(api, file)
        about = page(api, f"<img src='{file['url']}'>")
        deleted = page(api, f"<a href='{file['url']}'>x</a>")
        site = page(api, f"<a href='{file['url']}'>x</a>")
        assert len(rows(owner, file)) == 5
        api.post("/api/products/update", {"id": changed_product["id"], "images": []})
        api.post("/api/products/delete", {"id": dropped["id"]})
        save(api, about, "<p>no image")
        api.post("/api/pages/delete", {"id": deleted["id"], "confirm": True})
        api.post("/api/projects/delete", {"id": site["projectId"]})
        assert rows(owner, file) == []
        answer = api.post(DELETE, {"id": file["id"]})
        assert (answer["deleted"], answer["usedBy"], answer["usedByTotal"]) == (True, [], 0)
        assert used(owner) == len("<p>no image")

    @pytest.mark.store
    def test_a_deletion_and_a_concurrent_new_use_agree(self, api: Api) -> None:
        for _ in range(4):
            file, loaf = image(api), product(api)

            def act(number: int, file: Any = file, loaf: Any = loaf) -> Any:
                if number:
                    return api.call("POST", DELETE, {"id": file["id"]})
                body = {"id": loaf["id"], "images": [{"fileId": file["id"]}]}
                return api.call("POST", "/api/products/update", body)

            updated, deleted = (answer.status for answer in run_concurrently(2, act))
            assert (updated, deleted) in {(200, 409), (404, 200)}
            assert len(read(api, loaf)["images"]) == (updated == 200)


class TestProducts:
    def test_a_copied_product_shows_the_same_files(self, api: Api, owner: Owner) -> None:
        file = image(api)
        loaf = product(api, file)
        copy = api.post("/api/products/duplicate", {"id": loaf["id"]})["product"]
        assert copy["images"] == loaf["images"]
        assert used_by(api, file) == [("product", "Loaf"), ("product", "Loaf (копия)")]
        api.post(DELETE, {"id": file["id"], "force": True})
        assert read(api, copy)["images"] == []

    def test_a_copied_product_has_no_dead_link(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone, stays = image(api), image(api)
        loaf = product(api, gone, stays)
        with monkeypatch.context() as killed:
            killed.setattr(deletion, "RECORDS_PER_TRANSACTION", 0)
            killed.setattr(jobs, "attempt", lambda *_: False)
            api.post(DELETE, {"id": gone["id"], "force": True})
        copy = api.post("/api/products/duplicate", {"id": loaf["id"]})["product"]
        assert [one["fileId"] for one in copy["images"]] == [stays["id"]]

    def test_imported_images_are_in_use_immediately(self, api: Api, net: Internet) -> None:
        net.serve(IMAGE_SERVER, http_response(png(), content_type="image/png"))
        body = {"name": "Roll", "price": 1, "images": [{"url": f"{IMAGE_SERVER}/1.png"}]}
        roll = api.post("/api/products/create", body)["product"]
        assert used_by(api, {"id": roll["images"][0]["fileId"]}) == [("product", "Roll")]

    def test_products_deleted_in_bulk_use_no_files(self, api: Api, owner: Owner) -> None:
        files = [image(api) for _ in range(10)]
        products = [product(api, *files) for _ in range(15)]
        assert len(rows(owner, files[0])) == 15
        ids = [one["id"] for one in products]
        body = {"ids": ids, "action": "delete", "confirm": True}
        assert api.post("/api/products/bulk", body)["summary"] == {"ok": 15, "failed": 0}
        assert [rows(owner, file) for file in files] == [[]] * 10

    @pytest.mark.store
    def test_twenty_products_may_start_to_show_one_file_concurrently(
        self, api: Api, owner: Owner
    ) -> None:
        file = image(api)
        run_concurrently(20, lambda _: product(api, file))
        assert len(rows(owner, file)) == 20


class TestPages:
    def test_a_page_uses_the_files_whose_urls_its_html_contains(
        self, api: Api, owner: Owner
    ) -> None:
        small, css, plain = image(api), image(api), upload(api, "menu.txt")
        theirs = f"/files/{new_id()}{'x' * 22}/a.png"
        about = page(
            api,
            f"<img src='{small['thumbnailUrl']}'><style>a{{background:url({css['url']})}}</style>"
            f"<a href='{plain['url']}'>menu</a><img src='{theirs}'>",
        )
        for file in (small, css, plain):
            assert used_by(api, file) == [("page", "About")]
        save(api, about, f"<img src='{css['url']}'>")
        assert [rows(owner, file) for file in (small, plain)] == [[], []]
        assert used_by(api, css) == [("page", "About")]

    @pytest.mark.parametrize("count", [3, 50])
    def test_an_imported_page_uses_its_images(
        self, count: int, api: Api, net: Internet, owner: Owner
    ) -> None:
        server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
        server.pages = {
            f"/{n}.png": http_response(png(), content_type="image/png") for n in range(count)
        }
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]
        html = "".join(f"<img src='{IMAGE_SERVER}/{number}.png'>" for number in range(count))
        body = {"projectId": site["id"], "html": html, "title": "About"}
        answer = api.post("/api/pages/import-html", body)
        assert answer["imported"]["images"] == count
        folder = api.get("/api/file-folders")["folders"][0]["id"]
        files = api.get(f"/api/files/list?size=100&folderId={folder}")["files"]
        assert len(files) == count
        assert all(rows(owner, file) == [f"PAGE#{answer['page']['id']}"] for file in files)

    def test_the_runner_writes_uses_that_do_not_fit_the_transaction(
        self, time: Time, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files, about = page_with_late_uses(api, monkeypatch)
        assert rows(owner, files[0]) == []
        api.post(DELETE, {"id": files[0]["id"]})
        time.pass_by(minutes=1)
        run_jobs()
        assert [len(rows(owner, file)) for file in files] == [0] + [1] * 59
        save(api, about, "")
        assert [len(rows(owner, file)) for file in files] == [0] * 60

    def test_a_file_is_not_deleted_while_the_runner_writes_its_uses(
        self, time: Time, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The job commits between the reads and the commit of the deletion."""
        files, _ = page_with_late_uses(api, monkeypatch)

        def run() -> None:
            time.pass_by(minutes=1)
            run_jobs()

        act_after(monkeypatch, "records_showing", run)
        assert api.call_refused("POST", DELETE, {"id": files[0]["id"]}).status == 409
        assert [len(rows(owner, file)) for file in files] == [1] * 60

    def test_the_runner_writes_the_uses_of_the_latest_version(
        self, time: Time, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page is saved without the files between the reads and the commit of the job."""
        files, about = page_with_late_uses(api, monkeypatch)
        compute_rows = file_uses.rows
        act_after(monkeypatch, "rows", lambda: save(api, about, ""))
        time.pass_by(minutes=1)
        run_jobs()
        assert file_uses.rows is compute_rows
        assert [len(rows(owner, file)) for file in files] == [0] * 60

    def test_urls_of_another_workspaces_files_are_not_uses(
        self, api: Api, owner: Owner, new_owner: Any
    ) -> None:
        file = image(api)
        page(new_owner().api(), f"<img src='{file['url']}'>")
        assert rows(owner, file) == []
        assert api.post(DELETE, {"id": file["id"]})["deleted"] is True
