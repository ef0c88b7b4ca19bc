"""Tests of replacing the content of files, whose URLs stay."""

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from chalicelib.core import plans
from chalicelib.core.errors import UnavailableError
from chalicelib.domains.files.flows import publishing
from chalicelib.domains.files.operations import replacing
from chalicelib.domains.files.store.files import FILES
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.files import (
    DELETE,
    announce,
    key,
    list_files,
    list_stored_files,
    photo,
    put,
    store,
    upload,
    used,
)

REPLACE = "/api/files/replace"


def picture(width: int, height: int, kind: str = "PNG", colour: str = "red") -> bytes:
    body = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(body, kind)
    return body.getvalue()


def values(file: Any, body: bytes, **more: Any) -> dict[str, Any]:
    return {"id": file["id"], "content": base64.b64encode(body).decode(), **more}


def replace(api: Api, file: Any, body: bytes, **more: Any) -> Any:
    return api.post(REPLACE, values(file, body, **more))["file"]


def shown(file: Any) -> bytes:
    """Return what the file's URL shows."""
    body = store().get(key(file["url"]))
    assert body is not None
    return body


def size_of(body: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(body)).size


def product(api: Api, file: Any) -> Any:
    body = {"name": "Loaf", "price": 1, "images": [{"fileId": file["id"]}]}
    return api.post("/api/products/create", body)["product"]


class TestReplacement:
    def test_the_url_of_a_file_shows_the_new_content(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        file = upload(api, "prices.txt", b"bread 1")
        time.pass_by(minutes=1)
        replaced = replace(api, file, b"bread 200", name="prices-2027.txt")
        assert replaced == file | {"size": 9, "updatedAt": replaced["updatedAt"]}
        assert replaced["updatedAt"] > file["updatedAt"]
        assert shown(file) == b"bread 200"
        assert api.get(f"/api/files/{file['id']}")["file"] == replaced
        assert used(owner) == 9

    @pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
    def test_an_image_and_its_thumbnail_are_replaced_by_an_image_of_any_format(
        self, kind: str, api: Api, owner: Owner
    ) -> None:
        file = upload(api, "a.jpg", photo())
        replaced = replace(api, file, picture(600, 300, kind), name="other.bin")
        assert (replaced["url"], replaced["thumbnailUrl"]) == (file["url"], file["thumbnailUrl"])
        assert (replaced["width"], replaced["height"], replaced["name"]) == (600, 300, "a.jpg")
        thumbnail = store().get(key(file["thumbnailUrl"])) or b""
        assert (size_of(shown(file)), size_of(thumbnail)) == ((600, 300), (400, 200))
        assert replaced["size"] == len(shown(file))
        assert used(owner) == len(shown(file)) + len(thumbnail)

    def test_records_that_show_an_image_have_its_new_size(self, api: Api) -> None:
        file = upload(api, "a.png", picture(4, 3))
        loaf = product(api, file)
        replace(api, file, picture(8, 9))
        stored = api.get(f"/api/products/{loaf['id']}")["product"]
        image = {"fileId": file["id"], "url": file["url"], "width": 8, "height": 9}
        assert stored["images"] == [image]

    def test_more_records_than_a_transaction_holds_have_the_new_size(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(replacing, "RECORDS_PER_TRANSACTION", 2)
        file = upload(api, "a.png", picture(4, 3))
        products = [product(api, file) for _ in range(5)]
        replace(api, file, picture(8, 9))
        stored = [api.get(f"/api/products/{one['id']}")["product"] for one in products]
        assert [one["images"][0]["width"] for one in stored] == [8] * 5

    def test_an_image_of_the_same_size_changes_no_record(self, time: Time, api: Api) -> None:
        file = upload(api, "a.png", picture(4, 3))
        loaf = product(api, file)
        time.pass_by(minutes=1)
        replace(api, file, picture(4, 3, colour="blue"))
        assert api.get(f"/api/products/{loaf['id']}")["product"] == loaf

    def test_a_page_shows_the_new_image_without_a_change(self, api: Api) -> None:
        file = upload(api, "a.png", picture(4, 3))
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]
        page = api.post("/api/pages/create", {"projectId": site["id"], "title": "About"})["page"]
        html = f"<img src='{file['url']}'>"
        saved = api.post("/api/pages/save-html", {"id": page["id"], "html": html})["page"]
        replace(api, file, picture(8, 9))
        stored = api.get(f"/api/pages/{page['id']}")["page"]
        assert (stored["html"], stored["version"]) == (html, saved["version"])
        assert size_of(shown(file)) == (8, 9)

    def test_a_file_is_replaced_again_and_again(self, api: Api, owner: Owner) -> None:
        file = upload(api, "a.txt", b"1")
        for number in range(2, 5):
            replace(api, file, b"x" * number)
            assert (shown(file), used(owner)) == (b"x" * number, number)

    def test_a_form_replaces_a_file(self, api: Api) -> None:
        file = upload(api, "a.txt", b"1")
        body = (
            b'--X\r\nContent-Disposition: form-data; name="id"\r\n\r\n'
            + file["id"].encode()
            + b'\r\n--X\r\nContent-Disposition: form-data; name="f"; filename="b.txt"\r\n\r\n22'
            b"\r\n--X--\r\n"
        )
        headers = {"Content-Type": "multipart/form-data; boundary=X"}
        replaced = api._ok(api.call("POST", REPLACE, body, headers))["file"]
        assert (replaced["name"], replaced["size"], shown(file)) == ("a.txt", 2, b"22")

    def test_the_own_objects_of_the_content_are_removed_after_an_hour(
        self, time: Time, api: Api
    ) -> None:
        before = list_stored_files()
        file = upload(api, "a.jpg", photo())
        replace(api, file, picture(8, 9))
        time.pass_by(minutes=61)
        run_jobs()
        assert list_stored_files() - before == {key(file["url"]), key(file["thumbnailUrl"])}
        assert size_of(shown(file)) == (8, 9)

    def test_the_deletion_of_a_replaced_file_leaves_no_object(self, api: Api, owner: Owner) -> None:
        before = list_stored_files()
        file = upload(api, "a.jpg", photo())
        replace(api, file, picture(8, 9))
        api.post(DELETE, {"id": file["id"]})
        assert (list_stored_files(), used(owner)) == (before, 0)


class TestLargeReplacement:
    def test_an_announced_upload_replaces_a_file(self, time: Time, api: Api, owner: Owner) -> None:
        file, body = upload(api, "a.txt", b"1"), b"x" * 5_000_000
        announced = announce(api, len(body), "b.txt")
        assert put(announced, body)
        changes = {"id": file["id"], "uploadId": announced["id"]}
        assert api.post(REPLACE, changes)["file"]["size"] == len(body)
        assert (shown(file), used(owner)) == (body, len(body))
        assert [one["id"] for one in list_files(api)["files"]] == [file["id"]]
        answer = api.call_refused("POST", REPLACE, changes)
        assert (answer.status, answer.data["key"]) == (404, "upload")
        time.pass_by(minutes=61)
        run_jobs()
        assert used(owner) == len(body)

    @pytest.mark.parametrize("sent", [b"", b"short"])
    def test_an_upload_that_was_not_sent_as_announced_is_400(
        self, sent: bytes, api: Api, owner: Owner
    ) -> None:
        file, announced = upload(api, "a.txt", b"1"), announce(api, 9, "b.txt")
        if sent:
            store().put(f"{owner.workspace.id}/uploads/{announced['id']}", sent, "text/plain")
        answer = api.call_refused("POST", REPLACE, {"id": file["id"], "uploadId": announced["id"]})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "uploadId")
        assert shown(file) == b"1"

    def test_both_or_neither_of_content_and_upload_are_400(self, api: Api) -> None:
        file = upload(api)
        for more in ({}, {"content": "aGk=", "uploadId": file["id"]}):
            assert api.call_refused("POST", REPLACE, {"id": file["id"], **more}).status == 400


