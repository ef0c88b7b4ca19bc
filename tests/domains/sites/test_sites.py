"""Lists, creation, counters and suspension of sites."""

import re
from typing import Any

import pytest

from chalicelib.core.settings import settings
from chalicelib.engine import audit
from chalicelib.engine.listing import counters
from tests.conftest import Api, Owner, Time, call_operator
from tests.factories.sites import (
    CREATE,
    LIST,
    create,
    delete,
    list_sites,
    refused_field,
    total,
    update,
)
from tests.support.warned import warned

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def titles(api: Api, **query: Any) -> list[str]:
    return [site["title"] for site in list_sites(api, **query)]


class TestListSites:
    def test_the_ten_newest_come_first_by_default(self, time: Time, api: Api) -> None:
        for number in range(12):
            create(api, f"Site {number}")
            time.pass_by(seconds=1)
        data = api.get(LIST)
        assert [site["title"] for site in data["projects"]] == [
            f"Site {number}" for number in range(11, 1, -1)
        ]
        assert data["pagination"] == {"total": 12, "page": 1, "size": 10, "limit": 10}

    def test_an_empty_filter_or_sort_counts_as_omitted(self, api: Api) -> None:
        site = create(api)
        assert api.get(f"{LIST}?status=&sortBy=&sortDir=&search=&size=5.0")["projects"] == [site]

    def test_doubled_spaces_do_not_matter_in_a_search(self, api: Api) -> None:
        doubled = create(api, "Rye   bread  and buns", slug="a")
        single = create(api, "Rye bread and buns", slug="b")
        long = create(api, "饼" * 170 + "  rye \u00a0 bread", slug="c")
        create(api, "Bread and barley", slug="d")
        for search in ("rye bread", "RYE  bread", "e   b", " rye\tbread "):
            assert {s["id"] for s in list_sites(api, search=search)} == {
                site["id"] for site in (doubled, single, long)
            }
        assert list_sites(api, search="bread  and barley")[0]["slug"] == "d"

    def test_the_list_filters_by_status(self, api: Api) -> None:
        active, inactive, suspended = (create(api, title) for title in ("A", "I", "S"))
        update(api, inactive, status="inactive")
        call_operator("suspend_site", id=suspended["id"])
        for status, site in (
            ("active", active),
            ("inactive", inactive),
            ("suspended", suspended),
        ):
            assert [s["id"] for s in list_sites(api, status=status)] == [site["id"]]
            assert total(api, status=status) == 1
        assert total(api) == 3

    def test_the_search_finds_part_of_a_title_or_slug_in_any_case(self, api: Api) -> None:
        site = create(api, "Пекарня «Ёлочка» No. 1", slug="pine-bread")
        create(api, "Аптека", slug="chemist")
        for search in (
            *("Пекарня", "ПЕКАРНЯ", "екарн", "  пекарня  "),
            *("ёлочка", "ЕЛОЧКА", "е\u0308лочка", "«ёлочка» no"),
            *("pine-bread", "INE-BR", "ｎｏ. 1"),
        ):
            assert list_sites(api, search=search) == [site], search
            assert total(api, search=search) == 1

    def test_search_status_and_paging_work_together(self, time: Time, api: Api) -> None:
        for number in range(6):
            site = create(api, f"{'Хлеб' if number % 2 else 'Сыр'} {number}")
            if number == 5:
                update(api, site, status="inactive")
            time.pass_by(seconds=1)
        query = {"search": "ХЛЕБ", "status": "active", "size": 1}
        assert titles(api, **query) == ["Хлеб 3"]
        assert titles(api, **query, page=2) == ["Хлеб 1"]
        assert titles(api, **query, page=3) == []
        assert total(api, **query, page=3) == 2

    def test_each_sort_key_works_in_both_directions(self, time: Time, api: Api) -> None:
        sites = []
        for title in ("Арка", "ёлка", "Дом"):
            sites.append(create(api, title))
            time.pass_by(seconds=1)
        update(api, sites[0], description="touched")
        for sort, ascending in (
            ({}, ["Арка", "ёлка", "Дом"]),
            ({"sortBy": "createdAt"}, ["Арка", "ёлка", "Дом"]),
            ({"sortBy": "updatedAt"}, ["ёлка", "Дом", "Арка"]),
            ({"sortBy": "title"}, ["Арка", "Дом", "ёлка"]),
        ):
            assert titles(api, **sort, sortDir="asc") == ascending
            assert titles(api, **sort, sortDir="desc") == ascending[::-1]
            assert titles(api, **sort) == ascending[::-1]

    def test_titles_compare_case_folded_with_yo_as_ye(self, api: Api) -> None:
        expected = ["apple", "Banana", "cherry", "елка 1", "Ёлка 2", "елка 3", "ЖУК"]
        for title in reversed(expected):
            create(api, title)
        assert titles(api, sortBy="title", sortDir="asc") == expected

    def test_titles_compare_to_their_end(self, time: Time, api: Api) -> None:
        expected = ["饼" * 199 + end for end in "abc"]
        for title in reversed(expected):
            create(api, title)
            time.pass_by(seconds=1)
        assert titles(api, sortBy="title", sortDir="asc") == expected


