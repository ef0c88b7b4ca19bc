"""Sites: listed, created, counted and suspended."""

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.ids import new_id
from chalicelib.core.settings import settings
from chalicelib.engine import audit
from chalicelib.engine.listing import counters
from tests.conftest import Api, Owner, Time, all_rows, as_operator
from tests.factories.sites import (
    CREATE,
    DELETE,
    LIST,
    UPDATE,
    create,
    delete,
    listed,
    refused_field,
    total,
    update,
)

SLUG = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def titles(api: Api, **query: Any) -> list[str]:
    return [site["title"] for site in listed(api, **query)]


def without_request_id(body: bytes) -> bytes:
    return re.sub(rb'"requestId":"[^"]*"', b'"requestId":""', body)


class TestListSites:
    def test_a_new_workspace_has_no_sites(self, api: Api) -> None:
        data = api.get(LIST)
        assert data["projects"] == []
        assert data["pagination"] == {"total": 0, "page": 1, "limit": 10}

    def test_the_ten_newest_come_first_by_default(self, time: Time, api: Api) -> None:
        for number in range(12):
            create(api, f"Site {number}")
            time.pass_by(seconds=1)
        data = api.get(LIST)
        assert [site["title"] for site in data["projects"]] == [
            f"Site {number}" for number in range(11, 1, -1)
        ]
        assert data["pagination"] == {"total": 12, "page": 1, "limit": 10}

    def test_a_listed_site_equals_the_created_record(self, api: Api) -> None:
        site = create(api, description="Bread", slug="bread")
        assert listed(api) == [site]

    def test_pages_have_no_gaps_or_repeats(self, api: Api) -> None:
        made = {create(api, f"Site {number}")["id"] for number in range(7)}
        for size in (1, 3, 7, 8, 100):
            pages = -(-7 // size)
            found = [
                [site["id"] for site in listed(api, size=size, page=page)]
                for page in range(1, pages + 1)
            ]
            assert [len(page) for page in found[:-1]] == [size] * (pages - 1)
            flat = [site for page in found for site in page]
            assert len(flat) == 7
            assert set(flat) == made

    def test_a_page_beyond_the_end_is_empty_with_the_right_total(self, api: Api) -> None:
        create(api, "One")
        create(api, "Two")
        for page in (2, 1000, 10**9):
            data = api.get(f"{LIST}?page={page}&size=5")
            assert data["projects"] == []
            assert data["pagination"] == {"total": 2, "page": page, "limit": 5}

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("page", ["0", "-1", "1.05", "1.5", "one", "", "1e3", "9" * 30]),
            ("size", ["0", "-1", "101", "101.0", "ten", "", "true"]),
            ("status", ["all", "ACTIVE", "deleted"]),
            ("sortBy", ["name", "created_at", "TITLE"]),
            ("sortDir", ["up", "ASC"]),
            ("search", ["x" * 201]),
        ],
    )
    def test_values_out_of_range_are_refused(self, field: str, values: list[str], api: Api) -> None:
        for value in values:
            answer = api.refused("GET", f"{LIST}?{urlencode({field: value})}")
            assert (answer.status, answer.data["code"]) == (400, "validation_error")
            (error,) = answer.data["errors"]
            assert error["field"] == field
            assert "received" in error["message"]

    def test_an_empty_filter_or_sort_counts_as_omitted(self, api: Api) -> None:
        site = create(api)
        assert api.get(f"{LIST}?status=&sortBy=&sortDir=&search=&size=5.0")["projects"] == [site]

    def test_page_sizes_from_1_to_100_are_accepted(self, api: Api) -> None:
        for size in (1, 100):
            pagination = api.get(f"{LIST}?size={size}")["pagination"]
            assert pagination == {"total": 0, "page": 1, "limit": size}

    def test_unknown_parameters_are_ignored_with_a_warning(self, api: Api) -> None:
        site = create(api)
        data = api.get(f"{LIST}?workspaceId=other&utm=x")
        assert data["projects"] == [site]
        assert ["workspaceId" in data["warnings"][0], "utm" in data["warnings"][1]] == [True, True]

    def test_doubled_spaces_do_not_matter_in_a_search(self, api: Api) -> None:
        doubled = create(api, "Rye   bread  and buns", slug="a")
        single = create(api, "Rye bread and buns", slug="b")
        long = create(api, "饼" * 170 + "  rye \u00a0 bread", slug="c")
        create(api, "Bread and rye", slug="d")
        for search in ("rye bread", "RYE  bread", "e   b", " rye\tbread "):
            assert {s["id"] for s in listed(api, search=search)} == {
                site["id"] for site in (doubled, single, long)
            }
        assert listed(api, search="bread  and rye")[0]["slug"] == "d"

    def test_the_list_filters_by_status(self, api: Api) -> None:
        active, inactive, suspended = (create(api, title) for title in ("A", "I", "S"))
        update(api, inactive, status="inactive")
        as_operator("suspend_site", id=suspended["id"])
        for status, site in (
            ("active", active),
            ("inactive", inactive),
            ("suspended", suspended),
        ):
            assert [s["id"] for s in listed(api, status=status)] == [site["id"]]
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
            assert listed(api, search=search) == [site], search
            assert total(api, search=search) == 1

    def test_the_search_finds_nothing_if_no_title_or_slug_matches(self, api: Api) -> None:
        create(api, "Пекарня", slug="bakery", description="Хлеб")
        for search in ("пекарня bakery", "%", "*", "_", ".*", "active", "Хлеб", "x" * 200):
            assert listed(api, search=search) == [], search
            assert total(api, search=search) == 0

    def test_the_search_folds_case_as_unicode_does(self, api: Api) -> None:
        create(api, "Café Hauptstraße")
        for search in ("straße", "STRASSE", "CAFÉ", "cafe\u0301"):
            assert total(api, search=search) == 1, search

    def test_a_blank_search_counts_as_omitted(self, api: Api) -> None:
        create(api)
        assert total(api, search="  ") == 1

    def test_a_search_text_does_not_match_across_title_and_slug(self, api: Api) -> None:
        create(api, "Bread", slug="cheese")
        assert total(api, search="bread\ncheese") == 0

    def test_the_search_finds_text_beyond_the_512_bytes_in_the_index(self, api: Api) -> None:
        site = create(api, "饼" * 199 + "尾", slug="far-end")
        create(api, "饼" * 200, slug="other")
        for search in ("尾", "饼尾", "far-end", "END"):
            assert listed(api, search=search) == [site], search
        assert listed(api, search="头") == []
        assert total(api, search="饼") == 2

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
        made = []
        for title in ("Арка", "ёлка", "Дом"):
            made.append(create(api, title))
            time.pass_by(seconds=1)
        update(api, made[0], description="touched")
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

    def test_ties_are_broken_by_id_so_that_pages_do_not_overlap(self, time: Time, api: Api) -> None:
        ids = sorted(create(api, "Same")["id"] for _ in range(6))
        for sort in ("updatedAt", "title", "createdAt"):
            for direction in ("asc", "desc"):
                found = [
                    site["id"]
                    for page in (1, 2, 3)
                    for site in listed(api, sortBy=sort, sortDir=direction, size=2, page=page)
                ]
                assert found == (ids if direction == "asc" else ids[::-1])

    def test_the_next_list_includes_every_change(self, api: Api) -> None:
        site = create(api, "Before", slug="x-1")
        assert titles(api) == ["Before"]
        update(api, site, title="After")
        assert titles(api) == ["After"]
        assert titles(api, search="before") == []
        delete(api, site)
        assert titles(api) == []

    def test_the_list_needs_the_read_scope(self, owner: Owner) -> None:
        answer = owner.api("projects:write").refused("GET", LIST)
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")
        assert "projects:read" in answer.data["message"]


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
            "createdAt": moment,
            "updatedAt": moment,
        }

    def test_times_are_utc_with_milliseconds_and_z(self, api: Api) -> None:
        site = create(api)
        assert TIME.fullmatch(site["createdAt"])
        assert TIME.fullmatch(site["updatedAt"])

    def test_answers_are_utf_8_without_escapes(self, api: Api) -> None:
        answer = api.call("POST", CREATE, {"title": "Ёж 🦔"})
        assert "Ёж 🦔".encode() in answer.body

    def test_the_description_is_null_by_default(self, api: Api) -> None:
        assert create(api)["description"] is None
        assert create(api, description=None)["description"] is None

    def test_the_slug_is_made_from_the_title(self, api: Api) -> None:
        for title, slug in (
            ("Bakery & Sons, Ltd.", "bakery-sons-ltd"),
            ("Пекарня №1", "pekarnya-no1"),
            ("Αρτοποιείο", "artopoieio"),
            ("面包店", "mianbaodian"),
            ("🍞🥐", "bread-croissant"),
            ("L'Été d’Anna", "lete-danna"),
            ("  --Trim me--  ", "trim-me"),
            ("!!!", "site"),
        ):
            assert create(api, title)["slug"] == slug

    def test_a_title_in_any_script_gives_a_valid_slug(self, api: Api) -> None:
        for title in ("مخبز", "เบเกอรี่", "ベーカリー", "W" * 200, "щ" * 200, "a " * 99, "…", "🫨"):
            slug = create(api, title)["slug"]
            assert SLUG.fullmatch(slug), title
            refused = api.refused("POST", CREATE, {"title": "x", "slug": slug})
            assert refused.data["code"] == "slug_taken"

    def test_generated_slugs_of_equal_titles_differ(self, api: Api) -> None:
        slugs = [create(api, "Пекарня")["slug"] for _ in range(8)]
        assert slugs[:3] == ["pekarnya", "pekarnya-2", "pekarnya-3"]
        assert len(set(slugs)) == 8
        assert all(SLUG.fullmatch(slug) for slug in slugs)

    def test_generated_slugs_of_equal_long_titles_differ(self, api: Api) -> None:
        slugs = [create(api, "w" * 200)["slug"] for _ in range(3)]
        assert slugs == ["w" * 63, "w" * 61 + "-2", "w" * 61 + "-3"]

    def test_a_reserved_slug_is_refused(self, api: Api) -> None:
        for slug in ("api", "blog", "admin", "www"):
            error = refused_field(api, CREATE, {"title": "x", "slug": slug})
            assert error["field"] == "slug"
            assert "reserved" in error["message"]
        assert total(api) == 0

    def test_a_generated_slug_is_never_reserved(self, api: Api) -> None:
        for title in ("API", "Blog", "admin!", "WWW"):
            made = api.post(CREATE, {"title": title})
            expected = title.lower().rstrip("!")
            assert made["project"]["slug"] == f"{expected}-2"
            assert f'"{expected}" is reserved' in made["warnings"][0]

    def test_a_slug_as_long_as_a_host_name_label_is_accepted(self, api: Api) -> None:
        for slug in ("a", "7", "a-b", "a--b", "x" * 63, "0-0"):
            assert create(api, slug=slug)["slug"] == slug

    def test_a_malformed_slug_is_refused(self, api: Api) -> None:
        for slug in (
            *("-a", "a-", "A", "Bakery", "a_b", "a b", " a", "a.b", "a/b"),
            *("ёж", "x" * 64, "a\n", "\na", "-", "é"),
        ):
            error = refused_field(api, CREATE, {"title": "x", "slug": slug})
            assert error["field"] == "slug"
        assert total(api) == 0

    def test_an_empty_slug_counts_as_omitted(self, api: Api) -> None:
        assert create(api, title="Bakery", slug="")["slug"] == "bakery"

    def test_a_slug_taken_in_the_same_workspace_is_refused(self, api: Api) -> None:
        create(api, slug="bakery")
        before = all_rows()
        answer = api.refused("POST", CREATE, {"title": "Other", "slug": "bakery"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert "bakery" in answer.data["message"]
        assert all_rows() == before

    def test_a_slug_taken_in_another_workspace_is_refused(self, api: Api, new_owner: Any) -> None:
        create(new_owner().api(), slug="bakery")
        answer = api.refused("POST", CREATE, {"title": "Other", "slug": "bakery"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert create(api, "Bakery")["slug"] == "bakery-2"

    def test_the_title_is_trimmed(self, api: Api) -> None:
        assert create(api, " \t Пекарня\u00a0 \n")["title"] == "Пекарня"

    def test_a_title_of_200_characters_is_accepted(self, api: Api) -> None:
        for title in ("x" * 200, "ё" * 200, "🍞" * 200, f"  {'x' * 200}  "):
            assert create(api, title)["title"] == title.strip()

    def test_an_invalid_title_is_refused(self, api: Api) -> None:
        for title, says in (
            ("", "1 character"),
            ("   ", "1 character"),
            ("x" * 201, "200 characters"),
            ("ё" * 201, "200 characters"),
            (None, "null"),
            (5, "number 5"),
            (True, "boolean true"),
            (["x"], "an array of 1"),
            ({}, "an object"),
        ):
            error = refused_field(api, CREATE, {"title": title})
            assert error["field"] == "title"
            assert says in error["message"]
        assert total(api) == 0

    def test_create_needs_a_title(self, api: Api) -> None:
        error = refused_field(api, CREATE, {"description": "x"})
        assert error == {"field": "title", "message": "is required"}

    def test_a_description_of_up_to_1000_characters_is_accepted(self, api: Api) -> None:
        assert create(api, description="ё" * 1000)["description"] == "ё" * 1000
        error = refused_field(api, CREATE, {"title": "x", "description": "ё" * 1001})
        assert error["field"] == "description"
        assert "1000" in error["message"]

    def test_all_wrong_fields_are_named_at_once(self, api: Api) -> None:
        answer = api.refused("POST", CREATE, {"title": "", "slug": "A B", "description": 1})
        assert {error["field"] for error in answer.data["errors"]} == {
            "title",
            "slug",
            "description",
        }

    def test_unknown_fields_are_ignored_with_the_nearest_known_name(self, api: Api) -> None:
        data = api.post(CREATE, {"title": "x", "descripton": "typo", "workspaceId": "other"})
        assert data["project"]["description"] is None
        typo, other = data["warnings"]
        assert '"descripton"' in typo
        assert '"description"' in typo
        assert '"workspaceId"' in other

    def test_a_python_name_is_an_unknown_field(self, api: Api) -> None:
        create(api)
        site = listed(api)[0]
        data = api.post(DELETE, {"id": site["id"], "dry_run": True})
        assert '"dryRun"' in data["warnings"][0]
        assert data["deleted"] is True

    def test_create_updates_the_counters_and_leaves_one_audit_record(
        self, owner: Owner, api: Api
    ) -> None:
        site = create(api, slug="bakery")
        assert counters.read(owner.workspace.id, "SITE") == {"total": 1, "status:active": 1}
        records = audit.latest(owner.workspace.id)
        (record,) = [r for r in records if r.actor != "operator"]
        assert (record.operation, record.resources[0]) == ("create_site", f"site:{site['id']}")
        assert record.fields == ["title", "slug"]

    def test_a_write_only_key_gets_the_record_back(self, owner: Owner) -> None:
        assert create(owner.api("projects:write"), "Пекарня")["title"] == "Пекарня"

    def test_create_needs_the_write_scope(self, owner: Owner) -> None:
        answer = owner.api("projects:read").refused("POST", CREATE, {"title": "x"})
        assert (answer.status, answer.data["code"]) == (403, "insufficient_scope")


class TestCountersOfSites:
    def test_counters_match_the_lists_after_many_changes(self, owner: Owner, api: Api) -> None:
        made = [create(api, f"Site {number}") for number in range(6)]
        update(api, made[0], status="inactive")
        update(api, made[1], status="inactive")
        update(api, made[1], status="active", slug="back")
        as_operator("suspend_site", id=made[2]["id"])
        as_operator("suspend_site", id=made[3]["id"])
        as_operator("resume_site", id=made[3]["id"])
        delete(api, made[4])
        delete(api, made[0], dryRun=True)
        shown = {
            f"status:{status}": total(api, status=status)
            for status in ("active", "inactive", "suspended")
        }
        assert shown == {"status:active": 3, "status:inactive": 1, "status:suspended": 1}
        assert counters.read(owner.workspace.id, "SITE") == {"total": total(api), **shown}


class TestSuspension:
    @pytest.mark.parametrize("status", ["active", "inactive"])
    def test_resuming_restores_the_status_before_the_suspension(
        self, status: str, api: Api
    ) -> None:
        site = create(api)
        update(api, site, status=status)
        as_operator("suspend_site", id=site["id"])
        as_operator("suspend_site", id=site["id"])
        assert listed(api)[0]["status"] == "suspended"
        as_operator("resume_site", id=site["id"])
        assert listed(api)[0]["status"] == status

    def test_resuming_a_site_that_is_not_suspended_changes_nothing(
        self, time: Time, api: Api
    ) -> None:
        site = create(api)
        time.pass_by(hours=1)
        as_operator("resume_site", id=site["id"])
        assert listed(api) == [site]

    def test_a_suspension_is_audited_as_the_operators(self, owner: Owner, api: Api) -> None:
        site = create(api)
        as_operator("suspend_site", id=site["id"])
        record = audit.latest(owner.workspace.id, limit=1)[0]
        assert (record.operation, record.actor) == ("suspend_site", "operator")
        assert record.resources[0] == f"site:{site['id']}"


class TestAnotherWorkspacesSites:
    def test_another_workspaces_sites_are_not_listed(self, api: Api, new_owner: Any) -> None:
        create(new_owner().api(), "Theirs", slug="theirs")
        assert listed(api) == []
        assert total(api, search="theirs") == 0

    @pytest.mark.parametrize(
        ("path", "more"), [(UPDATE, {"title": "Mine"}), (DELETE, {}), (DELETE, {"dryRun": True})]
    )
    def test_the_answer_is_byte_for_byte_that_of_an_unknown_id(
        self, path: str, more: dict[str, Any], api: Api, new_owner: Any
    ) -> None:
        theirs = new_owner().api()
        site = create(theirs)
        foreign, never = (
            api.refused("POST", path, {"id": value, **more}) for value in (site["id"], new_id())
        )
        assert foreign.status == never.status == 404
        assert without_request_id(foreign.body) == without_request_id(never.body)
        assert json.loads(foreign.body)["data"]["requestId"]
        assert listed(theirs) == [site]
