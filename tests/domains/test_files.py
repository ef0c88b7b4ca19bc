"""Files and folders: what the calls promise (spec, File listing, Files, Limits; contract)."""

import base64
import http.client
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from PIL import Image

from chalicelib.core import plans
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.settings import settings
from chalicelib.domains.files import folder_deletion, folders
from chalicelib.gateways.object_store import FolderStore, object_store
from chalicelib.rules import stored_files
from chalicelib.store import files, jobs, queries
from chalicelib.store.unit import UnitOfWork
from chalicelib.transports.http import HttpRequest
from chalicelib.transports.schedules import run_jobs
from infra.devserver import files as devserver_files
from tests.conftest import Api, Owner, Time, as_operator, at_once
from tests.transports.conftest import serving

LIST, FOLDERS, UPLOAD, DELETE = (
    "/api/files/list",
    "/api/file-folders",
    "/api/files/upload",
    "/api/files/delete",
)
UPDATE, FOLDER_UPDATE, FOLDER_DELETE = (
    "/api/files/update",
    "/api/file-folders/update",
    "/api/file-folders/delete",
)
ANNOUNCE, COMPLETE = "/api/files/uploads/create", "/api/files/uploads/complete"
HOSTILE = bytes(range(256)) + b"\r\n--X\x00--\r\n\xff\xfe"


def upload(api: Api, name: str = "a.txt", body: bytes = b"hello", **more: Any) -> Any:
    content = base64.b64encode(body).decode()
    return api.post(UPLOAD, {"name": name, "content": content, **more})["file"]


def folder(api: Api, name: str, **more: Any) -> Any:
    return api.post(FOLDERS, {"name": name, **more})["folder"]


def listed(api: Api, **query: Any) -> Any:
    return api.get(f"{LIST}?{urlencode(query)}")


def announce(api: Api, size: int, name: str = "big.bin", **more: Any) -> Any:
    return api.post(ANNOUNCE, {"name": name, "size": size, **more})["upload"]


def store() -> FolderStore:
    made = object_store()
    assert isinstance(made, FolderStore)
    return made


def put(announced: Any, body: bytes) -> bool:
    return store().put_upload(announced["url"].rpartition("/")[2], body)


def key(url: str) -> str:
    return url.removeprefix(f"{settings().public_url}/")


def kept() -> set[str]:
    """Return the keys of all objects that there are."""
    root = Path(settings().object_store.removeprefix("file://"))
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return found - {".upload-secret"}


def used(owner: Owner) -> int:
    return files.used_bytes(owner.workspace.id)


def photo(kind: str = "JPEG", size: tuple[int, int] = (640, 480), mode: str = "RGB") -> bytes:
    body = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "taken at home, 55.75 N 37.61 E"
    Image.effect_noise(size, 60).convert(mode).save(body, kind, exif=exif)
    return body.getvalue()


def form(*parts: tuple[str, bytes], boundary: str = "X") -> tuple[bytes, dict[str, str]]:
    """Return a body of parts, each with its Content-Disposition, and its header."""
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {about}\r\n\r\n".encode()
        + content
        + b"\r\n"
        for about, content in parts
    )
    kind = f"multipart/form-data; boundary={boundary}"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": kind}


@pytest.fixture
def small_quota(monkeypatch: pytest.MonkeyPatch) -> int:
    """A quota of 1,000 bytes."""
    monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
    return 1000


class TestListFiles:
    def test_an_empty_root(self, api: Api) -> None:
        assert listed(api) == {
            "status": True,
            "folders": [],
            "files": [],
            "currentFolder": None,
            "pagination": {"total": 0, "page": 1, "limit": 10},
        }

    def test_shows_a_folders_files_newest_first_and_its_folders_by_name(
        self, time: Time, api: Api
    ) -> None:
        home = folder(api, "Home")
        for name in ("ёлка", "Арбуз", "еда"):
            folder(api, name, parentId=home["id"])
        made = []
        for name in ("1.txt", "2.txt"):
            made.append(upload(api, name, folderId=home["id"]))
            time.pass_by(seconds=1)
        upload(api, "elsewhere.txt")
        data = listed(api, folderId=home["id"])
        assert [f["name"] for f in data["folders"]] == ["Арбуз", "еда", "ёлка"]
        assert data["files"] == made[::-1]
        assert data["currentFolder"] == home | {"filesCount": 2}
        assert listed(api)["folders"] == [home | {"filesCount": 2}]

    @pytest.mark.parametrize("small", [0, 500])
    def test_pages_count_files_only(
        self, small: int, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "SMALL_ROWS", small)
        upload(api, "elsewhere.txt", folderId=folder(api, "Folder of a file")["id"])
        for number in range(5):
            folder(api, f"Folder {number}")
        names = [upload(api, f"{number}.txt")["name"] for number in range(5)]
        pages = [listed(api, page=page, size=2) for page in (1, 2, 3, 4)]
        assert [[f["name"] for f in page["files"]] for page in pages] == [
            names[:2:-1],
            names[2:0:-1],
            names[:1],
            [],
        ]
        for number, page in enumerate(pages, 1):
            assert page["pagination"] == {"total": 5, "page": number, "limit": 2}
            assert len(page["folders"]) == 6

    def test_an_unknown_folder_is_404(self, api: Api) -> None:
        assert api.refused("GET", f"{LIST}?folderId={new_id()}").status == 404

    @pytest.mark.parametrize("query", ["size=0", "size=101", "page=0", "size=x"])
    def test_a_page_out_of_range_is_400(self, query: str, api: Api) -> None:
        assert api.refused("GET", f"{LIST}?{query}").status == 400

    def test_the_tree_has_every_folder_with_its_count(self, api: Api) -> None:
        a = folder(api, "a")
        b = folder(api, "b", parentId=a["id"])
        c = folder(api, "c", parentId=b["id"])
        upload(api, folderId=c["id"])
        assert api.get(FOLDERS)["folders"] == [
            a | {"children": [b | {"children": [c | {"filesCount": 1, "children": []}]}]}
        ]