class TestCreateSite:
    def test_create_returns_the_whole_record(self, time: Time, api: Api) -> None:
        site = create(api, "Пекарня", description="Хлеб и торты", slug="bread-1")
        assert len(site.pop("id")) in range(1, 65)
        moment = time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        assert site == {
            "title": "Пекарня",
            "description": "Хлеб и торты",
            "slug": "bread-1",
            "status": "active",
            "url": f"{settings().public_url}/s/bread-1",
            "domain": None,
            "statsEnabled": True,
            "showsProducts": False,
            "productsUrl": None,
            "externalId": None,
            "metadata": {},
            "createdAt": moment,
            "updatedAt": moment,
        }

    def test_the_slug_is_made_from_the_title(self, api: Api) -> None:
        for title, slug in (
            ("Пекарня №1", "pekarnya-no1"),
            ("!!!", "site"),
        ):
            assert create(api, title)["slug"] == slug

    def test_generated_slugs_of_equal_titles_differ(self, api: Api) -> None:
        slugs = [create(api, "Пекарня")["slug"] for _ in range(8)]
        assert slugs[:3] == ["pekarnya", "pekarnya-2", "pekarnya-3"]
        assert len(set(slugs)) == 8
        assert all(SLUG.fullmatch(slug) for slug in slugs)

    def test_a_reserved_slug_is_refused(self, api: Api) -> None:
        for slug in ("api", "blog", "admin", "www"):
            error = refused_field(api, CREATE, {"title": "x", "slug": slug})
            assert (error["field"], error["key"]) == ("slug", "reserved")
        assert total(api) == 0

    def test_a_generated_slug_is_never_reserved(self, api: Api) -> None:
        for title in ("API", "Blog", "admin!", "WWW"):
            response = api.post(CREATE, {"title": title})
            expected = title.lower().rstrip("!")
            assert response["project"]["slug"] == f"{expected}-2"
            facts = {"requested": expected, "slug": f"{expected}-2"}
            assert warned(response) == [{"code": "slug_changed", **facts}]

    def test_a_slug_taken_in_another_workspace_is_refused(self, api: Api, new_owner: Any) -> None:
        create(new_owner().api(), slug="bakery")
        answer = api.call_refused("POST", CREATE, {"title": "Other", "slug": "bakery"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert create(api, "Bakery")["slug"] == "bakery-2"

    def test_all_invalid_fields_are_reported_together(self, api: Api) -> None:
        answer = api.call_refused("POST", CREATE, {"title": "", "slug": "A B", "description": 1})
        assert {error["field"] for error in answer.data["errors"]} == {
            "title",
            "slug",
            "description",
        }


class TestCountersOfSites:
    def test_counters_match_the_lists_after_many_changes(self, owner: Owner, api: Api) -> None:
        sites = [create(api, f"Site {number}") for number in range(6)]
        update(api, sites[0], status="inactive")
        update(api, sites[1], status="inactive")
        update(api, sites[1], status="active", slug="back")
        call_operator("suspend_site", id=sites[2]["id"])
        call_operator("suspend_site", id=sites[3]["id"])
        call_operator("resume_site", id=sites[3]["id"])
        delete(api, sites[4])
        delete(api, sites[0], dryRun=True)
        counts_by_status = {
            f"status:{status}": total(api, status=status)
            for status in ("active", "inactive", "suspended")
        }
        assert counts_by_status == {"status:active": 3, "status:inactive": 1, "status:suspended": 1}
        expected = {"total": total(api), **counts_by_status}
        assert counters.read(owner.workspace.id, noun="SITE") == expected


class TestSuspension:
    @pytest.mark.parametrize("status", ["active", "inactive"])
    def test_resuming_restores_the_status_before_the_suspension(
        self, status: str, api: Api
    ) -> None:
        site = create(api)
        update(api, site, status=status)
        call_operator("suspend_site", id=site["id"])
        call_operator("suspend_site", id=site["id"])
        assert list_sites(api)[0]["status"] == "suspended"
        call_operator("resume_site", id=site["id"])
        assert list_sites(api)[0]["status"] == status

    def test_resuming_a_site_that_is_not_suspended_changes_nothing(
        self, time: Time, api: Api
    ) -> None:
        site = create(api)
        time.pass_by(hours=1)
        call_operator("resume_site", id=site["id"])
        assert list_sites(api) == [site]

    def test_a_suspension_is_audited_as_the_operators(self, owner: Owner, api: Api) -> None:
        site = create(api)
        call_operator("suspend_site", id=site["id"])
        record = audit.latest(owner.workspace.id, limit=1)[0]
        assert (record.operation, record.actor) == ("suspend_site", "operator")
        assert record.resources[0] == f"site:{site['id']}"
