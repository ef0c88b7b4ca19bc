"""Updates of sites, and their deletion with all data."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.settings import settings
from chalicelib.domains.sites.operations import deletion
from chalicelib.domains.sites.store.pages import PAGES, DesignRow
from chalicelib.engine.listing import counters
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.factories.sites import (
    CREATE,
    DELETE,
    UPDATE,
    create,
    delete,
    list_sites,
    total,
    transactions_failing_after,
    update,
)
from tests.support.effort import slow_but_for
from tests.support.warned import warned


def add_page(api: Api, site: Any, title: str = "Page", html: str | None = None) -> Any:
    page = api.post("/api/pages/create", {"projectId": site["id"], "title": title})["page"]
    if html is not None:
        api.post("/api/pages/save-html", {"id": page["id"], "html": html})
    return page


def objects(owner: Owner) -> list[Path]:
    """Return the files that the object store holds for a workspace."""
    root = Path(settings().object_store.removeprefix("file://"))
    return [path for path in (root / owner.workspace.id).rglob("*") if path.is_file()]


def rows_about(text: str) -> list[str]:
    """Return the keys of all stored rows that contain a string, except in the audit log."""
    return [
        key
        for key, row in all_rows().items()
        if text in f"{key}{row}" and not key.startswith("audit/")
    ]


class TestUpdateSite:
    def test_an_update_changes_only_the_given_fields(self, time: Time, api: Api) -> None:
        site_before = create(api, "Пекарня", description="Хлеб", slug="bread")
        time.pass_by(minutes=1)
        updated = update(api, site_before, title="  Кондитерская ")
        assert updated == site_before | {
            "title": "Кондитерская",
            "updatedAt": time.now.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        }
        assert list_sites(api) == [updated]

    def test_an_update_changes_all_fields_at_once(self, api: Api) -> None:
        site = create(api)
        fields = {"title": "T", "description": "D", "slug": "s-2", "status": "inactive"}
        updated = update(api, site, **fields)
        assert {name: updated[name] for name in fields} == fields
        assert updated["url"].endswith("/s/s-2")
        assert list_sites(api) == [updated]
        assert update(api, site, description=None)["description"] is None

    def test_a_new_slug_frees_the_old_one(self, api: Api, new_owner: Any) -> None:
        site = create(api, slug="old")
        update(api, site, slug="new")
        other = new_owner().api()
        assert create(other, slug="old")["slug"] == "old"
        assert other.call_refused("POST", CREATE, {"title": "x", "slug": "new"}).status == 409

    def test_a_slug_of_another_site_is_refused(self, api: Api) -> None:
        site = create(api, slug="one")
        create(api, slug="two")
        answer = api.call_refused("POST", UPDATE, {"id": site["id"], "slug": "two", "title": "x"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        assert site in list_sites(api)
        assert create(api, slug="three")["slug"] == "three"

    def test_a_new_slug_is_found_and_the_old_one_is_not(self, api: Api) -> None:
        site = create(api, "Пекарня", slug="old-slug")
        update(api, site, slug="new-slug")
        assert total(api, search="new-slug") == 1
        assert total(api, search="old-slug") == 0

    def test_a_new_status_moves_the_site_between_counters(self, owner: Owner, api: Api) -> None:
        site = create(api)
        update(api, site, status="inactive")
        assert counters.read(owner.workspace.id, noun="SITE") == {"total": 1, "status:inactive": 1}
        update(api, site, status="inactive", title="x")
        assert counters.read(owner.workspace.id, noun="SITE") == {"total": 1, "status:inactive": 1}
        update(api, site, status="active")
        assert counters.read(owner.workspace.id, noun="SITE") == {"total": 1, "status:active": 1}

    @pytest.mark.parametrize("expected", ["active", "inactive"])
    def test_status_change_of_a_suspended_site_is_a_warning(self, expected: str, api: Api) -> None:
        site = create(api)
        call_operator("suspend_site", id=site["id"])
        data = api.post(UPDATE, {"id": site["id"], "status": expected, "title": "New"})
        assert (data["project"]["status"], data["project"]["title"]) == ("suspended", "New")
        assert warned(data) == [{"code": "site_suspended", "status": expected}]
        assert list_sites(api, status="suspended") == [data["project"]]
        call_operator("resume_site", id=site["id"])
        assert list_sites(api)[0]["status"] == expected

    def test_other_fields_of_a_suspended_site_change_without_a_warning(self, api: Api) -> None:
        site = create(api)
        call_operator("suspend_site", id=site["id"])
        data = api.post(UPDATE, {"id": site["id"], "slug": "elsewhere"})
        assert (data["project"]["slug"], data["project"]["status"]) == ("elsewhere", "suspended")
        assert "warnings" not in data


class TestDeleteSite:
    def test_delete_reports_the_deleted_records(self, owner: Owner, api: Api) -> None:
        site, other = create(api, "Gone"), create(api, "Stays")
        pages = [add_page(api, site, html="<p>") for _ in range(3)]
        other_page = add_page(api, other)
        data = delete(api, site)
        assert "POST /api/projects/restore" in data.pop("undo")
        assert data == {
            "status": True,
            "id": site["id"],
            "deleted": True,
            "cascade": {"pages": 3, "forms": 0, "domain": None},
        }
        assert [s["id"] for s in list_sites(api)] == [other["id"]]
        for page in pages:
            assert api.call_refused("GET", f"/api/pages/{page['id']}").status == 404
        assert api.call_refused("GET", f"/api/pages/list?projectId={site['id']}").status == 404
        stored_page = api.get(f"/api/pages/{other_page['id']}")["page"]
        assert stored_page == other_page | {"html": "", "sections": None}
        assert counters.read(owner.workspace.id, noun="SITE") == {"total": 1, "status:active": 1}

    def test_a_deleted_site_cannot_be_used(self, api: Api) -> None:
        site = create(api)
        page = add_page(api, site)
        delete(api, site)
        for path, body in (
            (UPDATE, {"id": site["id"], "title": "x"}),
            ("/api/pages/create", {"projectId": site["id"], "title": "x"}),
            ("/api/pages/save-html", {"id": page["id"], "html": "x"}),
            ("/api/pages/update", {"id": page["id"], "title": "x"}),
            ("/api/pages/delete", {"id": page["id"], "confirm": True}),
        ):
            assert api.call_refused("POST", path, body).status == 404
        with pytest.raises(Exception, match="No site"):
            call_operator("suspend_site", id=site["id"])

    def test_delete_frees_the_slug_for_all_workspaces(self, api: Api, new_owner: Any) -> None:
        delete(api, create(api, slug="bakery"))
        assert create(new_owner().api(), slug="bakery")["slug"] == "bakery"

    def test_delete_frees_the_slugs_of_pages(self, owner: Owner, api: Api) -> None:
        site = create(api)
        add_page(api, site)
        slugs = f"/W#{owner.workspace.id}#PAGE#BY#slug#"
        assert any(slugs in f"/{key}" for key in all_rows())
        delete(api, site)
        rows_after = all_rows()
        assert not any(slugs in f"/{key}" for key in rows_after)
        assert not any(f"W#{owner.workspace.id}#PAGE/" in key for key in rows_after)

    def test_a_deleted_site_is_hidden_and_kept_for_30_days(
        self, owner: Owner, time: Time, api: Api
    ) -> None:
        site = create(api)
        page = add_page(api, site)
        delete(api, site)
        until = str(int((time.now + timedelta(days=30)).timestamp()))
        rows = all_rows()
        for noun, record in (("SITE", site), ("PAGE", page)):
            trash_row = rows[f"content/W#{owner.workspace.id}#{noun}#TRASH/{record['id']}"]
            assert trash_row["expires"] == {"N": until}
            assert trash_row["title"] == {"S": record["title"]}

    def test_delete_includes_more_pages_than_one_transaction_holds(
        self, owner: Owner, api: Api
    ) -> None:
        site = create(api)
        count = deletion.RECORDS_PER_TRANSACTION + 2
        for _ in range(count):
            add_page(api, site, "Page")
        assert delete(api, site)["cascade"]["pages"] == count
        assert PAGES.entries(owner.workspace.id) == []
        assert counters.read(owner.workspace.id, noun="PAGE") == {}

    def test_html_is_purged_30_days_after_the_deletion(
        self, owner: Owner, time: Time, api: Api
    ) -> None:
        site, other = create(api, "Gone"), create(api, "Stays")
        add_page(api, site, html="<p>1</p>")
        add_page(api, site, html="<p>2</p>")
        other_page = add_page(api, other, html="<p>3</p>")
        delete(api, site)
        assert len(objects(owner)) == 3
        time.pass_by(days=29, hours=23)
        assert run_jobs()["site-purge"] == 0
        assert len(objects(owner)) == 3
        time.pass_by(hours=1)
        assert run_jobs()["site-purge"] == 1
        assert [path.read_text() for path in objects(owner)] == ["<p>3</p>"]
        assert api.get(f"/api/pages/{other_page['id']}")["page"]["html"] == "<p>3</p>"
        assert run_jobs()["site-purge"] == 0

    @pytest.mark.parametrize("count", slow_but_for([2], [2, 40]))
    def test_long_design_systems_are_purged_after_30_days(
        self, count: int, time: Time, owner: Owner, api: Api
    ) -> None:
        def designs() -> int:
            return len(DesignRow.partition(f"W#{owner.workspace.id}#PAGE#DESIGN"))

        site, other = create(api, "Gone"), create(api, "Stays")
        pages = [add_page(api, site) for _ in range(count)]
        other_page = add_page(api, other)
        for page in (*pages, other_page):
            body = {"id": page["id"], "designSystem": {"a": "ж" * 30_000}}
            other_page = api.post("/api/pages/update", body)["page"]
        assert delete(api, site)["cascade"]["pages"] == count
        for page in pages:
            assert api.call_refused("GET", f"/api/pages/{page['id']}").status == 404
        assert designs() == count + 1
        time.pass_by(days=29, hours=23)
        run_jobs()
        assert designs() == count + 1
        time.pass_by(hours=1)
        assert run_jobs()["site-purge"] == 1
        assert designs() == 1
        stored_page = api.get(f"/api/pages/{other_page['id']}")["page"]
        assert stored_page == other_page | {"html": "", "sections": None}

    @pytest.mark.parametrize("batches_done", [0, 1])
    def test_an_interrupted_cascade_is_finished_by_the_runner(
        self,
        batches_done: int,
        owner: Owner,
        api: Api,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(deletion, "RECORDS_PER_TRANSACTION", 2)
        site = create(api)
        for _ in range(5):
            add_page(api, site)
        with transactions_failing_after(1 + batches_done):
            assert delete(api, site)["deleted"] is True
        assert len(PAGES.entries(owner.workspace.id)) == 3 - 2 * batches_done
        assert list_sites(api) == []
        assert api.call_refused("GET", f"/api/pages/list?projectId={site['id']}").status == 404
        assert run_jobs()["site-cascade"] == 1
        assert PAGES.entries(owner.workspace.id) == []
        assert counters.read(owner.workspace.id, noun="PAGE") == {}
        assert not any("#PAGE#BY#slug#" in key for key in rows_about(site["id"]))
        assert run_jobs()["site-cascade"] == 0

    def test_ordinary_site_is_deleted_in_one_transaction(self, owner: Owner, api: Api) -> None:
        site = create(api)
        pages = [add_page(api, site) for _ in range(5)]
        with transactions_failing_after(1):
            delete(api, site)
        for page in pages:
            assert api.call_refused("GET", f"/api/pages/{page['id']}").status == 404
        assert counters.read(owner.workspace.id, noun="PAGE") == {}

    def test_a_deletion_that_fails_changes_nothing(self, api: Api) -> None:
        site = create(api)
        add_page(api, site)
        rows_before = all_rows()
        with transactions_failing_after(0):
            answer = api.call_refused("POST", DELETE, {"id": site["id"]})
        assert (answer.status, answer.data["code"]) == (503, "unavailable")
        assert all_rows() == rows_before

    def test_a_suspended_site_can_be_deleted(self, owner: Owner, api: Api) -> None:
        site = create(api)
        call_operator("suspend_site", id=site["id"])
        assert delete(api, site)["deleted"] is True
        assert counters.read(owner.workspace.id, noun="SITE") == {}
