"""Drafts of pages, which people publish and programs never see."""

import io
import zipfile
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.errors import AppError, ConflictError, NotFoundError, UnavailableError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.domains.sites.flows.undoing import KEPT_AFTER_DELETION
from chalicelib.domains.sites.operations import page_drafts as page_drafts_module
from chalicelib.engine.transactions import Transaction
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows, call_console, run_concurrently
from tests.factories.exports import download, run_console_export
from tests.factories.pages import Killed, create, delete, objects, read, save, update

OPERATIONS = (
    *("get_page_draft", "list_page_drafts", "save_page_draft", "publish_page"),
    "discard_page_draft",
)


@pytest.fixture
def page(api: Api, site: str) -> Any:
    page = create(api, site)
    save(api, page, "now")
    return page


class Desk:
    """The owner in the console."""

    def __init__(self, owner: Owner, page: Any) -> None:
        self.home, self.page = owner.workspace, page

    def call(self, operation: str, **arguments: Any) -> Any:
        account = self.home.owner_id
        return call_console(self.home.id, operation, account_id=account, **arguments)

    def save(self, html: str, **more: Any) -> str:
        mark: str = self.call("save_page_draft", id=self.page["id"], html=html, **more)["mark"]
        return mark

    def publish(self, **more: Any) -> Any:
        return self.call("publish_page", id=self.page["id"], **more)["page"]

    def discard(self, **more: Any) -> Any:
        return self.call("discard_page_draft", id=self.page["id"], **more)

    @property
    def draft(self) -> Any:
        return self.call("get_page_draft", id=self.page["id"])["draft"]


@pytest.fixture
def desk(owner: Owner, page: Any) -> Desk:
    return Desk(owner, page)


def drafts() -> list[str]:
    return [key for key in all_rows() if "#PAGE#DRAFT/" in key]


def attempt(call: Any) -> Any:
    """Return the result of a call, or its error."""
    try:
        return call()
    except AppError as error:
        return error


