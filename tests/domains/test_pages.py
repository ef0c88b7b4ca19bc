"""Pages: what the six page calls promise (tools.md, rows 10-15)."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import plans, retry
from chalicelib.core import settings as service_settings
from chalicelib.core.ids import new_id
from chalicelib.flows import invoke
from chalicelib.gateways import object_store
from chalicelib.store import audit, counters, files
from chalicelib.store import pages as store_pages
from chalicelib.store.connection import connection
from chalicelib.store.pages import PAGES
from chalicelib.store.sites import SITES, domain_request
from chalicelib.store.unit import UnitOfWork, in_batches
from chalicelib.transports.schedules import run_jobs
from tests.conftest import Api, Owner, Time, everything
from tests.effort import examples

LIST, CREATE, SAVE, UPDATE, DELETE = (
    f"/api/pages/{call}" for call in ("list", "create", "save-html", "update", "delete")
)
IMPORT = "/api/pages/import-html"
FILES = "/api/files"
UPLOAD = f"{FILES}/upload"
MIB = 2**20
SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def site(api: Api) -> str:
    """The id of an empty site."""
    return new_site(api)


def new_site(api: Api, title: str = "Bakery") -> str:
    site: str = api.post("/api/projects/create", {"title": title})["project"]["id"]
    return site


def create(api: Api, site: str, title: str = "Page", **fields: Any) -> Any:
    return api.post(CREATE, {"projectId": site, "title": title, **fields})["page"]


def update(api: Api, page: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": page["id"], **fields})["page"]


def save(api: Api, page: Any, html: str, **fields: Any) -> Any:
    return api.post(SAVE, {"id": page["id"], "html": html, **fields})["page"]


def edit(api: Api, page: Any, *edits: Any, **fields: Any) -> Any:
    return api.post(SAVE, {"id": page["id"], "edits": list(edits), **fields})["page"]


def record(page: Any) -> Any:
    """Return a page without its HTML, as most answers show it."""
    return {name: value for name, value in page.items() if name != "html"}


def delete(api: Api, page: Any) -> Any:
    return api.post(DELETE, {"id": page["id"], "confirm": True})


def read(api: Api, page: Any, **query: Any) -> Any:
    return api.get(f"/api/pages/{page['id']}?{urlencode(query)}")


def listed(api: Api, site: str) -> list[Any]:
    pages: list[Any] = api.get(f"{LIST}?projectId={site}")["pages"]
    return pages


def titles(api: Api, site: str) -> list[str]:
    return [page["title"] for page in listed(api, site)]


def homes(api: Api, site: str) -> list[str]:
    return [page["title"] for page in listed(api, site) if page["isHome"]]


def refused_field(api: Api, path: str, body: Any, status: int = 400) -> Any:
    """Send what must be refused for one field; return that field's error."""
    answer = api.refused("POST", path, body)
    code = {400: "validation_error", 413: "payload_too_large"}[status]
    assert (answer.status, answer.data["code"]) == (status, code)
    (error,) = answer.data["errors"]
    assert error["field"] in answer.data["message"]
    return error


def without_request_id(body: bytes) -> bytes:
    return re.sub(rb'"requestId":"[^"]*"', b'"requestId":""', body)


def objects(owner: Owner) -> list[bytes]:
    """Return what the object store keeps for a workspace."""
    root = Path(service_settings.settings().object_store.removeprefix("file://"))
    return sorted(
        path.read_bytes() for path in (root / owner.workspace.id).rglob("*") if path.is_file()
    )


class Killed(BaseException):
    """The end of a process, at any moment."""

    @classmethod
    def now(cls, *_: object) -> None:
        raise cls


