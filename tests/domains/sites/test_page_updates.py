"""A page's metadata and design system, and the quota that pages share."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import plans, retry
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.store import pages as store_pages
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import object_store
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.pages import (
    CREATE,
    DELETE,
    LIST,
    MIB,
    SAVE,
    UPDATE,
    Killed,
    create,
    delete,
    homes,
    list_pages,
    new_site,
    objects,
    read,
    record,
    refused_field,
    rows_of,
    save,
    titles,
    update,
)
from tests.support.effort import examples
from tests.support.warned import warned

IMPORT = "/api/pages/import-html"
FILES = "/api/files"
UPLOAD = f"{FILES}/upload"


def design(size: int, letter: str = "ж") -> dict[str, str]:
    """Return a design system with this many bytes of JSON."""
    width = len(letter.encode())
    return {"a" * (1 + (size - 8) % width): letter * ((size - 8) // width)}


class TestLongDesignSystem:
    """A design system over 1 KB is stored in a row of its own. Only lists show the difference."""

    def test_long_design_system_is_in_every_response_for_its_page(
        self, api: Api, site: str
    ) -> None:
        page = create(api, site)
        for size in (1024, 1025, MIB // 16, 1025, 1024):
            expected = design(size)
            assert len(
                json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()
            ) == (size)
            updated = update(api, page, designSystem=expected)
            assert updated["designSystem"] == expected
            assert record(read(api, page)["page"]) == updated
            assert save(api, page, "<p>")["designSystem"] == expected
            assert update(api, page, title="New")["designSystem"] == expected
        assert update(api, page, designSystem=None)["designSystem"] is None
        assert read(api, page)["page"]["designSystem"] is None

    def test_a_long_design_system_is_null_with_a_warning_in_the_list(
        self, api: Api, site: str
    ) -> None:
        short, long = create(api, site), create(api, site)
        update(api, short, designSystem=design(1024))
        update(api, long, designSystem=design(1025))
        data = api.get(f"{LIST}?projectId={site}")
        assert [page["designSystem"] for page in data["pages"]] == [design(1024), None]
        assert warned(data) == [{"code": "design_system_omitted", "count": 1}]
        assert [page["designSystemTruncated"] for page in data["pages"]] == [False, True]
        body = {"id": long["id"], "title": "New", "designSystem": None}
        refusal = api.call_refused("POST", UPDATE, body | {"designSystemTruncated": True})
        assert refusal.data["errors"][0]["field"] == "designSystem"
        assert read(api, long)["page"]["designSystem"] == design(1025)
        assert read(api, long)["page"]["designSystemTruncated"] is False
        assert update(api, long, title="New", designSystemTruncated=True)["title"] == "New"

    @pytest.mark.parametrize("last", ["shortened", "cleared", "deleted"])
    def test_a_long_design_system_leaves_no_row_behind(
        self, last: str, time: Time, api: Api, site: str
    ) -> None:
        page = create(api, site)
        update(api, page, designSystem=design(5000))
        assert any("#PAGE#DESIGN/" in key for key in all_rows())
        if last == "deleted":
            delete(api, page)
            time.pass_by(days=30)
            run_jobs()
        else:
            update(api, page, designSystem=None if last == "cleared" else {"a": 1})
        assert not any("#PAGE#DESIGN/" in key for key in all_rows())

    def test_long_design_system_matches_the_version_of_its_page(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        update(api, page, designSystem=design(2000, "a"))
        real, rivals = store_pages.fetch, []

        def fetch_torn(keys: Any) -> list[Any]:
            first, apart, *other_keys = keys
            rows = real([first])
            if not rivals:
                rivals.append(1)
                rivals[:] = [update(api, page, designSystem=design(2000, "b"))]
            return [*rows, *real([apart, *other_keys])]

        monkeypatch.setattr(store_pages, "fetch", fetch_torn)
        assert record(read(api, page)["page"]) == rivals[0]


STEPS = ["page", "save", "import", "replace", "upload"]
STEPS += ["delete page", "delete file", "delete site"]


class TestQuota:
    """HTML counts against the plan's quota, as files do."""

    def test_saves_end_at_the_quota_and_store_nothing(
        self, owner: Owner, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
        page, other = create(api, site), create(api, site)
        save(api, page, "x" * 700)
        rows_before = all_rows()
        for path, body in (
            (SAVE, {"id": other["id"], "html": "y" * 301}),
            (SAVE, {"id": page["id"], "html": "y" * 1001}),
            (IMPORT, {"projectId": site, "html": "y" * 301}),
            (UPLOAD, {"name": "a", "content": "eHh4" * 101}),
        ):
            answer = api.call_refused("POST", path, body)
            assert (answer.status, answer.data["code"]) == (409, "quota_exceeded"), path
        rows_after = {key: row for key, row in all_rows().items() if "/LIMIT#" not in key}
        assert rows_after == rows_before
        assert objects(owner) == [b"x" * 700]
        save(api, other, "y" * 300)
        assert files.used_bytes(owner.workspace.id) == 1000

    @examples(20)
    @given(
        steps=st.lists(
            st.tuples(
                st.sampled_from(STEPS),
                st.integers(0, 99),
            ),
            min_size=4,
            max_size=10,
        )
    )
    def test_the_used_bytes_equal_the_sum_of_stored_objects(
        self, steps: list[tuple[str, int]], owner: Owner, api: Api
    ) -> None:
        sites = [new_site(api), new_site(api)]
        pages = [create(api, sites[0])]
        for step, number in steps:
            html = "ж" * number
            site, page = sites[number % 2], pages[number % len(pages)]["id"]
            uploaded = api.get(f"{FILES}/list?size=100")["files"] or [{"id": "x"}]
            path, body = {
                "page": (CREATE, {"projectId": site, "title": "x"}),
                "save": (SAVE, {"id": page, "html": html}),
                "import": (IMPORT, {"projectId": site, "html": html}),
                "replace": (IMPORT, {"pageId": page, "html": html}),
                "upload": (UPLOAD, {"name": "a", "content": "eHh4" * (number + 1)}),
                "delete page": (DELETE, {"id": page, "confirm": True}),
                "delete file": (f"{FILES}/delete", {"id": uploaded[number % len(uploaded)]["id"]}),
                "delete site": ("/api/projects/delete", {"id": site}),
            }[step]
            answer = api.call("POST", path, body)
            assert answer.status in {200, 404, 409}, answer.body
            if "page" in answer.data:
                pages.append(answer.data["page"])
        stored_rows = [row for pk in ("PAGE", "FILE") for row in rows_of(owner, pk)]
        stored_bytes = sum(int(row.get("html_bytes", row.get("size"))["N"]) for row in stored_rows)
        assert files.used_bytes(owner.workspace.id) == stored_bytes
        for row in rows_of(owner, "SITE"):
            count = int(row.get("page_count", {"N": "0"})["N"])
            assert count == len(list_pages(api, row["sk"]["S"]))


class TestUpdatePage:
    def test_an_update_changes_only_the_given_fields(self, time: Time, api: Api, site: str) -> None:
        page = save(api, create(api, site, "About"), "<p>")
        time.pass_by(minutes=1)
        updated = update(api, page, description="About us")
        moment = time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        changes = {"description": "About us", "version": 3, "updatedAt": moment}
        assert updated == record(page) | changes
        assert record(read(api, page)["page"]) == updated

    def test_an_update_changes_all_fields_at_once(self, api: Api, site: str) -> None:
        create(api, site)
        page = create(api, site)
        fields = {
            "title": "T",
            "slug": "t",
            "description": "D",
            "designSystem": {"colors": {"primary": "#fff"}, "scale": [1, 1.5, None, True, "ё"]},
            "isHome": True,
        }
        fields["sortOrder"] = 3
        updated = update(api, page, **fields)
        assert {name: updated[name] for name in fields} == fields
        assert record(read(api, page)["page"]) == updated

    def test_null_clears_optional_fields(self, time: Time, api: Api, site: str) -> None:
        create(api, site, "home")
        page = create(api, site, "a")
        time.pass_by(seconds=1)
        create(api, site, "b")
        update(api, page, description="D", designSystem={"a": 1}, sortOrder=-1)
        updated = update(api, page, description=None, designSystem=None)
        assert (updated["description"], updated["designSystem"]) == (None, None)
        assert record(read(api, page)["page"]) == updated

    def test_html_is_refused_with_the_call_that_accepts_it(self, api: Api, site: str) -> None:
        page = create(api, site)
        for html in ("<p>", None, 1):
            body = {"id": page["id"], "title": "x", "html": html}
            error = refused_field(api, UPDATE, body)
            assert error["field"] == "html"
            assert "POST /api/pages/save-html" in error["message"]
        assert record(read(api, page)["page"]) == page

    def test_a_new_slug_frees_the_old_one(self, api: Api, site: str) -> None:
        page = create(api, site, slug="old")
        assert update(api, page, slug="new")["slug"] == "new"
        assert create(api, site, slug="old")["slug"] == "old"
        body = {"projectId": site, "title": "x", "slug": "new"}
        assert api.call_refused("POST", CREATE, body).data["code"] == "slug_taken"

    def test_a_pages_own_slug_is_accepted_and_another_pages_is_not(
        self, api: Api, site: str
    ) -> None:
        create(api, site, slug="one")
        page = create(api, site, slug="two")
        assert update(api, page, slug="two", title="x")["slug"] == "two"
        answer = api.call_refused("POST", UPDATE, {"id": page["id"], "slug": "one"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert read(api, page)["page"]["slug"] == "two"
        other = create(api, new_site(api, "Other"), slug="three")
        assert update(api, other, slug="one")["slug"] == "one"

    def test_a_design_system_of_up_to_64_kb_of_json_is_accepted(self, api: Api, site: str) -> None:
        page = create(api, site)
        for letter, width in (("x", 1), ("ё", 2), ("饼", 3), ("🍞", 4)):
            room = 64 * 1024 - len('{"a":""}')
            fits = {"a": letter * (room // width)}
            assert update(api, page, designSystem=fits)["designSystem"] == fits
            assert read(api, page)["page"]["designSystem"] == fits
            body = {"id": page["id"], "designSystem": {"a": letter * (room // width + 1)}}
            error = refused_field(api, UPDATE, body, 413)
            assert (error["field"], error["key"]) == ("designSystem", "too_large")
            assert "65,536" in error["message"]

    def test_any_json_object_is_stored_unchanged(self, api: Api, site: str) -> None:
        page = create(api, site)
        deep: Any = {}
        for _ in range(80):
            deep = {"a": [deep]}
        for system in (
            {},
            {"": "", "snake_case": 1, "camelCase": 2, "ключ": "ё"},
            {"big": 2**70, "small": 1e-300, "negative": -0.5, "null": None},
            deep,
        ):
            assert update(api, page, designSystem=system)["designSystem"] == system
            assert read(api, page)["page"]["designSystem"] == system

    def test_moving_the_home_keeps_exactly_one_home(self, api: Api, site: str) -> None:
        pages = [create(api, site, f"Page {number}") for number in range(3)]
        for number in (2, 1, 1, 0):
            assert update(api, pages[number], isHome=True)["isHome"] is True
            assert homes(api, site) == [f"Page {number}"]
            assert titles(api, site)[0] == f"Page {number}"
        refusal = api.call_refused("POST", UPDATE, {"id": pages[0]["id"], "isHome": False})
        (error,) = refusal.data["errors"]
        assert (error["field"], error["key"]) == ("isHome", "not_true")

    def test_moving_the_home_or_changing_the_order_rewrites_no_other_page(
        self, time: Time, api: Api, site: str
    ) -> None:
        first, second, third = (create(api, site, slug=slug) for slug in ("a", "b", "c"))
        time.pass_by(seconds=1)
        assert update(api, second, isHome=True)["url"] == first["url"]
        update(api, third, sortOrder=-1)
        former_home = record(read(api, first)["page"])
        assert former_home == first | {"isHome": False, "url": f"{first['url']}/a"}
        assert save(api, first, "x", ifVersion=1)["version"] == 2

    def test_a_change_between_read_and_commit_is_a_conflict(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        commit, rivals = UnitOfWork.commit, []

        def late(unit: UnitOfWork, *arguments: Any) -> None:
            if not rivals:
                rivals.append(1)
                save(api, page, "rival")
            commit(unit, *arguments)

        monkeypatch.setattr(UnitOfWork, "commit", late)
        body = {"id": page["id"], "title": "x", "ifVersion": 1}
        assert api.call_refused("POST", UPDATE, body).data["code"] == "version_conflict"
        assert read(api, page)["page"]["html"] == "rival"

    def test_moving_the_home_does_not_change_other_sites(self, api: Api, site: str) -> None:
        other = new_site(api, "Other")
        create(api, other, "Other home")
        create(api, site)
        update(api, create(api, site, "New home"), isHome=True)
        assert homes(api, other) == ["Other home"]
        assert homes(api, site) == ["New home"]

    def test_sort_orders_range_from_minus_to_plus_a_million_million(
        self, api: Api, site: str
    ) -> None:
        create(api, site, "home")
        update(api, create(api, site, "last"), sortOrder=10**12)
        update(api, create(api, site, "first"), sortOrder=-(10**12))
        assert titles(api, site) == ["home", "first", "last"]

    def test_an_update_neither_reads_nor_returns_the_html(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        saved = save(api, page, "<p>Ёж</p>")
        for call in ("get", "put", "delete"):
            monkeypatch.setattr(object_store.FolderStore, call, Killed.now)
        updated = update(api, page, title="x", isHome=True, sortOrder=1)
        assert "html" not in updated
        assert updated["htmlBytes"] == saved["htmlBytes"] == 11