class TestRefusal:
    @pytest.mark.parametrize(
        ("name", "body", "new_name", "new_body"),
        [
            ("a.png", picture(4, 3), "a.html", b"<script>alert(1)</script>"),
            ("a.png", picture(4, 3), "a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
            ("a.png", picture(4, 3), "a.png", b"no image"),
            ("a.pdf", b"%PDF-1.7", "a.pdf", b"<html>"),
            ("a.pdf", b"%PDF-1.7", "a.pdf", picture(4, 3)),
            ("a.csv", b"a;b", "a.txt", b"a;b"),
            ("a.txt", b"a;b", "a.zip", b"PK\x03\x04"),
        ],
    )
    def test_another_kind_of_content_is_400(
        self, name: str, body: bytes, new_name: str, new_body: bytes, api: Api, owner: Owner
    ) -> None:
        file = upload(api, name, body)
        before, former, bytes_used = list_stored_files(), shown(file), used(owner)
        answer = api.call_refused("POST", REPLACE, values(file, new_body, name=new_name))
        (error,) = answer.data["errors"]
        assert (answer.status, error["field"], error["key"]) == (400, "content", "other_kind")
        assert (list_stored_files(), shown(file), used(owner)) == (before, former, bytes_used)

    def test_an_image_is_checked_as_in_an_upload(self, api: Api) -> None:
        file = upload(api, "a.png", picture(4, 3))
        for body in (picture(4, 3)[:30], b"\x00\x00\x00\x18ftypheic" + bytes(20)):
            answer = api.call_refused("POST", REPLACE, values(file, body))
            assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")
        assert size_of(shown(file)) == (4, 3)

    def test_content_over_the_quota_is_409_and_the_file_stays(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
        file = upload(api, "a.txt", b"x" * 900)
        before = list_stored_files()
        answer = api.call_refused("POST", REPLACE, values(file, b"y" * 1001))
        assert (answer.status, answer.data["code"]) == (409, "quota_exceeded")
        assert (list_stored_files(), used(owner), shown(file)) == (before, 900, b"x" * 900)
        # Only the difference counts.
        replace(api, file, b"y" * 1000)
        assert (used(owner), shown(file)) == (1000, b"y" * 1000)

    def test_a_file_of_another_workspace_is_404(
        self, api: Api, new_owner: Callable[..., Owner]
    ) -> None:
        file = upload(Api(new_owner().token()), "a.txt", b"1")
        assert api.call_refused("POST", REPLACE, values(file, b"2")).status == 404
        assert shown(file) == b"1"


class TestFailures:
    def test_a_process_killed_before_the_commit_changes_nothing(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: Any) -> None:
            raise SystemExit

        file = upload(api, "a.jpg", photo())
        before = list_stored_files()
        with monkeypatch.context() as killed:
            killed.setattr(UnitOfWork, "commit", die)
            killed.setattr(UnitOfWork, "undo", lambda _: None)
            with pytest.raises(SystemExit):
                replace(api, file, picture(8, 9))
        assert (len(list_stored_files() - before), size_of(shown(file))) == (2, (640, 480))
        time.pass_by(minutes=61)
        run_jobs()
        assert (list_stored_files(), size_of(shown(file))) == (before, (640, 480))

    def test_the_runner_shows_the_content_after_a_kill(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = upload(api, "a.png", picture(4, 3))
        loaf = product(api, file)
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: False)
            replace(api, file, picture(8, 9))
        assert size_of(shown(file)) == (4, 3)
        time.pass_by(minutes=1)
        assert run_jobs()["file-replaced"] == 1
        stored = api.get(f"/api/products/{loaf['id']}")["product"]
        assert (size_of(shown(file)), stored["images"][0]["width"]) == ((8, 9), 8)

    def test_content_that_could_not_be_copied_for_hours_is_not_lost(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = upload(api, "a.txt", b"1")

        def unavailable(*_: Any) -> None:
            raise UnavailableError

        with monkeypatch.context() as failing:
            failing.setattr(publishing, "_copy", unavailable)
            replace(api, file, b"22")
            time.pass_by(hours=3)
            run_jobs()
        assert shown(file) == b"1"
        time.pass_by(hours=7)
        run_jobs()
        assert shown(file) == b"22"

    def test_a_copy_of_a_former_content_that_arrives_late_is_copied_over(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The first call reads its content, and writes it after the second call has ended.
        file = upload(api, "a.txt", b"1")
        put_public, late = publishing.put_public, list[str]()

        def overtaken(object_key: str, body: bytes) -> None:
            if body == b"22" and object_key == key(file["url"]) and not late:
                late.append(object_key)
                replace(api, file, b"333")
                assert shown(file) == b"333"
            put_public(object_key, body)

        monkeypatch.setattr(publishing, "put_public", overtaken)
        replace(api, file, b"22")
        assert (len(late), shown(file)) == (1, b"333")

    def test_a_late_copy_of_a_killed_process_is_copied_over_within_the_hour(
        self, time: Time, api: Api
    ) -> None:
        file = upload(api, "a.txt", b"1")
        replace(api, file, b"333")
        store().put(key(file["url"]), b"22", "text/plain")
        time.pass_by(minutes=61)
        run_jobs()
        assert shown(file) == b"333"

    def test_a_copy_does_not_bring_a_deleted_file_back(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = list_stored_files()
        file = upload(api, "a.txt", b"1")
        put_public = publishing.put_public

        def overtaken(object_key: str, body: bytes) -> None:
            if object_key == key(file["url"]):
                api.post(DELETE, {"id": file["id"]})
            put_public(object_key, body)

        monkeypatch.setattr(publishing, "put_public", overtaken)
        replace(api, file, b"22")
        assert list_stored_files() == before


class TestRaces:
    def test_of_ten_concurrent_replacements_the_row_and_the_url_have_one(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        before = list_stored_files()
        file = upload(api, "a.png", picture(4, 3))
        bodies = [picture(10 + number, 20 + number) for number in range(10)]
        run_concurrently(10, lambda n: api.call("POST", REPLACE, values(file, bodies[n])))
        row = FILES.require(owner.workspace.id, record_id=file["id"])
        assert size_of(shown(file)) == (row.width, row.height)
        assert used(owner) == row.size
        time.pass_by(minutes=61)
        run_jobs()
        assert list_stored_files() - before == {key(file["url"]), key(file["thumbnailUrl"])}
        thumbnail = store().get(key(file["thumbnailUrl"])) or b""
        assert size_of(shown(file)) == size_of(thumbnail) == (row.width, row.height)

    def test_a_concurrent_deletion_leaves_no_object_and_no_bytes(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        before = list_stored_files()
        file = upload(api, "a.png", picture(4, 3))
        calls = ((REPLACE, values(file, picture(8, 9))), (DELETE, {"id": file["id"]}))
        run_concurrently(2, lambda n: api.call("POST", *calls[n]))
        time.pass_by(minutes=61)
        run_jobs()
        assert (list_stored_files(), used(owner)) == (before, 0)