class TestFolders:
    def test_names_are_unique_beside_their_siblings_only(self, api: Api) -> None:
        first = folder(api, "Ёлка")
        answer = api.refused("POST", FOLDERS, {"name": " елка "})
        assert (answer.status, answer.data["code"]) == (409, "name_taken")
        folder(api, "елка", parentId=first["id"])

    @pytest.mark.store
    def test_of_twenty_of_one_name_one_is_made(self, api: Api) -> None:
        answers = at_once(20, lambda _: api.call("POST", FOLDERS, {"name": "One"}))
        assert Counter(a.status for a in answers) == {200: 1, 409: 19}

    @pytest.mark.parametrize("name", ["", "  ", "a/b", "a\\b", "a\x00b", "x" * 101, "\u200b"])
    def test_a_name_that_misleads_is_400(self, name: str, api: Api) -> None:
        assert api.refused("POST", FOLDERS, {"name": name}).status == 400

    @pytest.mark.parametrize("letter", ["ŉ", "ΐ", "ﬃ", "\ufdfa"])
    def test_a_name_may_have_a_hundred_letters_that_grow_when_folded(
        self, letter: str, api: Api
    ) -> None:
        made = folder(api, letter * 100)
        assert made["name"] == letter * 100
        inside = folder(api, letter * 100, parentId=made["id"])
        assert inside["parentId"] == made["id"]
        for name, status in ((letter * 100, 409), (letter * 99, 200)):
            assert api.call("POST", FOLDERS, {"name": name}).status == status

    def test_lie_ten_deep_at_most(self, api: Api) -> None:
        parent: dict[str, Any] = {}
        for number in range(folders.MAX_DEPTH):
            parent = {"parentId": folder(api, str(number), **parent)["id"]}
        answer = api.refused("POST", FOLDERS, {"name": "deeper", **parent})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "parentId")

    def test_are_so_many_at_most(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folders, "MAX_FOLDERS", 2)
        folder(api, "1")
        folder(api, "2")
        assert api.refused("POST", FOLDERS, {"name": "3"}).status == 409

    def test_an_unknown_parent_is_404(self, api: Api) -> None:
        assert api.refused("POST", FOLDERS, {"name": "x", "parentId": new_id()}).status == 404


class TestUpdateFolder:
    def test_renames_and_moves_with_all_that_is_in_it(self, api: Api) -> None:
        a, b = folder(api, "a"), folder(api, "b")
        inside = folder(api, "inside", parentId=b["id"])
        file = upload(api, folderId=inside["id"])
        moved = api.post(FOLDER_UPDATE, {"id": b["id"], "name": "Б", "parentId": a["id"]})
        assert moved["folder"] == b | {"name": "Б", "parentId": a["id"]}
        shown = inside | {"filesCount": 1, "children": []}
        tree = [a | {"children": [moved["folder"] | {"children": [shown]}]}]
        assert api.get(FOLDERS)["folders"] == tree
        assert listed(api, folderId=inside["id"])["files"] == [file]
        back = api.post(FOLDER_UPDATE, {"id": b["id"], "parentId": None})["folder"]
        assert (back["name"], back["parentId"]) == ("Б", None)
        folder(api, "b")

    def test_refuses_a_cycle_a_taken_name_and_what_lies_too_deep(self, api: Api) -> None:
        top = folder(api, "top")
        chain = [top]
        for number in range(folders.MAX_DEPTH - 1):
            chain.append(folder(api, str(number), parentId=chain[-1]["id"]))
        for target in (top, chain[-1]):
            answer = api.refused("POST", FOLDER_UPDATE, {"id": top["id"], "parentId": target["id"]})
            assert (answer.status, answer.data["code"]) == (400, "cycle")
        other = folder(api, "other")
        body = {"id": other["id"], "parentId": chain[-1]["id"]}
        answer = api.refused("POST", FOLDER_UPDATE, body)
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "parentId")
        answer = api.refused("POST", FOLDER_UPDATE, {"id": other["id"], "name": "TOP"})
        assert (answer.status, answer.data["code"]) == (409, "name_taken")
        assert api.post(FOLDER_UPDATE, {"id": top["id"], "name": "Top"})["folder"]["name"] == "Top"
        assert api.refused("POST", FOLDER_UPDATE, {"id": top["id"]}).status == 400

    @pytest.mark.store
    def test_two_that_would_lie_in_each_other_do_not_both_move(self, api: Api) -> None:
        a, b = folder(api, "a")["id"], folder(api, "b")["id"]
        moves = [{"id": a, "parentId": b}, {"id": b, "parentId": a}]
        answers = at_once(2, lambda number: api.call("POST", FOLDER_UPDATE, moves[number]))
        assert sorted(answer.status for answer in answers) == [200, 400]


