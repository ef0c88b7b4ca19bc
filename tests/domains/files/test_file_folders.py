"""Tests of a tree of folders that are created, moved and deleted."""

from collections import Counter
from typing import Any
from unittest.mock import ANY

import pytest

from chalicelib.domains.files.operations import folder_deletion, folders
from chalicelib.engine import jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Time, run_concurrently
from tests.factories.files import (
    FOLDER_DELETE,
    FOLDER_UPDATE,
    FOLDERS,
    LIST,
    UPLOAD,
    folder,
    list_files,
    upload,
)


class TestFolders:
    def test_names_are_unique_among_siblings_only(self, api: Api) -> None:
        first = folder(api, "Ёлка")
        answer = api.call_refused("POST", FOLDERS, {"name": " елка "})
        assert (answer.status, answer.data["code"]) == (409, "name_taken")
        folder(api, "елка", parentId=first["id"])

    @pytest.mark.store
    def test_of_twenty_concurrent_folders_with_one_name_one_is_created(self, api: Api) -> None:
        answers = run_concurrently(20, lambda _: api.call("POST", FOLDERS, {"name": "One"}))
        assert Counter(a.status for a in answers) == {200: 1, 409: 19}

    @pytest.mark.parametrize("name", ["", "  ", "a/b", "a\\b", "a\x00b", "x" * 101, "\u200b"])
    def test_a_misleading_name_is_400(self, name: str, api: Api) -> None:
        assert api.call_refused("POST", FOLDERS, {"name": name}).status == 400

    @pytest.mark.parametrize("letter", ["ŉ", "ΐ", "ﬃ", "\ufdfa"])
    def test_a_name_may_have_a_hundred_letters_even_if_folding_lengthens_it(
        self, letter: str, api: Api
    ) -> None:
        outer = folder(api, letter * 100)
        assert outer["name"] == letter * 100
        inside = folder(api, letter * 100, parentId=outer["id"])
        assert inside["parentId"] == outer["id"]
        for name, status in ((letter * 100, 409), (letter * 99, 200)):
            assert api.call("POST", FOLDERS, {"name": name}).status == status

    def test_folders_nest_at_most_ten_deep(self, api: Api) -> None:
        parent: dict[str, Any] = {}
        for number in range(folders.MAX_DEPTH):
            parent = {"parentId": folder(api, str(number), **parent)["id"]}
        answer = api.call_refused("POST", FOLDERS, {"name": "deeper", **parent})
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "parentId")

    def test_the_number_of_folders_is_limited(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folders, "MAX_FOLDERS", 2)
        folder(api, "1")
        folder(api, "2")
        assert api.call_refused("POST", FOLDERS, {"name": "3"}).status == 409


class TestUpdateFolder:
    def test_an_update_renames_and_moves_a_folder_with_its_content(self, api: Api) -> None:
        a, b = folder(api, "a"), folder(api, "b")
        inside = folder(api, "inside", parentId=b["id"])
        file = upload(api, folderId=inside["id"])
        response = api.post(FOLDER_UPDATE, {"id": b["id"], "name": "Б", "parentId": a["id"]})
        moved = {"name": "Б", "parentId": a["id"], "updatedAt": response["folder"]["updatedAt"]}
        assert response["folder"] == b | moved
        listed_child = inside | {"filesCount": 1, "children": []}
        tree = [a | {"children": [response["folder"] | {"children": [listed_child]}]}]
        assert api.get(FOLDERS)["folders"] == tree
        assert list_files(api, folderId=inside["id"])["files"] == [file]
        back = api.post(FOLDER_UPDATE, {"id": b["id"], "parentId": None})["folder"]
        assert (back["name"], back["parentId"]) == ("Б", None)
        folder(api, "b")

    def test_cycles_taken_names_and_too_deep_folders_are_refused(self, api: Api) -> None:
        top = folder(api, "top")
        chain = [top]
        for number in range(folders.MAX_DEPTH - 1):
            chain.append(folder(api, str(number), parentId=chain[-1]["id"]))
        for target in (top, chain[-1]):
            answer = api.call_refused(
                "POST", FOLDER_UPDATE, {"id": top["id"], "parentId": target["id"]}
            )
            assert (answer.status, answer.data["code"]) == (400, "cycle")
        other = folder(api, "other")
        body = {"id": other["id"], "parentId": chain[-1]["id"]}
        answer = api.call_refused("POST", FOLDER_UPDATE, body)
        assert (answer.status, answer.data["errors"][0]["field"]) == (400, "parentId")
        answer = api.call_refused("POST", FOLDER_UPDATE, {"id": other["id"], "name": "TOP"})
        assert (answer.status, answer.data["code"]) == (409, "name_taken")
        assert api.post(FOLDER_UPDATE, {"id": top["id"], "name": "Top"})["folder"]["name"] == "Top"
        assert api.call_refused("POST", FOLDER_UPDATE, {"id": top["id"]}).status == 400

    @pytest.mark.store
    def test_two_folders_moved_into_each_other_concurrently_do_not_both_move(
        self, api: Api
    ) -> None:
        a, b = folder(api, "a")["id"], folder(api, "b")["id"]
        moves = [{"id": a, "parentId": b}, {"id": b, "parentId": a}]
        answers = run_concurrently(2, lambda number: api.call("POST", FOLDER_UPDATE, moves[number]))
        assert sorted(answer.status for answer in answers) == [200, 400]


