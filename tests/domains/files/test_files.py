"""Tests of listing, searching, renaming and deleting files within the quota."""

import base64
from collections import Counter
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways.object_store import FolderStore
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_operator, run_concurrently
from tests.factories.files import (
    ANNOUNCE,
    DELETE,
    FOLDERS,
    UPDATE,
    UPLOAD,
    folder,
    key,
    list_files,
    list_stored_files,
    photo,
    upload,
    used,
)
from tests.support.warned import warned


@pytest.fixture
def small_quota(monkeypatch: pytest.MonkeyPatch) -> int:
    """A quota of 1,000 bytes."""
    monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
    return 1000


class TestListFiles:
    def test_a_folder_lists_files_newest_first_and_folders_by_name(
        self, time: Time, api: Api
    ) -> None:
        home = folder(api, "Home")
        for name in ("ёлка", "Арбуз", "еда"):
            folder(api, name, parentId=home["id"])
        uploads = []
        for name in ("1.txt", "2.txt"):
            uploads.append(upload(api, name, folderId=home["id"]))
            time.pass_by(seconds=1)
        upload(api, "elsewhere.txt")
        data = list_files(api, folderId=home["id"])
        assert [f["name"] for f in data["folders"]] == ["Арбуз", "еда", "ёлка"]
        assert data["files"] == uploads[::-1]
        assert data["currentFolder"] == home | {"filesCount": 2}
        assert list_files(api)["folders"] == [home | {"filesCount": 2}]

    def test_the_tree_has_every_folder_with_its_count(self, api: Api) -> None:
        a = folder(api, "a")
        b = folder(api, "b", parentId=a["id"])
        c = folder(api, "c", parentId=b["id"])
        upload(api, folderId=c["id"])
        assert api.get(FOLDERS)["folders"] == [
            a | {"children": [b | {"children": [c | {"filesCount": 1, "children": []}]}]}
        ]


class TestUpdateFile:
    def test_a_file_is_renamed_and_moved_and_keeps_its_url(self, api: Api) -> None:
        place, file = folder(api, "f"), upload(api, "a.txt")
        changes = {"name": "C:\\tmp\\б.txt", "folderId": place["id"]}
        renamed = api.post(UPDATE, {"id": file["id"], **changes})["file"]
        changed = {"name": "б.txt", "folderId": place["id"], "updatedAt": renamed["updatedAt"]}
        assert renamed == file | changed
        assert list_files(api)["files"] == []
        assert list_files(api, folderId=place["id"])["files"] == [renamed]
        back = api.post(UPDATE, {"id": file["id"], "folderId": None})["file"]
        assert back == renamed | {"folderId": None, "updatedAt": back["updatedAt"]}
        assert list_files(api)["files"] == [back]
        assert [f["filesCount"] for f in list_files(api)["folders"]] == [0]


class TestChanges:
    def test_a_list_by_changes_has_the_files_of_all_folders(self, api: Api, time: Time) -> None:
        place = folder(api, "f")
        inside = upload(api, "a.txt", folderId=place["id"])
        time.pass_by(seconds=1)
        outside = upload(api, "b.txt")
        assert list_files(api)["files"] == [outside]
        assert list_files(api, sort="updatedAt")["files"] == [inside, outside]
        since = inside["updatedAt"]
        assert list_files(api, updatedSince=since)["files"] == [outside, inside]
        assert list_files(api, updatedSince=since, folderId=place["id"])["files"] == [inside]


class TestSearch:
    def test_files_and_folders_are_found_by_part_of_the_name_in_all_folders(self, api: Api) -> None:
        place = folder(api, "Ёлки")
        inside = upload(api, "ёлка.txt", folderId=place["id"])
        other = upload(api, "Новая ЕЛКА.txt")
        upload(api, "b.txt")
        response = list_files(api, q="елк")
        assert [f["id"] for f in response["files"]] == [other["id"], inside["id"]]
        assert [f["name"] for f in response["folders"]] == ["Ёлки"]
        assert (response["currentFolder"], response["pagination"]["total"]) == (None, 2)
        assert len(list_files(api, q="елк", size=1, page=2)["files"]) == 1
        ignored = list_files(api, q="елк", folderId=place["id"])
        assert (len(ignored["files"]), ignored["currentFolder"]) == (2, None)
        assert warned(ignored) == [{"code": "field_ignored", "field": "folderId"}]