class TestDeleteFolder:
    def test_without_a_place_for_its_content_only_an_empty_one_goes(self, api: Api) -> None:
        empty, full, nested = (folder(api, name) for name in ("empty", "full", "nested"))
        upload(api, folderId=full["id"])
        folder(api, "x", parentId=nested["id"])
        dry = api.post(FOLDER_DELETE, {"id": empty["id"], "dryRun": True})
        assert dry["deleted"] is False
        assert api.post(FOLDER_DELETE, {"id": empty["id"]})["deleted"] is True
        assert api.refused("POST", FOLDER_DELETE, {"id": empty["id"]}).status == 404
        for body in ({"id": full["id"]}, {"id": nested["id"], "dryRun": True}):
            answer = api.refused("POST", FOLDER_DELETE, body)
            assert (answer.status, answer.data["code"]) == (409, "folder_not_empty")
        assert [f["name"] for f in listed(api)["folders"]] == ["full", "nested"]

    @pytest.mark.parametrize("to_root", [True, False])
    def test_its_content_moves_where_it_is_told(
        self, to_root: bool, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folder_deletion, "FILES_AT_ONCE", 2)
        monkeypatch.setattr(folder_deletion, "FOLDERS_AT_ONCE", 1)
        target = None if to_root else folder(api, "target")["id"]
        gone = folder(api, "gone")
        inside = [folder(api, name, parentId=gone["id"]) for name in ("1", "2", "3")]
        deep = upload(api, "deep.txt", folderId=inside[0]["id"])
        names = [upload(api, f"{n}.txt", folderId=gone["id"])["name"] for n in range(5)]
        body = {"id": gone["id"], "moveTo": target}
        would = api.post(FOLDER_DELETE, body | {"dryRun": True})
        assert (would["deleted"], would["movedFiles"], would["movedFolders"]) == (False, 5, 3)
        assert api.post(FOLDER_DELETE, body) == would | {"deleted": True}
        there = listed(api, **({} if to_root else {"folderId": target}))
        assert {f["name"] for f in there["files"]} == set(names)
        assert there["pagination"]["total"] == 5
        assert [f for f in there["folders"] if f["id"] != target] == [
            f | {"parentId": target, "filesCount": int(f is inside[0])} for f in inside
        ]
        assert listed(api, folderId=inside[0]["id"])["files"] == [deep]
        assert api.refused("GET", f"{LIST}?folderId={gone['id']}").status == 404

    def test_refuses_a_place_in_itself_or_where_a_name_is_taken(self, api: Api) -> None:
        gone = folder(api, "gone")
        inside = folder(api, "Same", parentId=gone["id"])
        for target in (gone, inside):
            answer = api.refused("POST", FOLDER_DELETE, {"id": gone["id"], "moveTo": target["id"]})
            assert (answer.status, answer.data["code"]) == (400, "cycle")
        taken = folder(api, "same")
        answer = api.refused("POST", FOLDER_DELETE, {"id": gone["id"], "moveTo": None})
        assert (answer.status, answer.data["code"]) == (409, "name_taken")
        api.post(FOLDER_DELETE, {"id": gone["id"], "moveTo": taken["id"]})
        assert [f["name"] for f in listed(api, folderId=taken["id"])["folders"]] == ["Same"]

    def test_what_a_killed_process_left_moves_later(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target, gone = folder(api, "target"), folder(api, "gone")
        folder(api, "x", parentId=gone["id"])
        upload(api, folderId=gone["id"])
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: False)
            api.post(FOLDER_DELETE, {"id": gone["id"], "moveTo": target["id"]})
        folder(api, "x", parentId=target["id"])
        time.pass_by(minutes=1)
        run_jobs()
        there = listed(api, folderId=target["id"])
        assert [f["name"] for f in there["folders"]] == ["x", "x (2)"]
        assert len(there["files"]) == 1

    @pytest.mark.store
    def test_raced_by_uploads_loses_none_of_them(self, api: Api) -> None:
        gone = folder(api, "gone")["id"]

        def act(number: int) -> Any:
            if number == 0:
                return api.call("POST", FOLDER_DELETE, {"id": gone, "moveTo": None})
            body = {"name": "a", "content": "aGk=", "folderId": gone}
            return api.call("POST", UPLOAD, body)

        deleted, *uploads = at_once(6, act)
        assert deleted.status == 200
        assert {a.status for a in uploads} <= {200, 404}
        assert listed(api)["pagination"]["total"] == sum(a.status == 200 for a in uploads)