class TestDeleteFolder:
    def test_only_an_empty_folder_is_deleted_without_a_target(self, api: Api) -> None:
        empty, full, nested = (folder(api, name) for name in ("empty", "full", "nested"))
        upload(api, folderId=full["id"])
        folder(api, "x", parentId=nested["id"])
        dry = api.post(FOLDER_DELETE, {"id": empty["id"], "dryRun": True})
        assert dry["deleted"] is False
        assert api.post(FOLDER_DELETE, {"id": empty["id"]})["deleted"] is True
        assert api.call_refused("POST", FOLDER_DELETE, {"id": empty["id"]}).status == 404
        for body in ({"id": full["id"]}, {"id": nested["id"], "dryRun": True}):
            answer = api.call_refused("POST", FOLDER_DELETE, body)
            assert (answer.status, answer.data["code"]) == (409, "folder_not_empty")
        assert [f["name"] for f in list_files(api)["folders"]] == ["full", "nested"]

    @pytest.mark.parametrize("to_root", [True, False])
    def test_the_content_moves_to_the_given_target(
        self, to_root: bool, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(folder_deletion, "FILES_PER_TRANSACTION", 2)
        monkeypatch.setattr(folder_deletion, "FOLDERS_PER_TRANSACTION", 1)
        target = None if to_root else folder(api, "target")["id"]
        gone = folder(api, "gone")
        inside = [folder(api, name, parentId=gone["id"]) for name in ("1", "2", "3")]
        deep = upload(api, "deep.txt", folderId=inside[0]["id"])
        names = [upload(api, f"{n}.txt", folderId=gone["id"])["name"] for n in range(5)]
        body = {"id": gone["id"], "moveTo": target}
        would = api.post(FOLDER_DELETE, body | {"dryRun": True})
        assert (would["deleted"], would["movedFiles"], would["movedFolders"]) == (False, 5, 3)
        assert api.post(FOLDER_DELETE, body) == would | {"deleted": True}
        there = list_files(api, **({} if to_root else {"folderId": target}))
        assert {f["name"] for f in there["files"]} == set(names)
        assert there["pagination"]["total"] == 5
        assert [f for f in there["folders"] if f["id"] != target] == [
            f | {"parentId": target, "filesCount": int(f is inside[0]), "updatedAt": ANY}
            for f in inside
        ]
        assert list_files(api, folderId=inside[0]["id"])["files"] == [deep]
        assert api.call_refused("GET", f"{LIST}?folderId={gone['id']}").status == 404

    def test_a_target_inside_the_folder_or_with_a_taken_name_is_refused(self, api: Api) -> None:
        gone = folder(api, "gone")
        inside = folder(api, "Same", parentId=gone["id"])
        for target in (gone, inside):
            answer = api.call_refused(
                "POST", FOLDER_DELETE, {"id": gone["id"], "moveTo": target["id"]}
            )
            assert (answer.status, answer.data["code"]) == (400, "cycle")
        namesake = folder(api, "same")
        answer = api.call_refused("POST", FOLDER_DELETE, {"id": gone["id"], "moveTo": None})
        assert (answer.status, answer.data["code"]) == (409, "name_taken")
        api.post(FOLDER_DELETE, {"id": gone["id"], "moveTo": namesake["id"]})
        assert [f["name"] for f in list_files(api, folderId=namesake["id"])["folders"]] == ["Same"]

    def test_the_runner_moves_what_a_killed_process_left(
        self, time: Time, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target, gone = folder(api, "target"), folder(api, "gone")
        folder(api, "x", parentId=gone["id"])
        for _ in range(2):
            upload(api, folderId=gone["id"])
        with monkeypatch.context() as killed:
            killed.setattr(folder_deletion, "MOVES_IN_DELETION", 1)
            killed.setattr(jobs, "attempt", lambda *_: False)
            api.post(FOLDER_DELETE, {"id": gone["id"], "moveTo": target["id"]})
        folder(api, "x", parentId=target["id"])
        time.pass_by(minutes=1)
        run_jobs()
        there = list_files(api, folderId=target["id"])
        assert [f["name"] for f in there["folders"]] == ["x", "x (2)"]
        assert len(there["files"]) == 2

    @pytest.mark.store
    def test_deleting_during_uploads_loses_no_file(self, api: Api) -> None:
        gone = folder(api, "gone")["id"]

        def act(number: int) -> Any:
            if number == 0:
                return api.call("POST", FOLDER_DELETE, {"id": gone, "moveTo": None})
            body = {"name": "a", "content": "aGk=", "folderId": gone}
            return api.call("POST", UPLOAD, body)

        deleted, *uploads = run_concurrently(6, act)
        assert deleted.status == 200
        assert {a.status for a in uploads} <= {200, 404}
        assert list_files(api)["pagination"]["total"] == sum(a.status == 200 for a in uploads)