class TestSaving:
    def test_a_draft_changes_nothing_that_visitors_and_programs_see(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        before = read(api, page)
        desk.save("soon")
        assert read(api, page) == before
        assert api.get(f"/api/pages/{page['id']}/versions")["versions"] == []
        draft = desk.draft
        assert (draft["html"], draft["isOutdated"]) == ("soon", False)
        assert draft["savedBy"]

    def test_keys_and_tools_have_no_operation_for_drafts(self) -> None:
        for name in OPERATIONS:
            assert REGISTRY[name].audience == {Audience.SESSION}
            assert REGISTRY[name].tool is None

    def test_a_page_has_one_draft_and_one_object_for_it(
        self, owner: Owner, time: Time, desk: Desk
    ) -> None:
        for html in ("one", "two", "three"):
            desk.save(html)
        assert desk.draft["html"] == "three"
        time.pass_by(hours=2)
        run_jobs()
        assert objects(owner) == [b"now", b"three"]

    def test_a_draft_that_is_as_the_page_is_removed(self, owner: Owner, desk: Desk) -> None:
        desk.save("soon")
        desk.save("now")
        assert desk.draft is None
        assert objects(owner) == [b"now"]

    def test_sections_of_a_draft_replace_those_of_the_draft(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        for words in ("one", "two"):
            sections = [{"type": "heading", "text": words}]
            desk.call("save_page_draft", id=page["id"], sections=sections)
        assert [section["text"] for section in desk.draft["sections"]] == ["two"]
        assert read(api, page)["page"]["sections"] is None

    def test_another_draft_is_not_overwritten_and_the_same_is_no_conflict(self, desk: Desk) -> None:
        mine = desk.save("mine")
        desk.save("theirs")
        with pytest.raises(ConflictError) as refused:
            desk.save("mine again", ifDraft=mine)
        assert refused.value.key == "draft_changed"
        assert desk.draft["html"] == "theirs"
        desk.save("theirs", ifDraft=mine)

    def test_one_of_several_drafts_saved_at_once_is_kept_whole(
        self, owner: Owner, time: Time, desk: Desk
    ) -> None:
        texts = [f"{n:02}" for n in range(8)]
        results = run_concurrently(8, lambda n: attempt(lambda: desk.save(texts[n], ifDraft="")))
        kept = desk.draft["html"]
        assert kept in texts
        assert sum(isinstance(result, str) for result in results) == 1
        time.pass_by(hours=2)
        run_jobs()
        assert objects(owner) == sorted([b"now", kept.encode()])

    def test_a_draft_does_not_count_against_the_storage_until_it_is_published(
        self, api: Api, page: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 10)
        desk.save("x" * 20)
        with pytest.raises(AppError) as refused:
            desk.publish()
        assert refused.value.code == "quota_exceeded"
        assert read(api, page)["page"]["html"] == "now"
        assert desk.draft["html"] == "x" * 20


class TestPublishing:
    def test_the_page_has_the_html_of_the_draft_and_keeps_the_former_as_a_version(
        self, owner: Owner, time: Time, api: Api, page: Any, desk: Desk
    ) -> None:
        desk.save("soon")
        assert desk.publish()["version"] == read(api, page)["page"]["version"]
        assert read(api, page)["page"]["html"] == "soon"
        (version,) = api.get(f"/api/pages/{page['id']}/versions")["versions"]
        api.post("/api/pages/restore-version", {"id": page["id"], "versionId": version["id"]})
        assert read(api, page)["page"]["html"] == "now"
        assert desk.draft is None
        time.pass_by(hours=2)
        run_jobs()
        assert objects(owner) == [b"now", b"now", b"soon"]

    def test_two_presses_publish_once(self, api: Api, page: Any, desk: Desk) -> None:
        mark = desk.save("soon")
        version = read(api, page)["page"]["version"]
        results = run_concurrently(4, lambda _: desk.publish(ifDraft=mark)["version"])
        assert set(results) == {version + 1}
        assert len(api.get(f"/api/pages/{page['id']}/versions")["versions"]) == 1

    def test_a_save_since_the_draft_began_is_not_overwritten(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        desk.save("mine")
        save(api, page, "theirs")
        assert desk.draft["isOutdated"]
        with pytest.raises(ConflictError) as refused:
            desk.publish()
        assert refused.value.key == "draft_outdated"
        assert read(api, page)["page"]["html"] == "theirs"
        shown = desk.call("get_page_draft", id=page["id"])["htmlMark"]
        save(api, page, "theirs again")
        with pytest.raises(ConflictError):
            desk.publish(ifHtml=shown)
        shown = desk.call("get_page_draft", id=page["id"])["htmlMark"]
        desk.publish(ifHtml=shown)
        assert read(api, page)["page"]["html"] == "mine"

    def test_a_draft_that_was_saved_again_keeps_what_it_began_from(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        desk.save("mine")
        save(api, page, "theirs")
        desk.save("mine, longer")
        with pytest.raises(ConflictError):
            desk.publish()

    def test_a_changed_title_or_an_undone_save_is_no_conflict(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        desk.save("mine")
        update(api, page, title="Other")
        save(api, page, "theirs")
        save(api, page, "now")
        desk.publish()
        assert read(api, page)["page"]["html"] == "mine"

    def test_a_draft_of_a_page_without_html_is_published(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site, "New")
        desk = Desk(owner, page)
        desk.save("first")
        assert not desk.draft["isOutdated"]
        desk.publish()
        assert read(api, page)["page"]["html"] == "first"

    def test_beside_a_save_of_a_program_nothing_is_lost(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        for number in range(4):
            mark = desk.save(f"mine {number}")
            calls = [
                lambda mark=mark: desk.publish(ifDraft=mark),
                lambda number=number: save(api, page, f"theirs {number}"),
            ]
            results = run_concurrently(2, lambda n, calls=calls: attempt(calls[n]))
            html = read(api, page)["page"]["html"]
            if isinstance(results[0], AppError):
                assert results[0].key == "draft_outdated"
                assert html == f"theirs {number}"
                assert desk.draft["html"] == f"mine {number}"
                desk.discard()
            else:
                # The save replaced what was published, which stays a version.
                assert html in {f"theirs {number}", f"mine {number}"}
                assert desk.draft is None

    def test_a_press_between_the_reads_of_another_one_publishes_for_both(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mark, read_page = desk.save("soon"), page_drafts_module.existing_page
        other: list[Any] = []

        def read_and_press(*args: Any) -> Any:
            row = read_page(*args)
            monkeypatch.setattr(page_drafts_module, "existing_page", read_page)
            other.append(desk.publish(ifDraft=mark)["version"])
            return row

        monkeypatch.setattr(page_drafts_module, "existing_page", read_and_press)
        assert [desk.publish(ifDraft=mark)["version"]] == other

    def test_another_draft_than_the_one_that_was_seen_is_not_published(
        self, api: Api, page: Any, desk: Desk
    ) -> None:
        mine = desk.save("mine")
        desk.save("theirs")
        with pytest.raises(ConflictError) as refused:
            desk.publish(ifDraft=mine)
        assert refused.value.key == "draft_changed"
        assert read(api, page)["page"]["html"] == "now"
        with pytest.raises(ConflictError):
            desk.discard(ifDraft=mine)

    def test_a_page_without_a_draft_has_nothing_to_publish(self, desk: Desk) -> None:
        for arguments in ({}, {"ifDraft": "other"}):
            with pytest.raises(NotFoundError):
                desk.publish(**arguments)
        desk.discard()

    def test_after_a_lost_response_a_repeated_call_changes_nothing_more(
        self, api: Api, page: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit = Transaction.commit

        def lose(transaction: Transaction, marker: Any) -> None:
            commit(transaction, marker)
            raise UnavailableError

        def lost(call: Any) -> None:
            with monkeypatch.context() as losing:
                losing.setattr(Transaction, "commit", lose)
                with pytest.raises(UnavailableError):
                    call()

        lost(lambda: desk.save("soon", ifDraft=""))
        mark = desk.save("soon", ifDraft="")
        assert desk.draft["html"] == "soon"
        lost(lambda: desk.publish(ifDraft=mark))
        version = read(api, page)["page"]["version"]
        assert desk.publish(ifDraft=mark)["version"] == version
        assert read(api, page)["page"]["html"] == "soon"

    def test_a_process_killed_before_the_commit_leaves_no_object(
        self, owner: Owner, time: Time, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as dying:
            dying.setattr(Transaction, "commit", Killed.now)
            dying.setattr("chalicelib.engine.unit.UnitOfWork.undo", lambda _: None)
            with pytest.raises(Killed):
                desk.save("soon")
        assert objects(owner) == [b"now", b"soon"]
        time.pass_by(hours=2)
        run_jobs()
        assert objects(owner) == [b"now"]
        assert desk.draft is None


class TestEnding:
    def test_a_discarded_draft_leaves_no_object(self, owner: Owner, desk: Desk) -> None:
        desk.save("soon")
        desk.discard()
        assert desk.draft is None
        assert objects(owner) == [b"now"]
        assert drafts() == []

    def test_a_restored_page_has_its_draft_and_a_purged_one_leaves_nothing(
        self, owner: Owner, time: Time, api: Api, page: Any, desk: Desk
    ) -> None:
        desk.save("soon")
        delete(api, page)
        api.post("/api/pages/restore", {"id": page["id"]})
        assert desk.draft["html"] == "soon"
        delete(api, page)
        time.pass_by(hours=KEPT_AFTER_DELETION / timedelta(hours=1) + 1)
        run_jobs()
        assert objects(owner) == []
        assert drafts() == []

    def test_a_purged_site_leaves_no_drafts(
        self, owner: Owner, time: Time, api: Api, site: str, desk: Desk
    ) -> None:
        desk.save("soon")
        api.post("/api/projects/delete", {"id": site})
        time.pass_by(hours=KEPT_AFTER_DELETION / timedelta(hours=1) + 1)
        run_jobs()
        assert objects(owner) == []
        assert drafts() == []

    def test_a_draft_saved_while_its_page_is_deleted_ends_with_the_page(
        self, owner: Owner, time: Time, api: Api, site: str, desk: Desk
    ) -> None:
        for number in range(4):
            page = create(api, site, f"Page {number}")
            other = Desk(owner, page)
            calls = [lambda other=other: other.save("soon"), lambda page=page: delete(api, page)]
            saved, _ = run_concurrently(2, lambda n, calls=calls: attempt(calls[n]))
            assert isinstance(saved, str | NotFoundError)
        time.pass_by(hours=KEPT_AFTER_DELETION / timedelta(hours=1) + 1)
        run_jobs()
        assert objects(owner) == [b"now"]
        assert drafts() == []

    def test_an_export_has_the_page_as_visitors_see_it(self, owner: Owner, desk: Desk) -> None:
        desk.save("unpublished words")
        exported = run_console_export(owner.workspace.id)
        file = zipfile.ZipFile(io.BytesIO(download(exported["url"])))
        contents = b"".join(map(file.read, file.namelist()))
        assert b"now" in contents
        assert b"unpublished words" not in contents
        assert "pageDrafts" in exported["notIncluded"]


def test_drafts_of_a_site_are_named_with_who_saved_them(
    owner: Owner, api: Api, site: str, desk: Desk
) -> None:
    other = Desk(owner, create(api, site, "Other"))
    create(api, site, "Third")
    for each in (desk, other):
        each.save("soon")
    named = desk.call("list_page_drafts", projectId=site)["drafts"]
    assert {draft["pageId"] for draft in named} == {desk.page["id"], other.page["id"]}
    assert all(draft["savedBy"] and draft["savedAt"] for draft in named)