class TestUpdateFile:
    def test_renames_and_moves_and_the_address_stays(self, api: Api) -> None:
        place, file = folder(api, "f"), upload(api, "a.txt")
        changes = {"name": "C:\\tmp\\б.txt", "folderId": place["id"]}
        renamed = api.post(UPDATE, {"id": file["id"], **changes})["file"]
        assert renamed == file | {"name": "б.txt", "folderId": place["id"]}
        assert listed(api)["files"] == []
        assert listed(api, folderId=place["id"])["files"] == [renamed]
        back = api.post(UPDATE, {"id": file["id"], "folderId": None})["file"]
        assert back == renamed | {"folderId": None}
        assert listed(api)["files"] == [back]
        assert [f["filesCount"] for f in listed(api)["folders"]] == [0]

    def test_of_nothing_or_to_nowhere_is_refused(self, api: Api) -> None:
        file = upload(api)
        assert api.refused("POST", UPDATE, {"id": file["id"]}).status == 400
        assert api.refused("POST", UPDATE, {"id": new_id(), "name": "x"}).status == 404
        body = {"id": file["id"], "folderId": new_id()}
        assert api.refused("POST", UPDATE, body).status == 404


class TestSearch:
    def test_finds_files_and_folders_by_a_part_of_the_name_in_all_folders(self, api: Api) -> None:
        place = folder(api, "Ёлки")
        inside = upload(api, "ёлка.txt", folderId=place["id"])
        other = upload(api, "Новая ЕЛКА.txt")
        upload(api, "b.txt")
        found = listed(api, q="елк")
        assert [f["id"] for f in found["files"]] == [other["id"], inside["id"]]
        assert [f["name"] for f in found["folders"]] == ["Ёлки"]
        assert (found["currentFolder"], found["pagination"]["total"]) == (None, 2)
        assert len(listed(api, q="елк", size=1, page=2)["files"]) == 1
        ignored = listed(api, q="елк", folderId=place["id"])
        assert (len(ignored["files"]), ignored["currentFolder"]) == (2, None)
        assert "folderId" in ignored["warnings"][0]


def test_ids_of_another_workspace_are_404_and_nothing_changes(
    api: Api, new_owner: Callable[..., Owner]
) -> None:
    theirs = new_owner().api()
    place, file, announced = folder(theirs, "x"), upload(theirs), announce(theirs, 3)
    put(announced, b"abc")
    calls: list[tuple[str, Any]] = [
        (UPLOAD, {"name": "a", "content": "aGk=", "folderId": place["id"]}),
        (ANNOUNCE, {"name": "a", "size": 1, "folderId": place["id"]}),
        (FOLDERS, {"name": "a", "parentId": place["id"]}),
        (UPDATE, {"id": file["id"], "name": "x"}),
        (DELETE, {"id": file["id"]}),
        (FOLDER_UPDATE, {"id": place["id"], "name": "y"}),
        (FOLDER_DELETE, {"id": place["id"]}),
        (COMPLETE, {"id": announced["id"]}),
    ]
    mine, my_file = folder(api, "mine"), upload(api)
    calls += [
        (UPDATE, {"id": my_file["id"], "folderId": place["id"]}),
        (FOLDER_UPDATE, {"id": mine["id"], "parentId": place["id"]}),
        (FOLDER_DELETE, {"id": mine["id"], "moveTo": place["id"]}),
    ]
    before = kept()
    for path, body in calls:
        assert api.refused("POST", path, body).status == 404
    assert api.refused("GET", f"{LIST}?folderId={place['id']}").status == 404
    assert kept() == before
    assert theirs.post(COMPLETE, {"id": announced["id"]})["file"]["size"] == 3


