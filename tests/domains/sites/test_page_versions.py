"""Versions of a page's HTML, which saves keep and users restore."""

from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.domains.sites.store import page_versions
from chalicelib.gateways import object_store
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_console, run_concurrently
from tests.factories.files import upload
from tests.factories.pages import Killed, create, objects, read, save

RESTORE = "/api/pages/restore-version"


@pytest.fixture
def page(api: Api, site: str) -> Any:
    return create(api, site)


@pytest.fixture
def save_edits(time: Time, api: Api, page: Any) -> Any:
    """Save each HTML as a separate version."""

    def save_apart(*htmls: str) -> None:
        for html in htmls:
            save(api, page, html)
            time.pass_by(minutes=10)

    return save_apart


def versions(api: Api, page: Any) -> list[Any]:
    page_versions: list[Any] = api.get(f"/api/pages/{page['id']}/versions")["versions"]
    return page_versions


def restore(api: Api, page: Any, version: Any, **more: Any) -> Any:
    return api.post(RESTORE, {"id": page["id"], "versionId": version["id"], **more})


def html_of(owner: Owner, page: Any, version: Any) -> str:
    html: str = call_console(
        owner.workspace.id, "get_page_version", id=page["id"], versionId=version["id"]
    )["versionHtml"]
    return html


class TestKeeping:
    def test_save_keeps_the_former_html(
        self, owner: Owner, api: Api, page: Any, save_edits: Any
    ) -> None:
        save_edits("one", "two", "three")
        assert htmls(owner, api, page) == ["two", "one"]
        kept_versions = versions(api, page)
        assert [version["htmlBytes"] for version in kept_versions] == [3, 3]
        assert all(version["savedBy"].startswith("key:") for version in kept_versions)
        assert kept_versions[0]["savedAt"] > kept_versions[1]["savedAt"]

    def test_a_page_without_html_has_no_versions(self, api: Api, page: Any) -> None:
        assert versions(api, page) == []
        assert save_answer(api, page, "first")["undo"] is None
        assert versions(api, page) == []

    def test_each_of_four_quick_saves_keeps_the_html_before_it(
        self, owner: Owner, time: Time, api: Api, page: Any
    ) -> None:
        for html in ("", "A", "B", "C"):
            save(api, page, html)
            time.pass_by(minutes=2)
        assert htmls(owner, api, page) == ["B", "A", ""]

    def test_saves_of_two_callers_keep_the_html_of_each(
        self, owner: Owner, api: Api, page: Any, save_edits: Any
    ) -> None:
        other = owner.api()
        save_edits("before")
        save(api, page, "mine")
        save(other, page, "theirs")
        save(api, page, "mine again")
        assert htmls(owner, api, page) == ["theirs", "mine", "before"]

    def test_concurrent_saves_lose_no_html(self, owner: Owner, api: Api, page: Any) -> None:
        texts = ["before", *(f"{n:02}" for n in range(8))]
        save(api, page, texts[0])
        run_concurrently(8, lambda n: save(api, page, texts[n + 1]))
        now = read(api, page)["page"]["html"]
        assert sorted([now, *htmls(owner, api, page)]) == sorted(texts)
        assert htmls(owner, api, page)[-1] == "before"

    def test_versions_are_in_the_order_of_the_saves_whatever_the_clocks_say(
        self, owner: Owner, time: Time, api: Api, page: Any
    ) -> None:
        for html in ("one", "two", "three", "four"):
            save(api, page, html)
            time.now -= timedelta(milliseconds=300)
        assert htmls(owner, api, page) == ["three", "two", "one"]

    def test_unchanged_html_keeps_no_version(
        self, owner: Owner, api: Api, page: Any, save_edits: Any
    ) -> None:
        save_edits("same", "same", "same")
        assert versions(api, page) == []
        assert objects(owner) == [b"same"]
        assert read(api, page)["page"]["version"] == 4

    def test_response_of_a_save_has_the_call_that_undoes_it(
        self, api: Api, page: Any, save_edits: Any
    ) -> None:
        save_edits("before")
        undo = save_answer(api, page, "after")["undo"]
        (version,) = versions(api, page)
        assert f"POST {RESTORE} with versionId {version['id']}" in undo
        assert "before its last change" in save_answer(api, page, "after")["undo"]

    def test_versions_do_not_count_against_the_storage(
        self, api: Api, page: Any, save_edits: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 10)
        save_edits(*(str(n) * 10 for n in range(5)))
        assert len(versions(api, page)) == 4