class TestDelete:
    def test_a_deletion_removes_the_file_and_its_objects_and_frees_its_bytes(
        self, api: Api, owner: Owner
    ) -> None:
        objects_before = list_stored_files()
        file = upload(api, "a.jpg", photo())
        assert len(list_stored_files() - objects_before) == 2
        report = api.post(DELETE, {"id": file["id"], "dryRun": True})
        assert (report["deleted"], len(list_stored_files() - objects_before)) == (False, 2)
        assert api.post(DELETE, {"id": file["id"]})["deleted"] is True
        assert list_stored_files() == objects_before
        assert used(owner) == 0
        assert list_files(api)["files"] == []
        assert api.call_refused("POST", DELETE, {"id": file["id"]}).status == 404

    def test_objects_that_could_not_be_removed_are_removed_later(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        objects_before = list_stored_files()
        file = upload(api)

        def fail(*_: Any) -> None:
            raise UnavailableError

        with monkeypatch.context() as patched:
            patched.setattr(FolderStore, "delete", fail)
            assert api.post(DELETE, {"id": file["id"]})["deleted"] is True
        assert list_stored_files() != objects_before
        time.pass_by(minutes=1)
        run_jobs()
        assert list_stored_files() == objects_before

    @pytest.mark.store
    def test_ten_concurrent_deletions_free_the_bytes_once(self, api: Api, owner: Owner) -> None:
        upload(api, body=b"x" * 100)
        file = upload(api)
        answers = run_concurrently(10, lambda _: api.call("POST", DELETE, {"id": file["id"]}))
        assert Counter(a.status for a in answers) == {200: 1, 404: 9}
        assert used(owner) == 100


class TestQuota:
    def test_uploads_end_at_the_quota_of_the_plan(
        self, small_quota: int, api: Api, owner: Owner
    ) -> None:
        upload(api, body=b"x" * 600)
        objects_before = list_stored_files()
        content = base64.b64encode(b"y" * 401).decode()
        answer = api.call_refused("POST", UPLOAD, {"name": "a", "content": content})
        assert (answer.status, answer.data["code"]) == (409, "quota_exceeded")
        answer = api.call_refused("POST", ANNOUNCE, {"name": "a", "size": 401})
        assert answer.data["code"] == "quota_exceeded"
        assert list_stored_files() == objects_before
        upload(api, body=b"z" * 400)
        assert used(owner) == small_quota

    def test_the_first_file_may_not_exceed_the_quota_either(
        self, small_quota: int, api: Api
    ) -> None:
        content = base64.b64encode(b"y" * 1001).decode()
        assert api.call_refused("POST", UPLOAD, {"name": "a", "content": content}).status == 409

    @pytest.mark.store
    def test_twenty_concurrent_uploads_never_exceed_the_quota(
        self, small_quota: int, api: Api, owner: Owner
    ) -> None:
        objects_before = list_stored_files()
        body = {"name": "a", "content": base64.b64encode(b"x" * 150).decode()}

        def call(number: int) -> Any:
            if number % 2:
                return api.call("POST", UPLOAD, body)
            return api.call("POST", ANNOUNCE, {"name": "b", "size": 150})

        answers = run_concurrently(20, call)
        successes = [a for a in answers if a.status == 200]
        assert {a.status for a in answers} <= {200, 409, 503}
        assert len(successes) == 6
        assert used(owner) == 900
        new_files = [a.data["file"] for a in successes if "file" in a.data]
        assert list_files(api)["pagination"]["total"] == len(new_files)
        assert list_stored_files() - objects_before == {key(file["url"]) for file in new_files}

    def test_after_a_downgrade_uploads_stop_until_enough_is_deleted(
        self, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "enterprise", 2000)
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="enterprise")
        first, _ = (upload(api, body=b"x" * 900) for _ in range(2))
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="business")
        assert api.call_refused("POST", UPLOAD, {"name": "a", "content": "aGk="}).status == 409
        api.post(DELETE, {"id": first["id"]})
        upload(api, body=b"x" * 100)
        assert used(owner) == 1000


class TestKilled:
    """A process that dies between storing a file and the commit leaves nothing permanently."""

    def test_objects_of_a_process_killed_before_the_commit_are_removed(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: Any) -> None:
            raise SystemExit

        objects_before = list_stored_files()
        with monkeypatch.context() as killed:
            killed.setattr(UnitOfWork, "commit", die)
            killed.setattr(UnitOfWork, "undo", lambda _: None)
            with pytest.raises(SystemExit):
                upload(api, "a.jpg", photo())
        assert len(list_stored_files() - objects_before) == 2
        time.pass_by(minutes=61)
        run_jobs()
        assert list_stored_files() == objects_before

    def test_objects_of_a_process_killed_after_the_commit_are_kept(
        self, time: Time, api: Api
    ) -> None:
        objects_before = list_stored_files()
        file, gone = upload(api, "a.jpg", photo()), upload(api, "b.jpg", photo())
        api.post(DELETE, {"id": gone["id"]})
        time.pass_by(minutes=61)
        assert run_jobs()["file-orphan"] == 2
        assert list_stored_files() - objects_before == {key(file["url"]), key(file["thumbnailUrl"])}
