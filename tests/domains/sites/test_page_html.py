"""A page's HTML, saved as a whole or edited in parts."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from chalicelib.core import retry
from chalicelib.engine.connection import connection
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import object_store
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.pages import (
    MIB,
    SAVE,
    Killed,
    create,
    delete,
    list_pages,
    objects,
    read,
    record,
    refused_field,
    save,
    update,
)
from tests.support.warned import warned


def edit(api: Api, page: Any, *edits: Any, **fields: Any) -> Any:
    return api.post(SAVE, {"id": page["id"], "edits": list(edits), **fields})["page"]


class TestSavePageHtml:
    def test_html_is_stored_unchanged(self, api: Api, site: str) -> None:
        page = create(api, site)
        for html in (
            "<!doctype html>\r\n<script>alert('ё')</script>\n",
            "\ufeff<p>byte order mark</p>",
            "\x00\x01\x7f\u2028\u2029\ufffe",
            "e\u0301 é ﬁ Å",
            "  trailing and leading  ",
            "{{template}} \\u0041 &amp; %20",
            "<p>🍞</p>",
            "",
        ):
            saved = save(api, page, html)
            assert saved["html"] == html
            data = read(api, page)
            assert data["page"] == saved
            assert data["htmlBytes"] == len(html.encode())

    def test_up_to_1_mib_of_utf_8_is_accepted(self, api: Api, site: str) -> None:
        page = create(api, site)
        html = "ё" * (MIB // 2)
        assert save(api, page, html)["html"] == html
        assert read(api, page)["page"]["html"] == html
        assert list_pages(api, site)[0]["htmlBytes"] == MIB
        for too_long in (html + "x", "x" * (MIB + 1), "饼" * (MIB // 3 + 1)):
            error = refused_field(api, SAVE, {"id": page["id"], "html": too_long}, 413)
            assert (error["field"], error["key"]) == ("html", "too_large")
            assert f"{MIB:,}" in error["message"]
            assert f"{len(too_long.encode()):,}" in error["message"]
        assert read(api, page)["page"]["html"] == html

    def test_a_save_changes_updated_at_and_nothing_else(
        self, time: Time, api: Api, site: str
    ) -> None:
        page = create(api, site, "About", slug="about")
        time.pass_by(minutes=1)
        moment = time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        changes = {"html": "x", "htmlBytes": 1, "sections": None, "version": 2, "updatedAt": moment}
        assert save(api, page, "x") == page | changes

    def test_edit_keeps_the_html_before(self, owner: Owner, api: Api, site: str) -> None:
        page, other = create(api, site), create(api, site)
        for html in ("one", "two", "three"):
            save(api, page, html)
        save(api, other, "other")
        assert objects(owner) == [b"one", b"other", b"three", b"two"]

    def test_a_save_that_loses_every_race_leaves_no_object(
        self, owner: Owner, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        save(api, page, "before")
        rows_before = all_rows()

        def refuse(**_: Any) -> None:
            error = {"Code": "TransactionCanceledException", "Message": "cancelled"}
            reasons = [{"Code": "TransactionConflict"}]
            raise ClientError({"Error": error, "CancellationReasons": reasons}, "Any")

        events = connection().client.meta.events
        events.register_first("before-call.dynamodb.TransactWriteItems", refuse)
        try:
            answer = api.call_refused("POST", SAVE, {"id": page["id"], "html": "after"})
        finally:
            events.unregister("before-call.dynamodb.TransactWriteItems", refuse)
        assert answer.status == 503
        assert all_rows() == rows_before
        assert objects(owner) == [b"before"]
        assert read(api, page)["page"]["html"] == "before"

    def test_a_save_that_wins_after_conflicts_stores_the_html_once(
        self, owner: Owner, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        save(api, page, "before")
        real, rivals = object_store.FolderStore.put, []

        def put(store: object_store.FolderStore, key: str, body: bytes, kind: str) -> None:
            real(store, key, body, kind)
            if not rivals:
                rivals.append(update(api, page, title="Rival"))

        monkeypatch.setattr(object_store.FolderStore, "put", put)
        saved = save(api, page, "after")
        assert (saved["title"], saved["version"]) == ("Rival", 4)
        assert read(api, page)["page"] == saved
        assert objects(owner) == [b"after", b"before"]

    def test_commit_with_a_lost_response_keeps_the_html(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "before")

        def lose(**_: Any) -> None:
            raise ReadTimeoutError(endpoint_url="http://nowhere")

        events = connection().client.meta.events
        events.register("after-call.dynamodb.TransactWriteItems", lose)
        try:
            answer = api.call_refused("POST", SAVE, {"id": page["id"], "html": "after"})
        finally:
            events.unregister("after-call.dynamodb.TransactWriteItems", lose)
        assert answer.status == 503
        assert read(api, page)["page"]["html"] == "after"

    def test_a_save_whose_object_cannot_be_stored_changes_nothing(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        saved = save(api, page, "before")
        rows_before = all_rows()

        def full(*_: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr(object_store.FolderStore, "put", full)
        answer = api.call_refused("POST", SAVE, {"id": page["id"], "html": "after"})
        assert answer.status >= 500
        assert "disk" not in answer.body.decode()
        assert all_rows() == rows_before
        assert read(api, page)["page"] == saved

    def test_a_save_succeeds_even_if_the_old_object_cannot_be_removed(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        save(api, page, "before")

        def fail(*_: object) -> None:
            raise OSError("no luck")

        monkeypatch.setattr(object_store.FolderStore, "delete", fail)
        assert save(api, page, "after")["html"] == "after"
        assert read(api, page)["page"]["html"] == "after"

    def test_the_runner_removes_no_object_in_use_after_successful_saves(
        self, time: Time, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        for html in ("one", "two"):
            save(api, page, html)
        time.pass_by(hours=2)
        assert run_jobs()["page-html-unused"] == 2
        assert objects(owner) == [b"one", b"two"]
        assert run_jobs()["page-html-unused"] == 0

    @pytest.mark.parametrize("moment", ["put", "commit"])
    def test_kill_before_the_commit_leaves_the_new_object_to_the_runner(
        self,
        moment: str,
        time: Time,
        owner: Owner,
        api: Api,
        site: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        page = create(api, site)
        save(api, page, "before")
        put = object_store.FolderStore.put

        def put_and_die(store: object_store.FolderStore, *arguments: Any) -> None:
            put(store, *arguments)
            Killed.now()

        with monkeypatch.context() as dying:
            dying.setattr(UnitOfWork, "undo", lambda _: None)
            if moment == "put":
                dying.setattr(object_store.FolderStore, "put", put_and_die)
            else:
                dying.setattr(UnitOfWork, "commit", Killed.now)
            with pytest.raises(Killed):
                save(api, page, "after")
        assert objects(owner) == [b"after", b"before"]
        time.pass_by(minutes=61)
        run_jobs()
        assert objects(owner) == [b"before"]
        assert read(api, page)["page"]["html"] == "before"

    @pytest.mark.parametrize("deleted", ["page", "site"])
    def test_the_runner_keeps_the_html_of_deleted_pages(
        self, deleted: str, time: Time, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "html")
        if deleted == "page":
            delete(api, page)
        else:
            api.post("/api/projects/delete", {"id": site})
        time.pass_by(hours=2)
        run_jobs()
        assert objects(owner) == [b"html"]


class TestEdits:
    """Edits find and replace parts of the HTML, so that large pages need not be sent."""

    def test_edits_apply_in_order_to_the_result_of_the_previous_ones(
        self, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "<h1>Bread</h1><p>Bread, bread</p>")
        edited = edit(
            api,
            page,
            {"find": "<h1>Bread</h1>", "replace": "<h1>Cake</h1>"},
            {"find": "Bread", "replace": "Cake"},
            {"find": "Cake", "replace": "Торт 🍰", "all": True},
            {"find": ", bread", "replace": ""},
        )
        assert edited["html"] == "<h1>Торт 🍰</h1><p>Торт 🍰</p>"
        assert edited["version"] == 3
        assert read(api, page)["page"] == edited

    def test_edits_return_no_html_on_request(self, api: Api, site: str) -> None:
        page = create(api, site)
        saved = save(api, page, "<p>one</p>")
        edited = edit(api, page, {"find": "one", "replace": "three"}, returnHtml=False)
        assert "html" not in edited
        assert edited["htmlBytes"] == saved["htmlBytes"] + 2
        assert record(read(api, page)["page"]) == edited
        assert save(api, page, "x", returnHtml=False) == record(read(api, page)["page"])

    def test_tool_omits_long_html_unless_requested(self, api: Api, site: str) -> None:
        page = create(api, site)
        short, long = "<p>" + "ё" * 30_000, "<p>" + "ё" * 31_000
        for html, options, returned in (
            (short, {}, True),
            (short, {"returnHtml": False}, False),
            (long, {}, False),
            (long, {"returnHtml": None}, False),
            (long, {"returnHtml": True}, True),
        ):
            _, answer = api.tool("svc_save_page_html", id=page["id"], html=html, **options)
            saved = answer["data"]
            assert ("html" in saved["page"]) == returned
            assert saved["page"]["htmlBytes"] == len(html.encode())
            has_hint = html == long and not returned
            hints = [{"code": "html_omitted", "bytes": len(html.encode())}] if has_hint else []
            assert [hint for hint in warned(saved) if hint["code"] == "html_omitted"] == hints
            assert read(api, page)["page"]["html"] == html
        edits = [{"find": "<p>", "replace": "<div>"}]
        _, edited = api.tool("svc_save_page_html", id=page["id"], edits=edits)
        assert "html" not in edited["data"]["page"]
        assert save(api, page, long)["html"] == long

    @pytest.mark.parametrize(
        ("edits", "place", "times"),
        [
            ([{"find": "none", "replace": ""}], 0, 0),
            ([{"find": "none", "replace": "", "all": True}], 0, 0),
            ([{"find": "a", "replace": ""}], 0, 3),
            ([{"find": "b", "replace": ""}, {"find": "c", "replace": "a"}, {"find": "aa"}], 2, 2),
            ([{"find": "b", "replace": "a"}, {"find": "c", "replace": "b"}, {"find": "a"}], 2, 4),
            ([{"find": "b", "replace": ""}, {"find": "b"}], 1, 0),
            ([{"find": "A"}], 0, 0),
        ],
    )
    def test_an_edit_that_does_not_match_changes_nothing(
        self, edits: list[Any], place: int, times: int, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        page_before = save(api, page, "aabac")
        body = {"id": page["id"], "edits": [{"replace": "", **edit} for edit in edits]}
        error = refused_field(api, SAVE, body)
        key = "several_matches" if times else "no_match"
        assert (error["field"], error["key"]) == (f"edits.{place}", key)
        assert f"matched {times} times" in error["message"]
        assert read(api, page)["page"] == page_before
        assert objects(owner) == [b"aabac"]

    def test_1_to_50_edits_are_sent_instead_of_html(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "a")
        good = {"find": "a", "replace": "a"}
        for more, field in (
            ({"edits": [good], "html": "x"}, "html"),
            ({"edits": None}, "html"),
            ({"edits": []}, "edits"),
            ({"edits": [good] * 51}, "edits"),
            ({"edits": [good, {"find": "", "replace": ""}]}, "edits.1.find"),
            ({"edits": [{"find": "a"}]}, "edits.0.replace"),
            ({"edits": [{**good, "all": "true"}]}, "edits.0.all"),
        ):
            assert refused_field(api, SAVE, {"id": page["id"], **more})["field"] == field
        assert edit(api, page, *[good] * 50, html=None)["html"] == "a"

    def test_edits_may_exceed_the_size_limit_in_between_but_not_at_the_end(
        self, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "x" * MIB)
        grow = {"find": "x", "replace": "ё", "all": True}
        error = refused_field(api, SAVE, {"id": page["id"], "edits": [grow]}, 413)
        assert error["field"] == "edits"
        assert f"{2 * MIB:,}" in error["message"]
        shrunk = edit(api, page, grow, {"find": "ё", "replace": "y", "all": True})
        assert shrunk["html"] == "y" * MIB

    def test_edits_that_multiply_the_size_are_refused_early(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "x" * MIB)
        bomb = {"find": "x", "replace": "x" * 100_000, "all": True}
        error = refused_field(api, SAVE, {"id": page["id"], "edits": [bomb]}, 413)
        assert error["field"] == "edits.0"
        assert f"{100_000 * MIB:,}" in error["message"]

    def test_concurrent_edits_both_apply(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        save(api, page, "one two")
        real, rivals = object_store.FolderStore.get, []

        def get(store: object_store.FolderStore, key: str) -> bytes | None:
            if not rivals:
                rivals.append(1)
                edit(api, page, {"find": "two", "replace": "zwei"})
            return real(store, key)

        monkeypatch.setattr(object_store.FolderStore, "get", get)
        edited = edit(api, page, {"find": "one", "replace": "eins"})
        assert (edited["html"], edited["version"]) == ("eins zwei", 4)