class TestLimits:
    def test_after_a_day_30_versions_before_pauses_are_kept_and_a_job_removes_the_others(
        self, owner: Owner, time: Time, api: Api, page: Any, save_edits: Any
    ) -> None:
        texts = [f"{n:02}" for n in range(40)]
        save_edits(*texts)
        assert htmls(owner, api, page) == texts[-2::-1]
        time.pass_by(hours=2)
        run_jobs()
        assert objects(owner) == [html.encode() for html in texts]
        time.pass_by(hours=24)
        assert htmls(owner, api, page) == texts[-2:-32:-1]
        run_jobs()
        assert objects(owner) == [html.encode() for html in texts[9:]]

    def test_html_that_was_shown_for_less_than_ten_minutes_is_kept_for_a_day(
        self, owner: Owner, time: Time, api: Api, page: Any
    ) -> None:
        for html, minutes in (("long", 10), ("short", 9), ("quick", 1), ("last", 10), ("now", 0)):
            save(api, page, html)
            time.pass_by(minutes=minutes)
        time.pass_by(hours=23)
        assert htmls(owner, api, page) == ["last", "quick", "short", "long"]
        time.pass_by(hours=1)
        assert htmls(owner, api, page) == ["last", "long"]

    def test_saves_of_a_day_have_20_mib_at_most_and_the_first_html_of_the_day_stays(
        self, owner: Owner, time: Time, api: Api, page: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_versions, "MAX_BYTES_OF_SAVES", 100)
        monkeypatch.setattr(page_versions, "MAX_BYTES", 60)
        save(api, page, "yesterday")
        time.pass_by(hours=12)
        texts = [f"{n:030}" for n in range(8)]
        for html in texts:
            save(api, page, html)
            time.pass_by(minutes=11)
        kept = [*texts[-2:-5:-1], *texts[-5:-7:-1], "yesterday"]
        assert htmls(owner, api, page) == kept
        time.pass_by(hours=2)
        run_jobs()
        assert htmls(owner, api, page) == kept
        assert len(objects(owner)) == len(kept) + 1

    def test_a_day_has_500_saves_at_most(
        self, owner: Owner, api: Api, page: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_versions, "MAX_SAVES", 3)
        for n in range(6):
            save(api, page, str(n))
        assert htmls(owner, api, page) == ["4", "3", "2", "0"]

    def test_versions_of_earlier_days_have_10_mib_at_most(
        self, time: Time, api: Api, page: Any, save_edits: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_versions, "MAX_BYTES", 100)
        save_edits("a" * 60, "b" * 60, "c" * 40, "d")
        time.pass_by(days=1)
        assert [version["htmlBytes"] for version in versions(api, page)] == [40, 60]

    def test_a_version_beyond_the_limits_is_not_restored(
        self, time: Time, api: Api, page: Any, save_edits: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save_edits("one", "two", "three")
        oldest = versions(api, page)[-1]
        monkeypatch.setattr(page_versions, "MAX_VERSIONS", 1)
        time.pass_by(days=1)
        answer = api.call_refused("POST", RESTORE, {"id": page["id"], "versionId": oldest["id"]})
        assert (answer.status, answer.data["code"]) == (404, "not_found")

    def test_a_process_killed_while_versions_are_removed_leaves_no_object(
        self,
        owner: Owner,
        time: Time,
        api: Api,
        page: Any,
        save_edits: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        save_edits("one", "two", "three")
        monkeypatch.setattr(page_versions, "MAX_VERSIONS", 1)
        time.pass_by(hours=25)
        with monkeypatch.context() as dying:
            dying.setattr(object_store.FolderStore, "delete", Killed.now)
            with pytest.raises(Killed):
                run_jobs()
        assert objects(owner) == [b"one", b"three", b"two"]
        time.pass_by(hours=1)
        run_jobs()
        assert objects(owner) == [b"three", b"two"]


class TestRestoring:
    def test_restore_swaps_the_html_and_the_version(
        self, owner: Owner, api: Api, page: Any, save_edits: Any
    ) -> None:
        save_edits("good")
        save(api, page, "oops")
        (good,) = versions(api, page)
        restored = restore(api, page, good)
        assert restored["missingFileIds"] == []
        assert restored["page"]["version"] == 4
        assert read(api, page)["page"]["html"] == "good"
        oops = versions(api, page)[0]
        assert html_of(owner, page, oops) == "oops"
        restore(api, page, oops)
        assert read(api, page)["page"]["html"] == "oops"

    def test_a_save_after_a_restore_keeps_the_restored_html(
        self, owner: Owner, api: Api, page: Any, save_edits: Any
    ) -> None:
        save_edits("good")
        save(api, page, "oops")
        restore(api, page, versions(api, page)[0])
        save(api, page, "next")
        assert html_of(owner, page, versions(api, page)[0]) == "good"

    def test_a_restore_charges_the_difference(
        self, api: Api, page: Any, save_edits: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save_edits("large" * 10, "small")
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 49)
        (large,) = versions(api, page)
        body = {"id": page["id"], "versionId": large["id"]}
        assert api.call_refused("POST", RESTORE, body).data["code"] == "quota_exceeded"
        assert read(api, page)["page"]["html"] == "small"
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 50)
        assert restore(api, page, large)["page"]["htmlBytes"] == 50

    def test_response_lists_missing_files(self, api: Api, page: Any, save_edits: Any) -> None:
        there, gone = (upload(api, name=f"{name}.txt") for name in "ab")
        save_edits(f'<img src="{there["url"]}"><img src="{gone["url"]}">', "x")
        api.post("/api/files/delete", {"id": gone["id"]})
        assert restore(api, page, versions(api, page)[0])["missingFileIds"] == [gone["id"]]

    def test_only_the_version_that_was_read_is_replaced(
        self, api: Api, page: Any, save_edits: Any
    ) -> None:
        save_edits("one", "two")
        body = {"id": page["id"], "versionId": versions(api, page)[0]["id"], "ifVersion": 2}
        answer = api.call_refused("POST", RESTORE, body)
        assert (answer.status, answer.data["code"]) == (409, "version_conflict")

    def test_versions_of_another_page_or_workspace_are_unknown(
        self, api: Api, site: str, page: Any, save_edits: Any, new_owner: Any
    ) -> None:
        save_edits("one", "two")
        (version,) = versions(api, page)
        body = {"id": create(api, site)["id"], "versionId": version["id"]}
        assert api.call_refused("POST", RESTORE, body).status == 404
        body["id"] = page["id"]
        stranger = new_owner().api()
        assert stranger.call_refused("POST", RESTORE, body).status == 404
        assert stranger.call_refused("GET", f"/api/pages/{page['id']}/versions").status == 404


def htmls(owner: Owner, api: Api, page: Any) -> list[str]:
    """Return the HTML of each version of a page, the latest first."""
    return [html_of(owner, page, version) for version in versions(api, page)]


def save_answer(api: Api, page: Any, html: str) -> Any:
    return api.post("/api/pages/save-html", {"id": page["id"], "html": html})