class TestUpload:
    def test_keeps_any_bytes_and_tells_their_type(self, time: Time, api: Api) -> None:
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
        }
        assert store().get(key(file["url"])) == b"%PDF-1.7\n" + HOSTILE

    @pytest.mark.parametrize(
        ("name", "kept"),
        [
            ("../../etc/passwd", "passwd"),
            ("a/../../b", "b"),
            ("C:\\Users\\Anna\\Меню на март.txt", "Меню на март.txt"),
            ("\\\\server\\share\\a.txt", "a.txt"),
            ("/home/anna/ a.txt ", "a.txt"),
            ("...", "..."),
            (".htaccess", ".htaccess"),
            ("%2e%2e%2fx", "%2e%2e%2fx"),
            ('5" pizza; 100%.txt', '5" pizza; 100%.txt'),
            ("я" * 200, "я" * 200),
        ],
    )
    def test_a_name_stays_as_it_was_sent_without_its_path(
        self, name: str, kept: str, api: Api
    ) -> None:
        file = upload(api, name)
        assert file["name"] == kept
        path = {"proxy": key(file["url"]).removeprefix("files/")}
        assert devserver_files.read(HttpRequest("GET", "/files/", {}, path=path)).body == b"hello"

    @pytest.mark.parametrize("name", ["..", ".", "a/", "C:\\", "../ ."])
    def test_a_name_that_is_only_a_path_is_400(self, name: str, api: Api) -> None:
        answer = api.refused("POST", UPLOAD, {"name": name, "content": "aGk="})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "name")

    def test_two_files_never_share_an_address(self, api: Api) -> None:
        one, other = upload(api), upload(api)
        assert one["url"] != other["url"]
        secret = key(one["url"]).split("/")[1].removeprefix(one["id"])
        assert len(secret) >= 20

    def test_a_form_brings_its_bytes_as_they_are(self, api: Api) -> None:
        place = folder(api, "f")
        body, headers = form(
            ('name="folderId"', place["id"].encode()),
            ('name="anything"; filename="Ёж.bin"', b"\x00\x01" + HOSTILE),
        )
        file = api._ok(api.call("POST", UPLOAD, body, headers))["file"]
        assert (file["name"], file["folderId"]) == ("Ёж.bin", place["id"])
        assert store().get(key(file["url"])) == b"\x00\x01" + HOSTILE

    @pytest.mark.parametrize(
        ("sent", "name"),
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
    def test_a_forms_file_name_arrives_as_it_was_sent(self, sent: str, name: str, api: Api) -> None:
        body, headers = form((f'name="file"; {sent}', b"a;b"))
        assert api._ok(api.call("POST", UPLOAD, body, headers))["file"]["name"] == name

    def test_a_form_through_the_local_server(self, api: Api, owner: Owner) -> None:
        import app as application

        body, headers = form(('name="content"; filename="b.bin"', b"\xff\x00" * 1_999_990))
        headers["Authorization"] = f"Bearer {owner.token()}"
        with serving(application.app) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
            connection.request("POST", UPLOAD, body, headers)
            assert connection.getresponse().status == 200
            connection.close()
        assert listed(api)["files"][0]["size"] == 3_999_980

    def test_a_forms_own_name_wins_over_the_file_name(self, api: Api) -> None:
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
        before = kept()
        assert api.refused("POST", UPLOAD, body, **headers).status == 400
        assert kept() == before

    @pytest.mark.parametrize("kind", ["", "; boundary=", "; boundary=Y", "; boundary=" + "Z" * 999])
    def test_a_form_without_its_boundary_is_400(self, kind: str, api: Api) -> None:
        body, _ = form(('name="a"; filename="a"', b"a"))
        headers = {"Content-Type": "multipart/form-data" + kind}
        assert api.refused("POST", UPLOAD, body, **headers).status == 400

    def test_a_form_cut_short_is_400_wherever_it_is_cut(self, api: Api) -> None:
        body, headers = form(('name="a"; filename="a.txt"', b"some text"))
        for end in range(1, len(body) - 4, 7):
            assert api.refused("POST", UPLOAD, body[:end], **headers).status == 400

    def test_other_operations_take_no_forms(self, api: Api) -> None:
        body, headers = form(('name="a"; filename="a"', b"a"))
        assert api.refused("POST", FOLDERS, body, **headers).status == 415

    @pytest.mark.parametrize("content", ["", "====", "a", "пр", "\n", "aG k="])
    def test_what_is_no_base64_is_400(self, content: str, api: Api) -> None:
        answer = api.refused("POST", UPLOAD, {"name": "a", "content": content})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")

    @pytest.mark.parametrize("content", ["aGVs\nbG8=\n", "aGVs\r\nbG8="])
    def test_takes_base64_with_line_breaks(self, content: str, api: Api) -> None:
        file = api.post(UPLOAD, {"name": "a.txt", "content": content})["file"]
        assert file["size"] == len(b"hello")

    def test_another_type_is_told_that_forms_work(self, api: Api) -> None:
        answer = api.refused("POST", UPLOAD, b"hello", **{"Content-Type": "text/plain"})
        assert answer.status == 415
        assert answer.data["message"].endswith(
            "Send JSON, as Content-Type: application/json, or a form, as multipart/form-data."
        )
        answer = api.refused("POST", ANNOUNCE, b"hello", **{"Content-Type": "text/plain"})
        assert "form" not in answer.data["message"]

    def test_a_body_over_the_limit_is_told_of_the_two_steps(self, api: Api) -> None:
        answer = api.refused("POST", UPLOAD, b" " * 5_000_001)
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert "POST /api/files/uploads/create" in answer.data["message"]

    def test_takes_four_megabytes_and_names_the_other_way_beyond(self, api: Api) -> None:
        for size, status in ((4_000_000, 200), (4_000_001, 413)):
            body, headers = form(('name="a"; filename="a"', b"\x01" * size))
            answer = api.call("POST", UPLOAD, body, headers)
            assert answer.status == status
        assert "/api/files/uploads/create" in answer.data["message"]

    def test_a_picture_is_written_anew_with_a_thumbnail(self, api: Api, owner: Owner) -> None:
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

    def test_a_see_through_picture_has_a_see_through_thumbnail(self, api: Api) -> None:
        body = io.BytesIO()
        Image.new("RGBA", (500, 500), (255, 0, 0, 0)).save(body, "PNG")
        file = upload(api, "a.png", body.getvalue())
        small = store().get(key(file["thumbnailUrl"]))
        assert small
        assert file["thumbnailUrl"].endswith(".webp")
        assert Image.open(io.BytesIO(small)).convert("RGBA").getpixel((5, 5))[3] == 0  # type: ignore[index]

    def test_a_damaged_picture_is_400_and_leaves_nothing(self, api: Api, owner: Owner) -> None:
        before = kept()
        content = base64.b64encode(photo()[:2000]).decode()
        answer = api.refused("POST", UPLOAD, {"name": "a.jpg", "content": content})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")
        assert kept() == before
        assert used(owner) == 0

    @pytest.mark.parametrize(
        ("name", "body", "advice"),
        [
            ("a.heic", b"\x00\x00\x00\x1cftypheic\x00\x00\x00\x00mif1heic", "Most Compatible"),
            ("a.tif", b"II*\x00\x08\x00\x00\x00", "save it as JPEG or PNG"),
            ("a.tif", b"MM\x00+\x00\x08\x00\x00", "save it as JPEG or PNG"),
            ("a.jxl", b"\xff\x0a\x00", "save it as JPEG or PNG"),
            (
                "a.cr3",
                b"\x00\x00\x00\x18ftypcrx \x00\x00\x00\x01crx isom",
                "save it as JPEG or PNG",
            ),
        ],
    )
    def test_a_photo_that_cannot_be_freed_of_its_metadata_is_refused_with_what_to_do(
        self, name: str, body: bytes, advice: str, api: Api, owner: Owner
    ) -> None:
        before = kept()
        content = base64.b64encode(body).decode()
        answer = api.refused("POST", UPLOAD, {"name": name, "content": content})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "content")
        assert advice in answer.data["message"]
        announced = announce(api, len(body), name)
        put(announced, body)
        assert api.refused("POST", COMPLETE, {"id": announced["id"]}).status == 400
        assert {one for one in kept() - before if "uploads/" not in one} == set()

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", "image/svg+xml"),
            (b"<!doctype html><script>x()</script>", "text/html"),
        ],
    )
    def test_what_could_run_is_kept_but_only_downloaded(
        self, body: bytes, kind: str, api: Api
    ) -> None:
        file = upload(api, "a.png", body)
        assert file["mimeType"] == kind
        headers = stored_files.headers(kind)
        assert headers["Content-Disposition"] == "attachment"
        assert "sandbox" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"

    def test_an_idempotency_key_makes_one_file(self, api: Api, owner: Owner) -> None:
        body = {"name": "a", "content": "aGk="}
        first, again = (api.post(UPLOAD, body, key="k") for _ in range(2))
        assert first == again
        assert (listed(api)["pagination"]["total"], used(owner)) == (1, 2)
        answer = api.refused("POST", UPLOAD, body | {"content": "aGo="}, **{"Idempotency-Key": "k"})
        assert answer.status == 409

    def test_a_store_that_fails_midway_leaves_nothing(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, put_object = kept(), FolderStore.put

        def fail(self: FolderStore, key: str, *rest: Any) -> None:
            if "thumbnail" in key:
                raise UnavailableError
            put_object(self, key, *rest)

        monkeypatch.setattr(FolderStore, "put", fail)
        content = base64.b64encode(photo()).decode()
        answer = api.refused("POST", UPLOAD, {"name": "a.jpg", "content": content})
        assert answer.status == 503
        assert kept() == before
        assert used(owner) == 0


class TestDelete:
    def test_removes_the_file_its_objects_and_frees_its_bytes(self, api: Api, owner: Owner) -> None:
        before = kept()
        file = upload(api, "a.jpg", photo())
        assert len(kept() - before) == 2
        report = api.post(DELETE, {"id": file["id"], "dryRun": True})
        assert (report["deleted"], len(kept() - before)) == (False, 2)
        assert api.post(DELETE, {"id": file["id"]})["deleted"] is True
        assert kept() == before
        assert used(owner) == 0
        assert listed(api)["files"] == []
        assert api.refused("POST", DELETE, {"id": file["id"]}).status == 404

    def test_objects_that_could_not_be_removed_are_removed_later(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = kept()
        file = upload(api)

        def fail(*_: Any) -> None:
            raise UnavailableError

        with monkeypatch.context() as patched:
            patched.setattr(FolderStore, "delete", fail)
            assert api.post(DELETE, {"id": file["id"]})["deleted"] is True
        assert kept() != before
        time.pass_by(minutes=1)
        run_jobs()
        assert kept() == before

    @pytest.mark.store
    def test_raced_by_ten_frees_the_bytes_once(self, api: Api, owner: Owner) -> None:
        upload(api, body=b"x" * 100)
        file = upload(api)
        answers = at_once(10, lambda _: api.call("POST", DELETE, {"id": file["id"]}))
        assert Counter(a.status for a in answers) == {200: 1, 404: 9}
        assert used(owner) == 100


class TestQuota:
    def test_ends_where_the_plan_ends(self, small_quota: int, api: Api, owner: Owner) -> None:
        upload(api, body=b"x" * 600)
        before = kept()
        content = base64.b64encode(b"y" * 401).decode()
        answer = api.refused("POST", UPLOAD, {"name": "a", "content": content})
        assert (answer.status, answer.data["code"]) == (409, "quota_exceeded")
        answer = api.refused("POST", ANNOUNCE, {"name": "a", "size": 401})
        assert answer.data["code"] == "quota_exceeded"
        assert kept() == before
        upload(api, body=b"z" * 400)
        assert used(owner) == small_quota

    def test_even_the_first_file_may_not_pass_it(self, small_quota: int, api: Api) -> None:
        content = base64.b64encode(b"y" * 1001).decode()
        assert api.refused("POST", UPLOAD, {"name": "a", "content": content}).status == 409

    @pytest.mark.store
    def test_is_never_passed_by_twenty_at_once(
        self, small_quota: int, api: Api, owner: Owner
    ) -> None:
        before = kept()
        body = {"name": "a", "content": base64.b64encode(b"x" * 150).decode()}

        def call(number: int) -> Any:
            if number % 2:
                return api.call("POST", UPLOAD, body)
            return api.call("POST", ANNOUNCE, {"name": "b", "size": 150})

        answers = at_once(20, call)
        taken = [a for a in answers if a.status == 200]
        assert {a.status for a in answers} <= {200, 409, 503}
        assert len(taken) == 6
        assert used(owner) == 900
        made = [a.data["file"] for a in taken if "file" in a.data]
        assert listed(api)["pagination"]["total"] == len(made)
        assert kept() - before == {key(file["url"]) for file in made}

    def test_a_lower_plan_stops_uploads_until_enough_is_deleted(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "enterprise", 2000)
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
        as_operator("set_plan", workspaceId=owner.workspace.id, plan="enterprise")
        first, _ = (upload(api, body=b"x" * 900) for _ in range(2))
        as_operator("set_plan", workspaceId=owner.workspace.id, plan="business")
        assert api.refused("POST", UPLOAD, {"name": "a", "content": "aGk="}).status == 409
        api.post(DELETE, {"id": first["id"]})
        upload(api, body=b"x" * 100)
        assert used(owner) == 1000


class TestKilled:
    """A process that dies between storing a file and the commit leaves nothing for long."""

    def test_before_the_commit_the_objects_go_within_the_hour(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: Any) -> None:
            raise SystemExit

        before = kept()
        with monkeypatch.context() as killed:
            killed.setattr(UnitOfWork, "commit", die)
            killed.setattr(UnitOfWork, "undo", lambda _: None)
            with pytest.raises(SystemExit):
                upload(api, "a.jpg", photo())
        assert len(kept() - before) == 2
        time.pass_by(minutes=61)
        run_jobs()
        assert kept() == before

    def test_after_the_commit_they_stay(self, time: Time, api: Api) -> None:
        before = kept()
        file, gone = upload(api, "a.jpg", photo()), upload(api, "b.jpg", photo())
        api.post(DELETE, {"id": gone["id"]})
        time.pass_by(minutes=61)
        assert run_jobs()["file-orphan"] == 2
        assert kept() - before == {key(file["url"]), key(file["thumbnailUrl"])}


class TestTwoSteps:
    def test_make_a_file_of_what_was_sent(self, time: Time, api: Api, owner: Owner) -> None:
        before, place = kept(), folder(api, "f")
        announced = announce(api, 5_000_000, "big.bin", folderId=place["id"])
        assert announced["method"] == "PUT"
        assert announced["expiresAt"] == "2027-01-15T12:30:00.000Z"
        assert used(owner) == 5_000_000
        assert put(announced, b"\x07" * 5_000_000)
        file = api.post(COMPLETE, {"id": announced["id"]})["file"]
        assert (file["size"], file["folderId"]) == (5_000_000, place["id"])
        assert used(owner) == 5_000_000
        assert kept() - before == {key(file["url"])}

    def test_a_picture_takes_what_it_has_become(self, api: Api, owner: Owner) -> None:
        body = photo("BMP", (300, 300))
        announced = announce(api, len(body), "a.bmp")
        put(announced, body)
        file = api.post(COMPLETE, {"id": announced["id"]})["file"]
        small = store().get(key(file["thumbnailUrl"])) or b""
        assert file["mimeType"] == "image/png"
        assert used(owner) == file["size"] + len(small)

    def test_before_anything_was_sent_it_says_so(self, api: Api) -> None:
        announced = announce(api, 3)
        answer = api.refused("POST", COMPLETE, {"id": announced["id"]})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "id")
        put(announced, b"abc")
        api.post(COMPLETE, {"id": announced["id"]})

    def test_another_size_is_not_taken(self, api: Api) -> None:
        announced = announce(api, 3)
        for body in (b"", b"ab", b"abcd"):
            assert put(announced, body) is False
        store().put(f"{api_workspace(announced)}/uploads/{announced['id']}", b"four", "x/y")
        assert api.refused("POST", COMPLETE, {"id": announced["id"]}).status == 400

    def test_a_damaged_picture_may_be_sent_again(self, api: Api) -> None:
        good = photo()
        bad = good[:3].ljust(len(good), b"\0")
        announced = announce(api, len(good))
        put(announced, bad)
        assert api.refused("POST", COMPLETE, {"id": announced["id"]}).status == 400
        put(announced, good)
        assert api.post(COMPLETE, {"id": announced["id"]})["file"]["width"] == 640

    @pytest.mark.parametrize("size", [0, -1, 20_000_001])
    def test_beyond_twenty_megabytes_is_400(self, size: int, api: Api) -> None:
        assert api.refused("POST", ANNOUNCE, {"name": "a", "size": size}).status == 400

    def test_the_address_lapses(self, time: Time, api: Api) -> None:
        announced = announce(api, 3)
        time.pass_by(minutes=31)
        assert put(announced, b"abc") is False

    def test_completing_again_answers_with_the_same_file(
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
        assert (listed(api)["pagination"]["total"], used(owner)) == (1, 3)
        api.post(DELETE, {"id": first["file"]["id"]})
        assert api.refused("POST", COMPLETE, body).status == 404

    def test_a_folder_deleted_meanwhile_leaves_the_file_at_the_root(self, api: Api) -> None:
        place = folder(api, "f")
        announced = announce(api, 3, folderId=place["id"])
        put(announced, b"abc")
        api.post(FOLDER_DELETE, {"id": place["id"]})
        answer = api.post(COMPLETE, {"id": announced["id"]})
        assert answer["file"]["folderId"] is None
        assert "folder was deleted" in answer["warnings"][0]

    @pytest.mark.store
    def test_raced_by_twenty_makes_one_file(self, api: Api, owner: Owner) -> None:
        before, announced = kept(), announce(api, 3)
        put(announced, b"abc")
        answers = at_once(20, lambda _: api.call("POST", COMPLETE, {"id": announced["id"]}))
        assert Counter(a.status for a in answers) == {200: 20}
        assert len({a.data["file"]["url"] for a in answers}) == 1
        assert listed(api)["pagination"]["total"] == 1
        assert used(owner) == 3
        assert kept() - before == {key(listed(api)["files"][0]["url"])}

    def test_one_that_is_not_completed_is_forgotten_with_its_bytes(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        before, announced = kept(), announce(api, 3)
        unsent = announce(api, 4)
        put(announced, b"abc")
        time.pass_by(minutes=59)
        run_jobs()
        assert used(owner) == 7
        time.pass_by(minutes=2)
        run_jobs()
        run_jobs()
        assert used(owner) == 0
        assert kept() == before
        for one in (announced, unsent):
            assert api.refused("POST", COMPLETE, {"id": one["id"]}).status == 404

    def test_what_is_sent_after_completion_goes_with_the_sweep(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        before, announced = kept(), announce(api, 3)
        put(announced, b"abc")
        file = api.post(COMPLETE, {"id": announced["id"]})["file"]
        assert put(announced, b"xyz")
        assert store().get(key(file["url"])) == b"abc"
        time.pass_by(minutes=61)
        run_jobs()
        assert kept() - before == {key(file["url"])}
        assert used(owner) == 3

    @pytest.mark.store
    def test_the_sweep_and_completion_at_once_agree(
        self, time: Time, api: Api, owner: Owner
    ) -> None:
        announced = announce(api, 3)
        put(announced, b"abc")
        time.pass_by(minutes=61)

        def act(number: int) -> Any:
            if number:
                return api.call("POST", COMPLETE, {"id": announced["id"]})
            return run_jobs()

        _, *answers = at_once(4, act)
        done = sum(a.status == 200 for a in answers)
        assert used(owner) == 3 * bool(done)
        assert listed(api)["pagination"]["total"] == bool(done)


def api_workspace(announced: Any) -> str:
    """Return the workspace in whose part of the store an upload lies."""
    told = base64.urlsafe_b64decode(announced["url"].rpartition("/")[2]).decode()
    return told.rpartition(".")[2].partition("/")[0]
