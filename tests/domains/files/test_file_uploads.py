"""Tests of uploads in one step and in two steps."""

import base64
import http.client
import io
from collections import Counter
from typing import Any

import pytest
from PIL import Image

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.files.rules import stored_files
from chalicelib.gateways.object_store import FolderStore
from chalicelib.transports.http import HttpRequest
from chalicelib.transports.scheduled_functions import run_jobs
from infra.local.devserver import files as devserver_files
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.files import (
    ANNOUNCE,
    COMPLETE,
    DELETE,
    FOLDER_DELETE,
    FOLDERS,
    UPLOAD,
    announce,
    folder,
    key,
    list_files,
    list_stored_files,
    photo,
    put,
    store,
    upload,
    used,
)
from tests.support.patience import PATIENCE
from tests.support.warned import warned
from tests.transports.conftest import serving

HOSTILE = bytes(range(256)) + b"\r\n--X\x00--\r\n\xff\xfe"


def form(*parts: tuple[str, bytes], boundary: str = "X") -> tuple[bytes, dict[str, str]]:
    """Return a multipart body and its content type. Each part has its own Content-Disposition."""
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {about}\r\n\r\n".encode()
        + content
        + b"\r\n"
        for about, content in parts
    )
    kind = f"multipart/form-data; boundary={boundary}"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": kind}


