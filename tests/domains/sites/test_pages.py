"""Reading and creation of pages, and their URLs."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.application import invoke
from chalicelib.core import settings as service_settings
from chalicelib.core.ids import new_id
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.domains.sites.store.sites import SITES, domain_request
from chalicelib.engine.unit import UnitOfWork, split_batches
from chalicelib.gateways import object_store
from chalicelib.lib import slugs
from tests.conftest import Api, Owner, Time
from tests.factories.pages import (
    CREATE,
    DELETE,
    LIST,
    SAVE,
    UPDATE,
    create,
    homes,
    list_pages,
    new_site,
    read,
    record,
    refused_field,
    save,
    titles,
    update,
)
from tests.support.effort import examples
from tests.support.warned import warned

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def drop_request_id(body: bytes) -> bytes:
    return re.sub(rb'"requestId":"[^"]*"', b'"requestId":""', body)


class TestListPages:
    def test_a_new_site_has_no_pages(self, api: Api, site: str) -> None:
        data = api.get(f"{LIST}?projectId={site}")
        assert (data["pages"], data["total"]) == ([], 0)

    def test_the_list_shows_pages_without_html_but_with_its_size(self, api: Api, site: str) -> None:
        page = create(api, site, "Главная")
        saved = save(api, page, "<p>Ёж</p>")
        (listed_page,) = list_pages(api, site)
        assert listed_page == record(saved)
        assert listed_page["htmlBytes"] == 11

    def test_the_home_comes_first_then_sort_order_then_creation(
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

    def test_zero_is_a_valid_sort_order(self, time: Time, api: Api, site: str) -> None:
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

    def test_a_listed_sort_order_can_be_sent_back(self, api: Api, site: str) -> None:
        create(api, site, "home")
        one, two = create(api, site, "one"), create(api, site, "two")
        update(api, one, sortOrder=two["sortOrder"])
        update(api, two, sortOrder=one["sortOrder"])
        assert titles(api, site) == ["home", "two", "one"]

    def test_all_pages_of_a_large_site_are_returned(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        for batch in split_batches(range(90), 45):
            unit = UnitOfWork(owner.workspace.id, "seed")
            for _ in batch:
                slug = new_id().lower()
                unit.create(PAGES.new(owner.workspace.id, project_id=site, title="Page", slug=slug))
            unit.commit()
        new_ids = {create(api, site)["id"] for _ in range(11)}
        listed_ids = [page["id"] for page in list_pages(api, site)]
        assert len(listed_ids) == len(set(listed_ids)) == 101
        assert new_ids <= set(listed_ids)

    def test_large_design_systems_do_not_make_the_list_too_large(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(invoke, "MAX_ANSWER_BYTES", invoke.MAX_ANSWER_BYTES // 20)
        for _ in range(5):
            update(api, create(api, site), designSystem={"a": "x" * 60_000})
        assert len(list_pages(api, site)) == 5

    def test_the_list_shows_pages_of_one_site_only(self, api: Api, site: str) -> None:
        other = new_site(api, "Other")
        create(api, site, "Mine")
        create(api, other, "Theirs")
        assert titles(api, site) == ["Mine"]
        assert titles(api, other) == ["Theirs"]


class TestGetPage:
    def test_get_returns_the_whole_record(self, time: Time, api: Api, site: str) -> None:
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
                "sections": None,
                "designSystem": None,
                "designSystemTruncated": False,
                "description": None,
                "isHome": True,
                "sortOrder": 2**20,
                "url": f"{service_settings.settings().public_url}/s/bakery",
                "htmlBytes": 11,
                "externalId": None,
                "metadata": {},
                "version": 2,
                "createdAt": moment,
                "updatedAt": moment,
            },
            "htmlBytes": 11,
            "nextOffset": None,
        }

    def test_a_part_names_the_start_of_the_next_one(self, api: Api, site: str) -> None:
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
            ({"offset": 10**9, "maxBytes": 1}, "", None),
        ):
            data = read(api, page, **query)
            assert (data["page"]["html"], data["nextOffset"]) == (html, next_offset), query
            assert data["htmlBytes"] == 10

    def test_a_part_never_splits_a_character(self, api: Api, site: str) -> None:
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
    def test_all_parts_together_are_the_whole_html(
        self, html: str, size: int, api: Api, site: str
    ) -> None:
        page = (list_pages(api, site) or [create(api, site)])[0]
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

    def test_long_response_has_a_warning(self, api: Api, site: str) -> None:
        page = create(api, site)
        save(api, page, "x" * 100_000)
        data = read(api, page)
        assert len(data["page"]["html"]) == 100_000
        assert warned(data) == [{"code": "large_response", "bytes": 100_000}]
        assert "warnings" not in read(api, page, maxBytes=1000)

    def test_the_query_cannot_override_the_page_id_in_the_path(self, api: Api, site: str) -> None:
        one, two = create(api, site, "One"), create(api, site, "Two")
        assert read(api, one, id=two["id"])["page"]["title"] == "One"

    def test_an_object_that_is_gone_after_a_save_is_read_again_as_the_newer_html(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        save(api, page, "old")
        real = object_store.FolderStore.get
        saved = []

        def get(store: object_store.FolderStore, key: str) -> bytes | None:
            if not saved:
                saved.append(save(api, page, "new"))
                store.delete(key)
            return real(store, key)

        monkeypatch.setattr(object_store.FolderStore, "get", get)
        data = read(api, page)
        assert data["page"] == saved[0]
        assert data["page"]["html"] == "new"


class TestCreatePage:
    def test_create_returns_the_whole_record(self, api: Api, site: str) -> None:
        page = create(api, site, "  О нас ", slug="about")
        assert page == record(read(api, page)["page"])
        assert page["url"].startswith("http")
        assert {name: page[name] for name in page if not name.endswith(("At", "id"))} == {
            "projectId": site,
            "title": "О нас",
            "slug": "about",
            "url": page["url"],
            "designSystem": None,
            "designSystemTruncated": False,
            "description": None,
            "isHome": True,
            "sortOrder": 2**20,
            "htmlBytes": 0,
            "externalId": None,
            "metadata": {},
            "version": 1,
        }

    def test_the_first_page_is_the_home_and_later_ones_are_not(self, api: Api, site: str) -> None:
        assert [create(api, site)["isHome"] for _ in range(3)] == [True, False, False]
        assert len(homes(api, site)) == 1

    @pytest.mark.parametrize("word", sorted(slugs.RESERVED))
    def test_words_reserved_for_the_platform_are_allowed_as_slugs(
        self, word: str, api: Api, site: str
    ) -> None:
        response = api.post(CREATE, {"projectId": site, "title": word})
        assert (response["page"]["slug"], response.get("warnings")) == (word, None)
        on_other_site = api.post(CREATE, {"projectId": new_site(api), "title": "x", "slug": word})
        assert (on_other_site["page"]["slug"], on_other_site.get("warnings")) == (word, None)

    def test_a_slug_that_differs_from_the_titles_is_a_warning(self, api: Api, site: str) -> None:
        first = api.post(CREATE, {"projectId": site, "title": "Blog"})
        second = api.post(CREATE, {"projectId": site, "title": "Blog"})
        assert "warnings" not in first
        assert second["page"]["slug"] == "blog-2"
        facts = {"requested": "blog", "slug": "blog-2"}
        assert warned(second) == [{"code": "slug_changed", **facts}]

    def test_a_slug_is_unique_within_its_site(self, api: Api, site: str) -> None:
        create(api, site, slug="about")
        answer = api.call_refused(
            "POST", CREATE, {"projectId": site, "title": "x", "slug": "about"}
        )
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert "about" in answer.data["message"]
        assert len(list_pages(api, site)) == 1
        assert create(api, new_site(api, "Other"), slug="about")["slug"] == "about"

    def test_a_version_is_refused(self, api: Api, site: str) -> None:
        body = {"projectId": site, "title": "x", "ifVersion": 1}
        assert refused_field(api, CREATE, body)["field"] == "ifVersion"
        assert list_pages(api, site) == []


class TestUrl:
    """A page's public URL."""

    def test_url_is_the_sites_url_with_the_slug(self, api: Api, site: str) -> None:
        home, page = create(api, site, slug="start"), create(api, site, slug="menu")
        base = f"{service_settings.settings().public_url}/s/bakery"
        assert [home["url"], page["url"]] == [base, f"{base}/menu"]
        assert [listed_page["url"] for listed_page in list_pages(api, site)] == [
            base,
            f"{base}/menu",
        ]
        assert update(api, page, slug="food")["url"] == f"{base}/food"
        new_url = api.post("/api/projects/update", {"id": site, "slug": "new"})["project"]["url"]
        assert new_url == read(api, home)["page"]["url"] == base.replace("bakery", "new")
        assert save(api, page, "x")["url"] == f"{new_url}/food"

    def test_the_url_is_on_the_custom_domain_while_it_is_active(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        home, page = create(api, site), create(api, site, slug="menu")
        for status in ("pending", "verified", "certificate", "active", "failed"):
            unit, row = (
                UnitOfWork(owner.workspace.id),
                SITES.find(owner.workspace.id, record_id=site),
            )
            assert row is not None
            row.domain_binding = domain_request("bread.example", token="token", apex=True)
            row.domain_binding.become(status)
            unit.save(row)
            unit.commit()
            urls = [read(api, url_page)["page"]["url"] for url_page in (home, page)]
            domain_urls = ["https://bread.example", "https://bread.example/menu"]
            assert urls == (domain_urls if status == "active" else [home["url"], page["url"]])
            assert api.get("/api/projects/list")["projects"][0]["url"] == urls[0]


class TestAnotherWorkspacesPages:
    def test_foreign_id_gets_the_same_bytes_as_an_unknown_id(
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
                api.call_refused(method, path.format(value), body and {"id": value, **body})
                for value in (page["id"], new_id())
            )
            assert foreign.status == never.status
            assert drop_request_id(foreign.body) == drop_request_id(never.body)
            assert b"secret" not in foreign.body
        assert read(theirs, page)["page"] == page