class TestListPages:
    def test_is_empty_for_a_new_site(self, api: Api, site: str) -> None:
        data = api.get(f"{LIST}?projectId={site}")
        assert data == {"status": True, "pages": []}

    def test_shows_pages_without_html_but_with_its_size(self, api: Api, site: str) -> None:
        page = create(api, site, "Главная")
        saved = save(api, page, "<p>Ёж</p>")
        (shown,) = listed(api, site)
        assert shown == record(saved)
        assert shown["htmlBytes"] == 11

    def test_an_empty_page_has_no_bytes_of_html(self, api: Api, site: str) -> None:
        create(api, site)
        assert listed(api, site)[0]["htmlBytes"] == 0

    def test_orders_home_first_then_by_sort_order_then_by_creation(
        self, time: Time, api: Api, site: str
    ) -> None:
        pages = {}
        for name in ("first", "a", "b", "c", "d", "e"):
            pages[name] = create(api, site, name)
            time.pass_by(seconds=1)
        update(api, pages["d"], sortOrder=-5)
        update(api, pages["c"], sortOrder=10)
        update(api, pages["a"], sortOrder=10)
        update(api, pages["e"], isHome=True)
        assert titles(api, site) == ["e", "d", "a", "c", "first", "b"]

    def test_zero_is_a_sort_order(self, time: Time, api: Api, site: str) -> None:
        create(api, site, "home")
        for name in ("new", "one", "zero"):
            time.pass_by(seconds=1)
            page = create(api, site, name)
            if name != "new":
                update(api, page, sortOrder=0 if name == "zero" else 1)
        assert titles(api, site) == ["home", "zero", "one", "new"]

    def test_a_new_page_is_last(self, time: Time, api: Api, site: str) -> None:
        for number in range(3):
            page = create(api, site, f"Page {number}")
            update(api, page, sortOrder=100 - number)
            time.pass_by(seconds=1)
        new = create(api, site, "New")
        assert titles(api, site) == ["Page 0", "Page 2", "Page 1", "New"]
        update(api, new, sortOrder=-1)
        newer = create(api, site, "Newer")
        assert titles(api, site)[-1] == "Newer"
        update(api, new, sortOrder=newer["sortOrder"] + 10**9, isHome=True)
        assert create(api, site, "Newest")["sortOrder"] > newer["sortOrder"] + 10**9
        assert titles(api, site)[-1] == "Newest"

    def test_an_order_given_is_an_order_kept(self, api: Api, site: str) -> None:
        """What a record says of its place can be sent back."""
        create(api, site, "home")
        one, two = create(api, site, "one"), create(api, site, "two")
        update(api, one, sortOrder=two["sortOrder"])
        update(api, two, sortOrder=one["sortOrder"])
        assert titles(api, site) == ["home", "two", "one"]

    def test_returns_all_pages_of_a_large_site(self, owner: Owner, api: Api, site: str) -> None:
        for batch in in_batches(range(90), 45):
            unit = UnitOfWork(owner.workspace.id, "seed")
            for _ in batch:
                slug = new_id().lower()
                unit.create(PAGES.new(owner.workspace.id, project_id=site, title="Page", slug=slug))
            unit.commit()
        made = {create(api, site)["id"] for _ in range(11)}
        shown = [page["id"] for page in listed(api, site)]
        assert len(shown) == len(set(shown)) == 101
        assert made <= set(shown)

    def test_large_design_systems_do_not_make_the_list_too_large_to_answer(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(invoke, "MAX_ANSWER_BYTES", invoke.MAX_ANSWER_BYTES // 20)
        for _ in range(5):
            update(api, create(api, site), designSystem={"a": "x" * 60_000})
        assert len(listed(api, site)) == 5

    def test_shows_the_pages_of_one_site_only(self, api: Api, site: str) -> None:
        other = new_site(api, "Other")
        create(api, site, "Mine")
        create(api, other, "Theirs")
        assert titles(api, site) == ["Mine"]
        assert titles(api, other) == ["Theirs"]

    def test_needs_the_site(self, api: Api) -> None:
        answer = api.refused("GET", LIST)
        assert answer.status == 400
        assert answer.data["errors"] == [{"field": "projectId", "message": "is required"}]

    def test_an_unknown_site_is_not_found(self, api: Api) -> None:
        answer = api.refused("GET", f"{LIST}?projectId={new_id()}")
        assert (answer.status, answer.data["code"]) == (404, "not_found")
        assert "svc_list_sites" in answer.data["message"]

    def test_needs_the_read_scope(self, owner: Owner) -> None:
        answer = owner.api("pages:write", "projects:read").refused("GET", f"{LIST}?projectId=x")
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")


class TestGetPage:
    def test_returns_the_whole_record(self, time: Time, api: Api, site: str) -> None:
        page = create(api, site, "Главная", slug="main")
        save(api, page, "<p>Ёж</p>")
        data = read(api, page)
        moment = time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        assert data == {
            "status": True,
            "page": {
                "id": page["id"],
                "projectId": site,
                "title": "Главная",
                "slug": "main",
                "html": "<p>Ёж</p>",
                "designSystem": None,
                "description": None,
                "isHome": True,
                "sortOrder": 2**20,
                "url": f"{service_settings.settings().public_url}/s/bakery",
                "htmlBytes": 11,
                "version": 2,
                "createdAt": moment,
                "updatedAt": moment,
            },
            "htmlBytes": 11,
            "nextOffset": None,
        }

    def test_times_are_utc_with_milliseconds_and_z(self, api: Api, site: str) -> None:
        page = read(api, create(api, site))["page"]
        assert TIME.fullmatch(page["createdAt"])
        assert TIME.fullmatch(page["updatedAt"])

    def test_a_part_says_where_the_next_one_begins(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "0123456789")
        for query, html, next_offset in (
            ({"maxBytes": 4}, "0123", 4),
            ({"offset": 4, "maxBytes": 4}, "4567", 8),
            ({"offset": 8, "maxBytes": 4}, "89", None),
            ({"offset": 6, "maxBytes": 4}, "6789", None),
            ({"offset": 3}, "3456789", None),
            ({"maxBytes": 10}, "0123456789", None),
            ({"maxBytes": 9}, "012345678", 9),
            ({"offset": 10}, "", None),
            ({"offset": 10**12, "maxBytes": 1}, "", None),
        ):
            data = read(api, page, **query)
            assert (data["page"]["html"], data["nextOffset"]) == (html, next_offset), query
            assert data["htmlBytes"] == 10

    def test_never_splits_a_character(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "aё🍞z")
        for query, html, next_offset in (
            ({"maxBytes": 2}, "a", 1),
            ({"maxBytes": 3}, "aё", 3),
            ({"offset": 1, "maxBytes": 5}, "ё", 3),
            ({"offset": 2, "maxBytes": 4}, "🍞", 7),
            ({"offset": 3, "maxBytes": 4}, "🍞", 7),
            ({"offset": 4, "maxBytes": 4}, "z", None),
            ({"offset": 2}, "🍞z", None),
            ({"offset": 7, "maxBytes": 4}, "z", None),
        ):
            data = read(api, page, **query)
            assert (data["page"]["html"], data["nextOffset"]) == (html, next_offset), query

    @examples(40)
    @given(
        html=st.text(st.sampled_from("a<\n\r\x00éё→饼🍞\u0301"), min_size=1, max_size=25),
        size=st.integers(1, 12),
    )
    def test_parts_put_together_are_the_whole(
        self, html: str, size: int, api: Api, site: str
    ) -> None:
        page = (listed(api, site) or [create(api, site)])[0]
        save(api, page, html)
        parts, offset = [], 0
        while offset is not None:
            data = read(api, page, offset=offset, maxBytes=size)
            part = data["page"]["html"]
            assert len(part) == 1 or len(part.encode()) <= size
            parts.append(part)
            assert data["nextOffset"] is None or data["nextOffset"] > offset
            offset = data["nextOffset"]
        assert "".join(parts) == html

    def test_a_long_answer_comes_with_a_warning(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "x" * 100_000)
        data = read(api, page)
        assert len(data["page"]["html"]) == 100_000
        assert "maxBytes" in data["warnings"][0]
        assert "warnings" not in read(api, page, maxBytes=1000)

    def test_refuses_values_out_of_range(self, api: Api, site: str) -> None:
        page = create(api, site)
        for field, value in (
            *(("offset", value) for value in ("-1", "1.5", "x", "")),
            *(("maxBytes", value) for value in ("0", "-1", "1.0", str(MIB + 1), "all")),
        ):
            query = urlencode({field: value})
            answer = api.refused("GET", f"/api/pages/{page['id']}?{query}")
            assert answer.status == 400
            assert [error["field"] for error in answer.data["errors"]] == [field]
        assert read(api, page, maxBytes=MIB)["page"]["html"] == ""

    def test_an_unknown_id_is_not_found(self, api: Api, site: str) -> None:
        for value in (new_id(), site, "x"):
            answer = api.refused("GET", f"/api/pages/{value}")
            assert (answer.status, answer.data["code"]) == (404, "not_found")

    def test_a_query_cannot_name_another_page_than_the_path(self, api: Api, site: str) -> None:
        one, two = create(api, site, "One"), create(api, site, "Two")
        assert read(api, one, id=two["id"])["page"]["title"] == "One"

    def test_a_save_between_reading_the_record_and_the_object_shows_the_newer_one(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        save(api, page, "old")
        real = object_store.FolderStore.get
        saved = []

        def get(store: object_store.FolderStore, key: str) -> bytes | None:
            if not saved:
                saved.append(save(api, page, "new"))
            return real(store, key)

        monkeypatch.setattr(object_store.FolderStore, "get", get)
        data = read(api, page)
        assert data["page"] == saved[0]
        assert data["page"]["html"] == "new"


class TestCreatePage:
    def test_returns_the_whole_record(self, api: Api, site: str) -> None:
        page = create(api, site, "  О нас ", slug="about")
        assert page == record(read(api, page)["page"])
        assert page["url"].startswith("http")
        assert {name: page[name] for name in page if not name.endswith(("At", "id"))} == {
            "projectId": site,
            "title": "О нас",
            "slug": "about",
            "url": page["url"],
            "designSystem": None,
            "description": None,
            "isHome": True,
            "sortOrder": 2**20,
            "htmlBytes": 0,
            "version": 1,
        }

    def test_the_first_page_is_the_home_and_the_next_are_not(self, api: Api, site: str) -> None:
        assert [create(api, site)["isHome"] for _ in range(3)] == [True, False, False]
        assert len(homes(api, site)) == 1

    def test_makes_the_slug_from_the_title(self, api: Api, site: str) -> None:
        for title, slug in (
            ("О нас", "o-nas"),
            ("О нас", "o-nas-2"),
            ("О нас", "o-nas-3"),
            ("Σχετικά", "schetika"),
            ("关于", "guanyu"),
            ("Who's there?", "whos-there"),
            ("…", "page"),
            ("…", "page-2"),
            ("x" * 200, "x" * 63),
        ):
            assert create(api, site, title)["slug"] == slug

    def test_makes_slugs_of_many_equal_titles_differ(self, api: Api, site: str) -> None:
        slugs = [create(api, site, "Новость " + "ы" * 100)["slug"] for _ in range(9)]
        assert len(set(slugs)) == 9
        assert all(SLUG.fullmatch(slug) for slug in slugs)

    def test_a_slug_is_unique_in_its_site_only(self, api: Api, site: str) -> None:
        create(api, site, slug="about")
        answer = api.refused("POST", CREATE, {"projectId": site, "title": "x", "slug": "about"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert "about" in answer.data["message"]
        assert len(listed(api, site)) == 1
        assert create(api, new_site(api, "Other"), slug="about")["slug"] == "about"

    def test_refuses_a_malformed_slug(self, api: Api, site: str) -> None:
        for slug in ("", "-a", "A", "a_b", "a b", "ё", "x" * 64, "a\n", 1, True):
            error = refused_field(api, CREATE, {"projectId": site, "title": "x", "slug": slug})
            assert error["field"] == "slug"
        assert listed(api, site) == []

    def test_takes_titles_of_1_to_200_characters(self, api: Api, site: str) -> None:
        assert create(api, site, "ё" * 200)["title"] == "ё" * 200
        for title in ("", " \n", "ё" * 201, None, 1, ["x"]):
            error = refused_field(api, CREATE, {"projectId": site, "title": title})
            assert error["field"] == "title"

    def test_refuses_a_version_which_it_cannot_have(self, api: Api, site: str) -> None:
        body = {"projectId": site, "title": "x", "ifVersion": 1}
        assert refused_field(api, CREATE, body)["field"] == "ifVersion"
        assert listed(api, site) == []

    def test_an_unknown_site_is_not_found(self, api: Api) -> None:
        before = everything()
        for body in ({"title": "x"}, {"title": "x", "slug": "x"}):
            answer = api.refused("POST", CREATE, {"projectId": new_id(), **body})
            assert (answer.status, answer.data["code"]) == (404, "not_found")
        assert set(everything()) == set(before)

    def test_ignores_html_and_says_so(self, api: Api, site: str) -> None:
        data = api.post(CREATE, {"projectId": site, "title": "x", "html": "<p>"})
        assert data["page"]["htmlBytes"] == 0
        assert '"html"' in data["warnings"][0]

    def test_counts_it_and_leaves_one_audit_record(self, owner: Owner, api: Api, site: str) -> None:
        page = create(api, site)
        assert counters.read(owner.workspace.id, "PAGE") == {"total": 1}
        event = audit.latest(owner.workspace.id, limit=1)[0]
        assert (event.operation, event.resources[0]) == ("create_page", f"page:{page['id']}")
        assert event.fields == ["projectId", "title"]

    def test_a_write_only_key_gets_the_record_back(self, owner: Owner, site: str) -> None:
        api = owner.api("pages:write")
        assert create(api, site, "Новая")["title"] == "Новая"
        answer = owner.api("pages:read").refused("POST", CREATE, {})
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")


class TestSavePageHtml:
    def test_stores_it_verbatim(self, api: Api, site: str) -> None:
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

    def test_takes_up_to_1_mib_of_utf_8(self, api: Api, site: str) -> None:
        page = create(api, site)
        html = "ё" * (MIB // 2)
        assert save(api, page, html)["html"] == html
        assert read(api, page)["page"]["html"] == html
        assert listed(api, site)[0]["htmlBytes"] == MIB
        for too_long in (html + "x", "x" * (MIB + 1), "饼" * (MIB // 3 + 1)):
            error = refused_field(api, SAVE, {"id": page["id"], "html": too_long}, 413)
            assert error["field"] == "html"
            assert f"{MIB:,}" in error["message"]
            assert f"{len(too_long.encode()):,}" in error["message"]
        assert read(api, page)["page"]["html"] == html

    def test_raises_the_version_that_a_later_get_shows(self, api: Api, site: str) -> None:
        page = create(api, site)
        for expected in (2, 3, 4):
            saved = save(api, page, f"<p>{expected}</p>")
            assert saved["version"] == expected
            assert read(api, page)["page"] == saved

    def test_moves_updated_at_and_nothing_else(self, time: Time, api: Api, site: str) -> None:
        page = create(api, site, "About", slug="about")
        time.pass_by(minutes=1)
        moment = time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        changed = {"html": "x", "htmlBytes": 1, "version": 2, "updatedAt": moment}
        assert save(api, page, "x") == page | changed

    def test_saves_only_over_the_version_named(self, owner: Owner, api: Api, site: str) -> None:
        page = create(api, site)
        assert save(api, page, "two", ifVersion=1)["version"] == 2
        for version in (1, 3, 2**40):
            body = {"id": page["id"], "html": "other", "ifVersion": version}
            answer = api.refused("POST", SAVE, body)
            assert (answer.status, answer.data["code"]) == (409, "version_conflict")
            assert answer.data["version"] == 2
        assert objects(owner) == [b"two"]
        assert read(api, page)["page"]["html"] == "two"
        assert save(api, page, "three", ifVersion=2)["version"] == 3

    def test_a_change_of_metadata_counts_as_a_version(self, api: Api, site: str) -> None:
        page = create(api, site)
        version = update(api, page, title="New")["version"]
        answer = api.refused("POST", SAVE, {"id": page["id"], "html": "x", "ifVersion": 1})
        assert answer.data["code"] == "version_conflict"
        assert save(api, page, "x", ifVersion=version)["version"] == version + 1

    def test_refuses_what_is_no_version(self, api: Api, site: str) -> None:
        page = create(api, site)
        for version in (0, -1, 1.0, "1", True):
            body = {"id": page["id"], "html": "x", "ifVersion": version}
            assert refused_field(api, SAVE, body)["field"] == "ifVersion"
        assert save(api, page, "x", ifVersion=None)["html"] == "x"

    def test_needs_html_that_is_text(self, api: Api, site: str) -> None:
        page = create(api, site)
        for body in ({}, {"html": None}, {"html": 1}, {"html": ["<p>"]}):
            assert refused_field(api, SAVE, {"id": page["id"], **body})["field"] == "html"

    def test_an_unknown_id_is_not_found_and_stores_nothing(self, owner: Owner, api: Api) -> None:
        answer = api.refused("POST", SAVE, {"id": new_id(), "html": "x"})
        assert (answer.status, answer.data["code"]) == (404, "not_found")
        assert objects(owner) == []

    def test_keeps_one_object_a_page(self, owner: Owner, api: Api, site: str) -> None:
        page, other = create(api, site), create(api, site)
        for html in ("one", "two", "three"):
            save(api, page, html)
        save(api, other, "other")
        assert objects(owner) == [b"other", b"three"]

    def test_a_save_that_loses_every_race_leaves_no_object(
        self, owner: Owner, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        save(api, page, "before")
        before = everything()

        def refuse(**_: Any) -> None:
            error = {"Code": "TransactionCanceledException", "Message": "cancelled"}
            reasons = [{"Code": "TransactionConflict"}]
            raise ClientError({"Error": error, "CancellationReasons": reasons}, "Any")

        events = connection().client.meta.events
        events.register_first("before-call.dynamodb.TransactWriteItems", refuse)
        try:
            answer = api.refused("POST", SAVE, {"id": page["id"], "html": "after"})
        finally:
            events.unregister("before-call.dynamodb.TransactWriteItems", refuse)
        assert answer.status == 503
        assert everything() == before
        assert objects(owner) == [b"before"]
        assert read(api, page)["page"]["html"] == "before"

    def test_a_race_that_is_won_in_the_end_stores_the_html_once(
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
        assert objects(owner) == [b"after"]

    def test_a_commit_whose_answer_is_lost_does_not_lose_the_html(
        self, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "before")

        def lose(**_: Any) -> None:
            raise ReadTimeoutError(endpoint_url="http://nowhere")

        events = connection().client.meta.events
        events.register("after-call.dynamodb.TransactWriteItems", lose)
        try:
            answer = api.refused("POST", SAVE, {"id": page["id"], "html": "after"})
        finally:
            events.unregister("after-call.dynamodb.TransactWriteItems", lose)
        assert answer.status == 503
        assert read(api, page)["page"]["html"] == "after"

    def test_a_save_whose_object_cannot_be_stored_changes_nothing(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        saved = save(api, page, "before")
        before = everything()

        def full(*_: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr(object_store.FolderStore, "put", full)
        answer = api.refused("POST", SAVE, {"id": page["id"], "html": "after"})
        assert answer.status >= 500
        assert "disk" not in answer.body.decode()
        assert everything() == before
        assert read(api, page)["page"] == saved

    def test_a_save_stands_even_if_the_old_object_cannot_be_removed(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        save(api, page, "before")

        def fail(*_: object) -> None:
            raise OSError("no luck")

        monkeypatch.setattr(object_store.FolderStore, "delete", fail)
        assert save(api, page, "after")["html"] == "after"
        assert read(api, page)["page"]["html"] == "after"

    def test_a_save_that_succeeds_removes_nothing_that_is_in_use_an_hour_later(
        self, time: Time, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        for html in ("one", "two"):
            save(api, page, html)
        time.pass_by(hours=2)
        assert run_jobs()["page-html-unused"] == 2
        assert objects(owner) == [b"two"]
        assert run_jobs()["page-html-unused"] == 0

    def test_a_process_killed_after_the_commit_leaves_the_old_object_to_the_runner(
        self, time: Time, owner: Owner, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        save(api, page, "before")
        with monkeypatch.context() as dying:
            dying.setattr(object_store.FolderStore, "delete", Killed.now)
            with pytest.raises(Killed):
                save(api, page, "after")
        assert objects(owner) == [b"after", b"before"]
        time.pass_by(minutes=59)
        run_jobs()
        time.pass_by(minutes=2)
        run_jobs()
        assert objects(owner) == [b"after"]
        assert read(api, page)["page"]["html"] == "after"

    @pytest.mark.parametrize("moment", ["put", "commit"])
    def test_a_process_killed_before_the_commit_leaves_the_new_object_to_the_runner(
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

        def put_and_die(store: object_store.FolderStore, *rest: Any) -> None:
            put(store, *rest)
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
    def test_the_runner_removes_the_html_of_no_page_that_is_kept_after_its_deletion(
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
        assert objects(owner) == ([] if deleted == "page" else [b"html"])

    def test_leaves_one_audit_record_without_the_html(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "<p>secret</p>")
        event = audit.latest(owner.workspace.id, limit=1)[0]
        assert (event.operation, event.resources[0]) == ("save_page_html", f"page:{page['id']}")
        assert event.fields == ["html"]
        assert "secret" not in repr(event.attribute_values)


class TestEdits:
    """Parts of the HTML are found and replaced, so that large pages need not travel."""

    def test_apply_in_order_to_what_those_before_left(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "<h1>Bread</h1><p>Bread, bread</p>")
        after = edit(
            api,
            page,
            {"find": "<h1>Bread</h1>", "replace": "<h1>Cake</h1>"},
            {"find": "Bread", "replace": "Cake"},
            {"find": "Cake", "replace": "Торт 🍰", "all": True},
            {"find": ", bread", "replace": ""},
        )
        assert after["html"] == "<h1>Торт 🍰</h1><p>Торт 🍰</p>"
        assert after["version"] == 3
        assert read(api, page)["page"] == after

    def test_answer_without_the_html_if_so_asked(self, api: Api, site: str) -> None:
        page = create(api, site)
        before = save(api, page, "<p>one</p>")
        after = edit(api, page, {"find": "one", "replace": "three"}, returnHtml=False)
        assert "html" not in after
        assert after["htmlBytes"] == before["htmlBytes"] + 2
        assert record(read(api, page)["page"]) == after
        assert save(api, page, "x", returnHtml=False) == record(read(api, page)["page"])

    @pytest.mark.parametrize(
        ("edits", "place", "times"),
        [
            ([{"find": "none", "replace": ""}], 0, 0),
            ([{"find": "none", "replace": "", "all": True}], 0, 0),
            ([{"find": "a", "replace": ""}], 0, 3),
            ([{"find": "b", "replace": "a"}, {"find": "c", "replace": "b"}, {"find": "a"}], 2, 4),
            ([{"find": "b", "replace": ""}, {"find": "b"}], 1, 0),
            ([{"find": "A"}], 0, 0),
        ],
    )
    def test_that_do_not_match_as_they_must_change_nothing(
        self, edits: list[Any], place: int, times: int, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        before = save(api, page, "aabac")
        body = {"id": page["id"], "edits": [{"replace": "", **each} for each in edits]}
        error = refused_field(api, SAVE, body)
        assert error["field"] == f"edits.{place}"
        assert f"matched {times} times" in error["message"]
        assert read(api, page)["page"] == before
        assert objects(owner) == [b"aabac"]

    def test_of_an_empty_page_find_nothing(self, api: Api, site: str) -> None:
        body = {"id": create(api, site)["id"], "edits": [{"find": "a", "replace": "b"}]}
        assert "matched 0 times" in refused_field(api, SAVE, body)["message"]

    def test_come_instead_of_html_and_are_1_to_50(self, api: Api, site: str) -> None:
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

    def test_save_only_over_the_version_named(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "a")
        change = {"find": "a", "replace": "aa"}
        assert edit(api, page, change, ifVersion=2)["html"] == "aa"
        body = {"id": page["id"], "edits": [change], "ifVersion": 2}
        assert api.refused("POST", SAVE, body).data["code"] == "version_conflict"
        assert read(api, page)["page"]["html"] == "aa"

    def test_may_pass_the_limit_on_the_way_but_not_at_the_end(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "x" * MIB)
        grow = {"find": "x", "replace": "ё", "all": True}
        error = refused_field(api, SAVE, {"id": page["id"], "edits": [grow]}, 413)
        assert error["field"] == "edits"
        assert f"{2 * MIB:,}" in error["message"]
        shrunk = edit(api, page, grow, {"find": "ё", "replace": "y", "all": True})
        assert shrunk["html"] == "y" * MIB

    def test_that_multiply_are_refused_before_they_do(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "x" * MIB)
        bomb = {"find": "x", "replace": "x" * 100_000, "all": True}
        error = refused_field(api, SAVE, {"id": page["id"], "edits": [bomb]}, 413)
        assert error["field"] == "edits.0"
        assert f"{100_000 * MIB:,}" in error["message"]

    def test_of_rivals_both_hold(
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
        after = edit(api, page, {"find": "one", "replace": "eins"})
        assert (after["html"], after["version"]) == ("eins zwei", 4)

    def test_that_are_sent_again_under_their_key_apply_once(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "a")
        body = {"id": page["id"], "edits": [{"find": "a", "replace": "aa"}]}
        assert api.post(SAVE, body, key="k") == api.post(SAVE, body, key="k")
        assert read(api, page)["page"]["html"] == "aa"

    def test_name_themselves_in_the_audit_log_without_their_text(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "a")
        edit(api, page, {"find": "a", "replace": "secret"})
        kept = audit.latest(owner.workspace.id, limit=1)[0]
        assert (kept.operation, kept.fields) == ("save_page_html", ["edits"])
        assert "secret" not in repr(kept.attribute_values)


class TestUrl:
    """A page's public URL."""

    def test_is_its_sites_with_its_slug_and_the_homes_is_the_sites(
        self, api: Api, site: str
    ) -> None:
        home, page = create(api, site, slug="start"), create(api, site, slug="menu")
        base = f"{service_settings.settings().public_url}/s/bakery"
        assert [each["url"] for each in (home, page)] == [base, f"{base}/menu"]
        assert [each["url"] for each in listed(api, site)] == [base, f"{base}/menu"]
        assert update(api, page, slug="food")["url"] == f"{base}/food"
        shown = api.post("/api/projects/update", {"id": site, "slug": "new"})["project"]
        assert shown["url"] == read(api, home)["page"]["url"] == base.replace("bakery", "new")
        assert save(api, page, "x")["url"] == f"{shown['url']}/food"

    def test_is_on_the_sites_own_domain_once_that_is_proven(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        home, page = create(api, site), create(api, site, slug="menu")
        for status in ("pending", "active", "error"):
            unit, row = UnitOfWork(owner.workspace.id), SITES.find(owner.workspace.id, site)
            assert row is not None
            row.domain_binding = domain_request("bread.example", "token")
            row.domain_binding.status = status
            unit.save(row)
            unit.commit()
            urls = [read(api, each)["page"]["url"] for each in (home, page)]
            own = ["https://bread.example", "https://bread.example/menu"]
            assert urls == (own if status == "active" else [home["url"], page["url"]])
            assert api.get("/api/projects/list")["projects"][0]["url"] == urls[0]


def design(size: int, letter: str = "ж") -> dict[str, str]:
    """Return a design system of so many bytes of JSON."""
    width = len(letter.encode())
    return {"a" * (1 + (size - 8) % width): letter * ((size - 8) // width)}


class TestLongDesignSystem:
    """A design system over 1 KB lies beside its page, which nobody can tell but in lists."""

    def test_is_in_every_answer_about_its_page(self, api: Api, site: str) -> None:
        page = create(api, site)
        for size in (1024, 1025, MIB // 16, 1025, 1024):
            wanted = design(size)
            assert len(json.dumps(wanted, ensure_ascii=False, separators=(",", ":")).encode()) == (
                size
            )
            shown = update(api, page, designSystem=wanted)
            assert shown["designSystem"] == wanted
            assert record(read(api, page)["page"]) == shown
            assert save(api, page, "<p>")["designSystem"] == wanted
            assert update(api, page, title="New")["designSystem"] == wanted
        assert update(api, page, designSystem=None)["designSystem"] is None
        assert read(api, page)["page"]["designSystem"] is None

    def test_is_null_with_a_warning_in_the_list(self, api: Api, site: str) -> None:
        short, long = create(api, site), create(api, site)
        update(api, short, designSystem=design(1024))
        update(api, long, designSystem=design(1025))
        data = api.get(f"{LIST}?projectId={site}")
        assert [page["designSystem"] for page in data["pages"]] == [design(1024), None]
        assert data["warnings"] == [
            "designSystem of 1 pages is long and shown as null; get the page."
        ]

    @pytest.mark.parametrize("last", ["shortened", "cleared", "deleted"])
    def test_leaves_no_row_behind(self, last: str, api: Api, site: str) -> None:
        page = create(api, site)
        update(api, page, designSystem=design(5000))
        assert any("#PAGE#DESIGN/" in key for key in everything())
        if last == "deleted":
            delete(api, page)
        else:
            update(api, page, designSystem=None if last == "cleared" else {"a": 1})
        assert not any("#PAGE#DESIGN/" in key for key in everything())

    def test_of_another_moment_than_its_page_is_never_shown(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        update(api, page, designSystem=design(2000, "a"))
        real, rivals = store_pages.fetch, []

        def fetch_torn(keys: Any) -> list[Any]:
            first, apart, *rest = keys
            rows = real([first])
            if not rivals:
                rivals.append(1)
                rivals[:] = [update(api, page, designSystem=design(2000, "b"))]
            return [*rows, *real([apart, *rest])]

        monkeypatch.setattr(store_pages, "fetch", fetch_torn)
        assert record(read(api, page)["page"]) == rivals[0]


STEPS = ["page", "save", "import", "replace", "upload"]
STEPS += ["delete page", "delete file", "delete site"]


class TestQuota:
    """HTML counts against the quota of the plan, as files do."""

    def test_ends_where_the_plan_ends_and_nothing_is_stored(
        self, owner: Owner, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 1000)
        page, other = create(api, site), create(api, site)
        save(api, page, "x" * 700)
        before = everything()
        for path, body in (
            (SAVE, {"id": other["id"], "html": "y" * 301}),
            (SAVE, {"id": page["id"], "html": "y" * 1001}),
            (IMPORT, {"projectId": site, "html": "y" * 301}),
            (UPLOAD, {"name": "a", "content": "eHh4" * 101}),
        ):
            answer = api.refused("POST", path, body)
            assert (answer.status, answer.data["code"]) == (409, "quota_exceeded"), path
            assert "Delete some or upgrade" in answer.data["message"]
        after = {key: row for key, row in everything().items() if "/LIMIT#" not in key}
        assert after == before
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
    def test_what_is_used_is_always_the_sum_of_what_is_there(
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
        there = [row for pk in ("PAGE", "FILE") for row in rows_of(owner, pk)]
        held = sum(int(row.get("html_bytes", row.get("size"))["N"]) for row in there)
        assert files.used_bytes(owner.workspace.id) == held
        for row in rows_of(owner, "SITE"):
            count = int(row.get("page_count", {"N": "0"})["N"])
            assert count == len(listed(api, row["sk"]["S"]))


def rows_of(owner: Owner, noun: str) -> list[Any]:
    """Return a workspace's stored records of a noun."""
    prefix = f"content/W#{owner.workspace.id}#{noun}/"
    return [row for key, row in everything().items() if key.startswith(prefix)]


class TestUpdatePage:
    def test_changes_what_is_named_and_leaves_the_rest(
        self, time: Time, api: Api, site: str
    ) -> None:
        page = save(api, create(api, site, "About"), "<p>")
        time.pass_by(minutes=1)
        after = update(api, page, description="About us")
        moment = time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        changed = {"description": "About us", "version": 3, "updatedAt": moment}
        assert after == record(page) | changed
        assert record(read(api, page)["page"]) == after

    def test_changes_everything_at_once(self, api: Api, site: str) -> None:
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
        after = update(api, page, **fields)
        assert {name: after[name] for name in fields} == fields
        assert record(read(api, page)["page"]) == after

    def test_null_clears_what_is_optional(self, time: Time, api: Api, site: str) -> None:
        create(api, site, "home")
        page = create(api, site, "a")
        time.pass_by(seconds=1)
        create(api, site, "b")
        update(api, page, description="D", designSystem={"a": 1}, sortOrder=-1)
        after = update(api, page, description=None, designSystem=None)
        assert (after["description"], after["designSystem"]) == (None, None)
        assert record(read(api, page)["page"]) == after

    def test_null_does_not_clear_what_a_page_must_have(self, api: Api, site: str) -> None:
        page = create(api, site)
        for field in ("title", "slug", "isHome"):
            refused = api.refused("POST", UPDATE, {"id": page["id"], field: None})
            assert refused.data["message"].startswith("Nothing to change")
        assert record(read(api, page)["page"]) == page

    def test_refuses_an_update_of_nothing(self, api: Api, site: str) -> None:
        page = create(api, site)
        for more in ({}, {"tittle": "x"}, {"version": 5}, {"projectId": "x"}, {"ifVersion": 1}):
            answer = api.refused("POST", UPDATE, {"id": page["id"], **more})
            assert (answer.status, answer.data["code"]) == (400, "validation_error")
            assert "ifVersion" not in answer.data["message"]
        assert record(read(api, page)["page"]) == page

    def test_refuses_html_and_names_the_call_that_takes_it(self, api: Api, site: str) -> None:
        page = create(api, site)
        for html in ("<p>", None, 1):
            body = {"id": page["id"], "title": "x", "html": html}
            error = refused_field(api, UPDATE, body)
            assert error["field"] == "html"
            assert "svc_save_page_html" in error["message"]
        assert record(read(api, page)["page"]) == page

    def test_a_new_slug_frees_the_old_one(self, api: Api, site: str) -> None:
        page = create(api, site, slug="old")
        assert update(api, page, slug="new")["slug"] == "new"
        assert create(api, site, slug="old")["slug"] == "old"
        body = {"projectId": site, "title": "x", "slug": "new"}
        assert api.refused("POST", CREATE, body).data["code"] == "slug_taken"

    def test_its_own_slug_is_fine_and_another_pages_is_not(self, api: Api, site: str) -> None:
        create(api, site, slug="one")
        page = create(api, site, slug="two")
        assert update(api, page, slug="two", title="x")["slug"] == "two"
        answer = api.refused("POST", UPDATE, {"id": page["id"], "slug": "one"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert read(api, page)["page"]["slug"] == "two"
        other = create(api, new_site(api, "Other"), slug="three")
        assert update(api, other, slug="one")["slug"] == "one"

    def test_refuses_values_out_of_bounds(self, api: Api, site: str) -> None:
        page = create(api, site)
        for field, values in {
            "title": ["", " ", "x" * 201, 1],
            "slug": ["", "A", "a_b", "x" * 64],
            "description": ["x" * 501, 1],
            "designSystem": ["{}", [], 1, True],
            "isHome": [False, "true", 0],
            "sortOrder": [1.0, "1", True, 10**12 + 1, -(10**12) - 1],
            "ifVersion": [0, -1, 1.0, "1", True],
        }.items():
            for value in values:
                error = refused_field(api, UPDATE, {"id": page["id"], "title": "x", field: value})
                assert error["field"] == field, value
        assert record(read(api, page)["page"]) == page

    def test_refuses_numbers_for_true(self, api: Api, site: str) -> None:
        page = create(api, site)
        for value in (1, 1.0):
            error = refused_field(api, UPDATE, {"id": page["id"], "isHome": value})
            assert error["field"] == "isHome"

    def test_messages_speak_json(self, api: Api, site: str) -> None:
        page = create(api, site)
        for field, value, expected in (
            ("isHome", False, "expected true"),
            ("designSystem", [], "object"),
        ):
            error = refused_field(api, UPDATE, {"id": page["id"], field: value})
            assert expected in error["message"]

    def test_takes_a_description_of_500_characters(self, api: Api, site: str) -> None:
        page = create(api, site)
        assert update(api, page, description="ё" * 500)["description"] == "ё" * 500

    def test_takes_a_design_system_of_up_to_64_kb_of_json(self, api: Api, site: str) -> None:
        page = create(api, site)
        for letter, width in (("x", 1), ("ё", 2), ("饼", 3), ("🍞", 4)):
            room = 64 * 1024 - len('{"a":""}')
            fits = {"a": letter * (room // width)}
            assert update(api, page, designSystem=fits)["designSystem"] == fits
            assert read(api, page)["page"]["designSystem"] == fits
            body = {"id": page["id"], "designSystem": {"a": letter * (room // width + 1)}}
            error = refused_field(api, UPDATE, body, 413)
            assert error["field"] == "designSystem"
            assert "65,536" in error["message"]

    def test_keeps_any_json_object_as_it_is(self, api: Api, site: str) -> None:
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

    def test_the_home_moves_so_that_there_is_always_one(self, api: Api, site: str) -> None:
        pages = [create(api, site, f"Page {number}") for number in range(3)]
        for number in (2, 1, 1, 0):
            assert update(api, pages[number], isHome=True)["isHome"] is True
            assert homes(api, site) == [f"Page {number}"]
            assert titles(api, site)[0] == f"Page {number}"

    def test_touches_no_other_page_when_the_home_or_the_order_moves(
        self, time: Time, api: Api, site: str
    ) -> None:
        first, second, third = (create(api, site, slug=slug) for slug in ("a", "b", "c"))
        time.pass_by(seconds=1)
        assert update(api, second, isHome=True)["url"] == first["url"]
        update(api, third, sortOrder=-1)
        after = record(read(api, first)["page"])
        assert after == first | {"isHome": False, "url": f"{first['url']}/a"}
        assert save(api, first, "x", ifVersion=1)["version"] == 2

    def test_updates_only_the_version_named(self, api: Api, site: str) -> None:
        page = create(api, site)
        assert update(api, page, title="two", ifVersion=1)["version"] == 2
        for version in (1, 3, 2**40):
            body = {"id": page["id"], "title": "other", "ifVersion": version}
            answer = api.refused("POST", UPDATE, body)
            assert (answer.status, answer.data["code"]) == (409, "version_conflict")
            assert answer.data["version"] == 2
        assert read(api, page)["page"]["title"] == "two"
        assert update(api, page, title="three", ifVersion=2)["version"] == 3

    def test_a_rival_between_reading_and_committing_is_a_conflict(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retry, "sleep", lambda _: None)
        page = create(api, site)
        commit, rivals = UnitOfWork.commit, []

        def late(unit: UnitOfWork, *rest: Any) -> None:
            if not rivals:
                rivals.append(1)
                save(api, page, "rival")
            commit(unit, *rest)

        monkeypatch.setattr(UnitOfWork, "commit", late)
        body = {"id": page["id"], "title": "x", "ifVersion": 1}
        assert api.refused("POST", UPDATE, body).data["code"] == "version_conflict"
        assert read(api, page)["page"]["html"] == "rival"

    def test_moving_the_home_leaves_other_sites_alone(self, api: Api, site: str) -> None:
        other = new_site(api, "Other")
        create(api, other, "Other home")
        create(api, site)
        update(api, create(api, site, "New home"), isHome=True)
        assert homes(api, other) == ["Other home"]
        assert homes(api, site) == ["New home"]

    def test_sort_orders_reach_from_minus_to_plus_a_million_million(
        self, api: Api, site: str
    ) -> None:
        create(api, site, "home")
        update(api, create(api, site, "last"), sortOrder=10**12)
        update(api, create(api, site, "first"), sortOrder=-(10**12))
        assert titles(api, site) == ["home", "first", "last"]

    def test_an_unknown_id_is_not_found(self, api: Api) -> None:
        answer = api.refused("POST", UPDATE, {"id": new_id(), "title": "x"})
        assert (answer.status, answer.data["code"]) == (404, "not_found")

    def test_neither_reads_nor_returns_the_html(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        saved = save(api, page, "<p>Ёж</p>")
        for call in ("get", "put", "delete"):
            monkeypatch.setattr(object_store.FolderStore, call, Killed.now)
        after = update(api, page, title="x", isHome=True, sortOrder=1)
        assert "html" not in after
        assert after["htmlBytes"] == saved["htmlBytes"] == 11

    def test_leaves_one_audit_record_with_the_names_of_the_fields(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        create(api, site)
        page = create(api, site)
        update(api, page, isHome=True, sortOrder=1)
        event = audit.latest(owner.workspace.id, limit=1)[0]
        assert (event.operation, event.resources[0]) == ("update_page", f"page:{page['id']}")
        assert event.fields == ["isHome", "sortOrder"]


class TestDeletePage:
    def test_asks_for_confirmation_and_says_about_what(self, api: Api, site: str) -> None:
        home = create(api, site)
        page = create(api, site, "О нас", slug="about")
        answer = api.refused("POST", DELETE, {"id": home["id"]})
        assert (answer.status, answer.data["code"]) == (409, "conflict"), "before it asks"
        for more in ({}, {"confirm": False}):
            answer = api.refused("POST", DELETE, {"id": page["id"], **more})
            assert (answer.status, answer.data["code"]) == (400, "confirmation_required")
            assert answer.data["page"] == {"id": page["id"], "title": "О нас", "slug": "about"}
            assert "confirm: true" in answer.data["message"]
        assert len(listed(api, site)) == 2

    def test_deletes_only_the_version_named(self, api: Api, site: str) -> None:
        create(api, site)
        page = create(api, site)
        save(api, page, "x")
        for more in ({"confirm": True}, {"dryRun": True}, {}):
            body = {"id": page["id"], "ifVersion": 1, **more}
            answer = api.refused("POST", DELETE, body)
            assert (answer.status, answer.data["code"]) == (409, "version_conflict"), more
        assert len(listed(api, site)) == 2
        body = {"id": page["id"], "ifVersion": 2, "confirm": True}
        assert api.post(DELETE, body)["deleted"] is True

    def test_takes_nothing_but_true_for_true(self, api: Api, site: str) -> None:
        page = create(api, site)
        for value in (1, "true", "yes"):
            body = {"id": page["id"], "confirm": value}
            assert refused_field(api, DELETE, body)["field"] == "confirm"
        assert len(listed(api, site)) == 1

    def test_deletes_the_page_and_its_html_at_once(self, owner: Owner, api: Api, site: str) -> None:
        kept = save(api, create(api, site, "Kept"), "kept")
        page = create(api, site, "Gone")
        save(api, page, "gone")
        assert delete(api, page) == {"status": True, "id": page["id"], "deleted": True}
        assert titles(api, site) == ["Kept"]
        assert api.refused("GET", f"/api/pages/{page['id']}").status == 404
        assert read(api, kept)["page"] == kept
        assert objects(owner) == [b"kept"]
        assert counters.read(owner.workspace.id, "PAGE") == {"total": 1}

    def test_a_second_deletion_is_not_found(self, api: Api, site: str) -> None:
        page = create(api, site)
        delete(api, page)
        for more in ({"confirm": True}, {}, {"dryRun": True}):
            answer = api.refused("POST", DELETE, {"id": page["id"], **more})
            assert (answer.status, answer.data["code"]) == (404, "not_found")

    def test_frees_its_slug(self, api: Api, site: str) -> None:
        create(api, site)
        page = create(api, site, slug="about")
        delete(api, page)
        assert create(api, site, slug="about")["slug"] == "about"

    def test_a_dry_run_needs_no_confirmation_and_changes_nothing(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        create(api, site)
        page = create(api, site)
        save(api, page, "html")
        before = everything()
        for more in ({}, {"confirm": True}, {"confirm": False}):
            data = api.post(DELETE, {"id": page["id"], "dryRun": True, **more})
            assert data == {"status": True, "id": page["id"], "deleted": False}
        assert everything() == before
        assert objects(owner) == [b"html"]

    def test_refuses_the_home_page_while_there_are_others(self, api: Api, site: str) -> None:
        home, other = create(api, site, "Home"), create(api, site, "Other")
        for more in ({"confirm": True}, {"dryRun": True}, {}):
            answer = api.refused("POST", DELETE, {"id": home["id"], **more})
            assert (answer.status, answer.data["code"]) == (409, "conflict")
            assert "isHome" in answer.data["message"]
        update(api, other, isHome=True)
        delete(api, home)
        assert homes(api, site) == ["Other"]

    def test_the_last_page_goes_even_though_it_is_home(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        delete(api, create(api, site))
        assert listed(api, site) == []
        assert counters.read(owner.workspace.id, "PAGE") == {}
        assert create(api, site, "Next")["isHome"] is True

    def test_another_sites_pages_do_not_keep_the_last_one(self, api: Api, site: str) -> None:
        create(api, new_site(api, "Other"))
        assert delete(api, create(api, site))["deleted"] is True

    def test_the_audit_record_names_the_page_even_if_it_was_the_home(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        page = create(api, site)
        delete(api, page)
        event = audit.latest(owner.workspace.id, limit=1)[0]
        assert (event.operation, event.resources[0]) == ("delete_page", f"page:{page['id']}")

    def test_leaves_one_audit_record(self, owner: Owner, api: Api, site: str) -> None:
        create(api, site)
        page = create(api, site)
        delete(api, page)
        event = audit.latest(owner.workspace.id, limit=1)[0]
        assert (event.operation, event.resources[0]) == ("delete_page", f"page:{page['id']}")

    def test_html_that_could_not_be_removed_is_removed_by_the_runner(
        self,
        time: Time,
        owner: Owner,
        api: Api,
        site: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        page = create(api, site)
        save(api, page, "html")

        def fail(*_: object) -> None:
            raise OSError("no luck")

        with monkeypatch.context() as patched:
            patched.setattr(object_store.FolderStore, "delete_under", fail)
            assert delete(api, page)["deleted"] is True
            assert run_jobs()["page-purge"] == 0
        assert objects(owner) == [b"html"]
        assert run_jobs()["page-purge"] == 0
        time.pass_by(minutes=1.1)
        assert run_jobs()["page-purge"] == 1
        assert objects(owner) == []
        assert run_jobs()["page-purge"] == 0


class TestAnotherWorkspacesPages:
    def test_answer_with_the_bytes_of_an_id_that_never_existed(
        self, api: Api, site: str, new_owner: Any
    ) -> None:
        theirs = new_owner().api()
        their_site = new_site(theirs)
        page = save(theirs, create(theirs, their_site), "secret")
        for method, path, body in (
            ("GET", "/api/pages/{}", None),
            ("GET", "/api/pages/{}?offset=0&maxBytes=1", None),
            ("POST", SAVE, {"html": "x"}),
            ("POST", SAVE, {"html": "x", "ifVersion": 1}),
            ("POST", SAVE, {"edits": [{"find": "s", "replace": "x"}]}),
            ("POST", UPDATE, {"title": "x"}),
            ("POST", UPDATE, {"title": "x", "ifVersion": 9}),
            ("POST", UPDATE, {"isHome": True}),
            ("POST", DELETE, {}),
            ("POST", DELETE, {"confirm": True}),
            ("POST", DELETE, {"dryRun": True}),
        ):
            foreign, never = (
                api.refused(method, path.format(value), body and {"id": value, **body})
                for value in (page["id"], new_id())
            )
            assert foreign.status == never.status
            assert without_request_id(foreign.body) == without_request_id(never.body)
            assert b"secret" not in foreign.body
        assert read(theirs, page)["page"] == page

    def test_nor_can_pages_be_listed_or_made_in_another_workspaces_site(
        self, api: Api, new_owner: Any
    ) -> None:
        theirs = new_owner().api()
        their_site = new_site(theirs)
        for foreign, never in (
            [api.refused("GET", f"{LIST}?projectId={id_}") for id_ in (their_site, new_id())],
            [
                api.refused("POST", CREATE, {"projectId": id_, "title": "x"})
                for id_ in (their_site, new_id())
            ],
        ):
            assert foreign.status == never.status == 404
            assert without_request_id(foreign.body) == without_request_id(never.body)
            assert json.loads(foreign.body)["data"]["requestId"]
        assert listed(theirs, their_site) == []


class TestCountersOfPages:
    def test_equal_what_the_lists_show_after_many_changes(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        other = new_site(api, "Other")
        pages = [create(api, site) for _ in range(4)]
        create(api, other)
        update(api, pages[1], isHome=True)
        save(api, pages[2], "x")
        delete(api, pages[0])
        api.refused("POST", DELETE, {"id": pages[1]["id"], "confirm": True})
        api.post(DELETE, {"id": pages[2]["id"], "dryRun": True})
        shown = len(listed(api, site)) + len(listed(api, other))
        assert shown == 4
        assert counters.read(owner.workspace.id, "PAGE") == {"total": shown}