class TestUpload:
    def test_any_bytes_are_stored_and_their_type_detected(self, time: Time, api: Api) -> None:
        place = folder(api, "Papers")
        file = upload(api, " Отчёт №1.pdf ", b"%PDF-1.7\n" + HOSTILE, folderId=place["id"])
        assert file | {"id": "", "url": ""} == {
            "id": "",
            "name": "Отчёт №1.pdf",
            "url": "",
            "thumbnailUrl": None,
            "mimeType": "application/pdf",
            "size": 9 + len(HOSTILE),
            "width": None,
            "height": None,
            "folderId": place["id"],
            "createdAt": "2027-01-15T12:00:00.000Z",
            "updatedAt": "2027-01-15T12:00:00.000Z",
        }
        assert store().get(key(file["url"])) == b"%PDF-1.7\n" + HOSTILE

    @pytest.mark.parametrize(
        ("name", "stored_name"),
        [
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\Anna\\Меню на март.txt", "Меню на март.txt"),
            ("...", "..."),
            (".htaccess", ".htaccess"),
            ("%2e%2e%2fx", "%2e%2e%2fx"),
            ('5" pizza; 100%.txt', '5" pizza; 100%.txt'),
            ("я" * 200, "я" * 200),
        ],
    )
    def test_a_name_is_stored_as_sent_without_its_path(
        self, name: str, stored_name: str, api: Api
    ) -> None:
        file = upload(api, name)
        assert file["name"] == stored_name
        path = {"proxy": key(file["url"]).removeprefix("files/")}
        assert devserver_files.read(HttpRequest("GET", "/files/", {}, path=path)).body == b"hello"

    @pytest.mark.parametrize("name", ["..", ".", "a/", "C:\\", "../ ."])
    def test_a_name_with_only_a_path_is_400(self, name: str, api: Api) -> None:
        answer = api.call_refused("POST", UPLOAD, {"name": name, "content": "aGk="})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "name")

    def test_a_forms_bytes_arrive_unchanged(self, api: Api) -> None:
        place = folder(api, "f")
        body, headers = form(
            ('name="folderId"', place["id"].encode()),
            ('name="anything"; filename="Ёж.bin"', b"\x00\x01" + HOSTILE),
        )
        file = api._ok(api.call("POST", UPLOAD, body, headers))["file"]
        assert (file["name"], file["folderId"]) == ("Ёж.bin", place["id"])
        assert store().get(key(file["url"])) == b"\x00\x01" + HOSTILE

    @pytest.mark.parametrize(
        ("header", "name"),
        [
            ('filename="Прайс на март.csv"', "Прайс на март.csv"),
            ("filename*=UTF-8''%D0%BF%D1%80%D0%B0%D0%B9%D1%81.csv", "прайс.csv"),
            ("filename=\"_.csv\"; filename*=utf-8'ru'%D0%BF%20%D1%80.csv", "п р.csv"),
            ("filename*=windows-1251''%EF%F0.csv", "пр.csv"),
            ("filename=\"a.csv\"; filename*=nonsense''%EF%F0.csv", "a.csv"),
            ('filename="C:\\\\Users\\\\Anna\\\\new.csv"', "new.csv"),
            ('filename="C:\\Users\\Anna\\new.csv"', "new.csv"),
            ('filename="../../прайс.csv"', "прайс.csv"),
            ('filename="5%22 pizza; 100%.csv"', '5" pizza; 100%.csv'),
            ('filename="a;b=c.csv"', "a;b=c.csv"),
        ],
    )
    def test_a_forms_file_name_is_kept_as_sent(self, header: str, name: str, api: Api) -> None:
        body, headers = form((f'name="file"; {header}', b"a;b"))
        assert api._ok(api.call("POST", UPLOAD, body, headers))["file"]["name"] == name

    def test_a_form_is_accepted_by_the_local_server(self, api: Api, owner: Owner) -> None:
        import app as application

        body, headers = form(('name="content"; filename="b.bin"', b"\xff\x00" * 1_999_990))
        headers["Authorization"] = f"Bearer {owner.token()}"
        with serving(application.app) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            connection.request("POST", UPLOAD, body, headers)
            assert connection.getresponse().status == 200
            connection.close()
        assert list_files(api)["files"][0]["size"] == 3_999_980

    def test_a_forms_name_field_wins_over_the_file_name(self, api: Api) -> None:
        body, headers = form(('name="name"', "Моё".encode()), ('name="f"; filename="b"', b"x"))
        assert api._ok(api.call("POST", UPLOAD, body, headers))["file"]["name"] == "Моё"

    @pytest.mark.parametrize(
        "parts",
        [
            [],
            [('name="name"', b"a")],
            [('name="a"; filename="a"', b"a"), ('name="b"; filename="b"', b"b")],
            [('name="a"; filename=""', b"a")],
            [('name="a"; filename="a"', b"")],
            [('name="x"', b"y" * 20_001), ('name="a"; filename="a"', b"a")],
            [*[(f'name="{n}"', b"y") for n in range(101)], ('name="a"; filename="a"', b"a")],
            [("no name", b"a")],
            [('name="a"; filename="a"\r\nContent-Transfer-Encoding: base64', b"!")],
        ],
    )
    def test_a_form_that_is_not_one_named_file_is_400(
        self, parts: list[tuple[str, bytes]], api: Api
    ) -> None:
        body, headers = form(*parts)
        objects_before = list_stored_files()
        assert api.call_refused("POST", UPLOAD, body, **headers).status == 400
        assert list_stored_files() == objects_before

    @pytest.mark.parametrize("kind", ["", "; boundary=", "; boundary=Y", "; boundary=" + "Z" * 999])
    def test_a_form_without_its_boundary_is_400(self, kind: str, api: Api) -> None:
        body, _ = form(('name="a"; filename="a"', b"a"))
        headers = {"Content-Type": "multipart/form-data" + kind}
        assert api.call_refused("POST", UPLOAD, body, **headers).status == 400

    def test_a_form_cut_anywhere_is_400(self, api: Api) -> None:
        body, headers = form(('name="a"; filename="a.txt"', b"some text"))
        for end in range(1, len(body) - 4, 7):
            assert api.call_refused("POST", UPLOAD, body[:end], **headers).status == 400

    def test_other_operations_refuse_forms(self, api: Api) -> None:
        body, headers = form(('name="a"; filename="a"', b"a"))
        assert api.call_refused("POST", FOLDERS, body, **headers).status == 415

    @pytest.mark.parametrize("content", ["", "====", "a", "пр", "\n", "aG k="])
    def test_invalid_base64_is_400(self, content: str, api: Api) -> None:
        answer = api.call_refused("POST", UPLOAD, {"name": "a", "content": content})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")

    @pytest.mark.parametrize("content", ["aGVs\nbG8=\n", "aGVs\r\nbG8="])
    def test_base64_with_line_breaks_is_accepted(self, content: str, api: Api) -> None:
        file = api.post(UPLOAD, {"name": "a.txt", "content": content})["file"]
        assert file["size"] == len(b"hello")

    def test_another_content_type_is_refused_with_a_hint_at_forms(self, api: Api) -> None:
        answer = api.call_refused("POST", UPLOAD, b"hello", **{"Content-Type": "text/plain"})
        assert (answer.status, answer.data["key"]) == (415, "content_type")
        for named in ("application/json", "multipart/form-data", '"text/plain"'):
            assert named in answer.data["message"]
        answer = api.call_refused("POST", ANNOUNCE, b"hello", **{"Content-Type": "text/plain"})
        assert "form" not in answer.data["message"]

    def test_a_body_over_the_limit_is_refused_with_a_hint_at_two_steps(self, api: Api) -> None:
        answer = api.call_refused("POST", UPLOAD, b" " * 5_000_001)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert "POST /api/files/uploads/create" in answer.data["message"]

    def test_four_megabytes_are_accepted_and_more_refers_to_two_steps(self, api: Api) -> None:
        for size, status in ((4_000_000, 200), (4_000_001, 413)):
            body, headers = form(('name="a"; filename="a"', b"\x01" * size))
            answer = api.call("POST", UPLOAD, body, headers)
            assert answer.status == status
        assert "/api/files/uploads/create" in answer.data["message"]

    def test_an_image_is_re_encoded_with_a_thumbnail(self, api: Api, owner: Owner) -> None:
        file = upload(api, "me.PNG", photo())
        assert (file["mimeType"], file["width"], file["height"]) == ("image/jpeg", 640, 480)
        assert file["url"].endswith("/me.jpg")
        body = store().get(key(file["url"]))
        small = store().get(key(file["thumbnailUrl"]))
        assert body
        assert small
        assert b"taken at home" not in body + small
        assert Image.open(io.BytesIO(small)).size == (400, 300)
        assert file["size"] == len(body)
        assert used(owner) == len(body) + len(small)

    def test_a_transparent_image_has_a_transparent_thumbnail(self, api: Api) -> None:
        body = io.BytesIO()
        Image.new("RGBA", (500, 500), (255, 0, 0, 0)).save(body, "PNG")
        file = upload(api, "a.png", body.getvalue())
        small = store().get(key(file["thumbnailUrl"]))
        assert small
        assert file["thumbnailUrl"].endswith(".webp")
        assert Image.open(io.BytesIO(small)).convert("RGBA").getpixel((5, 5))[3] == 0  # type: ignore[index]

    def test_a_photo_without_its_last_bytes_is_stored_if_its_rows_are_complete(
        self, api: Api
    ) -> None:
        file = upload(api, "a.jpg", photo()[:-2])
        assert (file["width"], file["height"]) == (640, 480)
        content = base64.b64encode(photo()[: len(photo()) // 2]).decode()
        answer = api.call_refused("POST", UPLOAD, {"name": "a.jpg", "content": content})
        assert answer.status == 400
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == ("content", "incomplete_image")

    def test_a_damaged_image_is_400_and_leaves_nothing(self, api: Api, owner: Owner) -> None:
        objects_before = list_stored_files()
        content = base64.b64encode(photo()[:2000]).decode()
        answer = api.call_refused("POST", UPLOAD, {"name": "a.jpg", "content": content})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")
        assert list_stored_files() == objects_before
        assert used(owner) == 0

    @pytest.mark.parametrize(
        ("name", "body", "advice"),
        [
            ("a.heic", b"\x00\x00\x00\x1cftypheic\x00\x00\x00\x00mif1heic", "Most Compatible"),
            ("a.tif", b"II*\x00\x08\x00\x00\x00", "save the image as JPEG or PNG"),
            ("a.tif", b"MM\x00+\x00\x08\x00\x00", "save the image as JPEG or PNG"),
            ("a.jxl", b"\xff\x0a\x00", "save the image as JPEG or PNG"),
            (
                "a.cr3",
                b"\x00\x00\x00\x18ftypcrx \x00\x00\x00\x01crx isom",
                "save the image as JPEG or PNG",
            ),
        ],
    )
    def test_a_photo_whose_metadata_cannot_be_removed_is_refused_with_advice(
        self, name: str, body: bytes, advice: str, api: Api, owner: Owner
    ) -> None:
        objects_before = list_stored_files()
        content = base64.b64encode(body).decode()
        answer = api.call_refused("POST", UPLOAD, {"name": name, "content": content})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")
        assert advice in answer.data["message"]
        announced = announce(api, len(body), name)
        put(announced, body)
        assert api.call_refused("POST", COMPLETE, {"id": announced["id"]}).status == 400
        assert {
            one for one in list_stored_files() - objects_before if "uploads/" not in one
        } == set()

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", "image/svg+xml"),
            (b"<!doctype html><script>x()</script>", "text/html"),
        ],
    )
    def test_active_content_is_stored_and_served_only_as_a_download(
        self, body: bytes, kind: str, api: Api
    ) -> None:
        file = upload(api, "a.png", body)
        assert file["mimeType"] == kind
        headers = stored_files.headers(kind)
        assert headers["Content-Disposition"] == "attachment"
        assert "sandbox" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"

    @pytest.mark.parametrize("name", ["menu.css", "Menu.JS", "shop.mjs"])
    def test_a_style_sheet_or_script_warns_where_it_belongs(self, name: str, api: Api) -> None:
        content = base64.b64encode(b"a { color: red }").decode()
        answer = api.post("/api/files/upload", {"name": name, "content": content})
        assert answer["file"]["mimeType"] == "text/plain"
        assert warned(answer) == [{"code": "served_as_text", "name": name}]
        (warning,) = answer["warnings"]
        announced = api.post("/api/files/uploads/create", {"name": name, "size": 1})
        assert announced["warnings"] == [warning]
        assert put(announced["upload"], b"a")
        completed = api.post("/api/files/uploads/complete", {"id": announced["upload"]["id"]})
        assert completed["warnings"] == [warning]

    def test_a_store_that_fails_midway_leaves_nothing(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        objects_before, put_object = list_stored_files(), FolderStore.put

        def fail(self: FolderStore, key: str, *arguments: Any) -> None:
            if "thumbnail" in key:
                raise UnavailableError
            put_object(self, key, *arguments)

        monkeypatch.setattr(FolderStore, "put", fail)
        content = base64.b64encode(photo()).decode()
        answer = api.call_refused("POST", UPLOAD, {"name": "a.jpg", "content": content})
        assert answer.status == 503
        assert list_stored_files() == objects_before
        assert used(owner) == 0


class TestTwoSteps:
    def test_two_steps_make_a_file_of_the_sent_bytes(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        objects_before, place = list_stored_files(), folder(api, "f")
        announced = announce(api, 5_000_000, "big.bin", folderId=place["id"])
        assert announced["method"] == "PUT"
        assert announced["expiresAt"] == "2027-01-15T12:30:00.000Z"
        assert used(owner) == 5_000_000
        assert put(announced, b"\x07" * 5_000_000)
        file = api.post(COMPLETE, {"id": announced["id"]})["file"]
        assert (file["size"], file["folderId"]) == (5_000_000, place["id"])
        assert used(owner) == 5_000_000
        assert list_stored_files() - objects_before == {key(file["url"])}

    def test_completing_before_the_bytes_were_sent_is_refused(self, api: Api) -> None:
        announced = announce(api, 3)
        answer = api.call_refused("POST", COMPLETE, {"id": announced["id"]})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "id")
        put(announced, b"abc")
        api.post(COMPLETE, {"id": announced["id"]})

    def test_another_size_than_announced_is_refused(self, api: Api) -> None:
        announced = announce(api, 3)
        for body in (b"", b"ab", b"abcd"):
            assert put(announced, body) is False
        store().put(f"{api_workspace(announced)}/uploads/{announced['id']}", b"four", "x/y")
        assert api.call_refused("POST", COMPLETE, {"id": announced["id"]}).status == 400

    def test_a_damaged_image_may_be_sent_again(self, api: Api) -> None:
        good = photo()
        bad = good[:3].ljust(len(good), b"\0")
        announced = announce(api, len(good))
        put(announced, bad)
        assert api.call_refused("POST", COMPLETE, {"id": announced["id"]}).status == 400
        put(announced, good)
        assert api.post(COMPLETE, {"id": announced["id"]})["file"]["width"] == 640

    def test_the_upload_url_expires(self, time: Time, api: Api) -> None:
        announced = announce(api, 3)
        time.pass_by(minutes=31)
        assert put(announced, b"abc") is False

    def test_completing_again_returns_the_same_file(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        announced = announce(api, 3)
        put(announced, b"abc")
        body = {"id": announced["id"]}
        first = api.post(COMPLETE, body, key="k")
        assert api.post(COMPLETE, body, key="k") == first
        time.pass_by(days=2)
        run_jobs()
        assert api.post(COMPLETE, body) == first
        assert (list_files(api)["pagination"]["total"], used(owner)) == (1, 3)
        api.post(DELETE, {"id": first["file"]["id"]})
        assert api.call_refused("POST", COMPLETE, body).status == 404

    def test_a_folder_deleted_during_the_upload_leaves_the_file_at_the_root(self, api: Api) -> None:
        place = folder(api, "f")
        announced = announce(api, 3, folderId=place["id"])
        put(announced, b"abc")
        api.post(FOLDER_DELETE, {"id": place["id"]})
        answer = api.post(COMPLETE, {"id": announced["id"]})
        assert answer["file"]["folderId"] is None
        assert warned(answer) == [{"code": "folder_deleted"}]

    @pytest.mark.store
    def test_twenty_concurrent_completions_make_one_file(self, api: Api, owner: Owner) -> None:
        objects_before, announced = list_stored_files(), announce(api, 3)
        put(announced, b"abc")
        answers = run_concurrently(
            20, lambda _: api.call("POST", COMPLETE, {"id": announced["id"]})
        )
        assert Counter(a.status for a in answers) == {200: 20}
        assert len({a.data["file"]["url"] for a in answers}) == 1
        assert list_files(api)["pagination"]["total"] == 1
        assert used(owner) == 3
        assert list_stored_files() - objects_before == {key(list_files(api)["files"][0]["url"])}

    def test_an_upload_that_is_not_completed_is_removed_with_its_bytes(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        objects_before, announced = list_stored_files(), announce(api, 3)
        unsent = announce(api, 4)
        put(announced, b"abc")
        time.pass_by(minutes=59)
        run_jobs()
        assert used(owner) == 7
        time.pass_by(minutes=2)
        run_jobs()
        run_jobs()
        assert used(owner) == 0
        assert list_stored_files() == objects_before
        for one in (announced, unsent):
            assert api.call_refused("POST", COMPLETE, {"id": one["id"]}).status == 404

    def test_bytes_sent_after_completion_are_removed_by_the_cleanup(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        objects_before, announced = list_stored_files(), announce(api, 3)
        put(announced, b"abc")
        file = api.post(COMPLETE, {"id": announced["id"]})["file"]
        assert put(announced, b"xyz")
        assert store().get(key(file["url"])) == b"abc"
        time.pass_by(minutes=61)
        run_jobs()
        assert list_stored_files() - objects_before == {key(file["url"])}
        assert used(owner) == 3

    @pytest.mark.store
    def test_a_concurrent_cleanup_and_completion_agree(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        announced = announce(api, 3)
        put(announced, b"abc")
        time.pass_by(minutes=61)

        def act(number: int) -> Any:
            if number:
                return api.call("POST", COMPLETE, {"id": announced["id"]})
            return run_jobs()

        _, *answers = run_concurrently(4, act)
        success_count = sum(a.status == 200 for a in answers)
        assert used(owner) == 3 * bool(success_count)
        assert list_files(api)["pagination"]["total"] == bool(success_count)


def api_workspace(announced: Any) -> str:
    """Return the workspace that owns an upload."""
    reply = base64.urlsafe_b64decode(announced["url"].rpartition("/")[2]).decode()
    return reply.rpartition(".")[2].partition("/")[0]
