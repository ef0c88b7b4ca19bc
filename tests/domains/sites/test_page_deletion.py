"""Deletion of pages and of their data."""

from datetime import timedelta

import pytest

from chalicelib.engine.listing import counters
from chalicelib.gateways import object_store
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.pages import (
    DELETE,
    create,
    delete,
    homes,
    list_pages,
    new_site,
    objects,
    read,
    save,
    titles,
    update,
)


class TestDeletePage:
    def test_delete_requires_confirmation_and_describes_the_page(self, api: Api, site: str) -> None:
        home = create(api, site)
        page = create(api, site, "О нас", slug="about")
        answer = api.call_refused("POST", DELETE, {"id": home["id"]})
        assert (answer.status, answer.data["code"]) == (409, "conflict"), "before it asks"
        for more in ({}, {"confirm": False}):
            answer = api.call_refused("POST", DELETE, {"id": page["id"], **more})
            assert (answer.status, answer.data["code"]) == (400, "confirmation_required")
            assert answer.data["page"] == {"id": page["id"], "title": "О нас", "slug": "about"}
            assert "confirm: true" in answer.data["message"]
        assert len(list_pages(api, site)) == 2

    def test_delete_with_a_version_deletes_only_that_version(self, api: Api, site: str) -> None:
        create(api, site)
        page = create(api, site)
        save(api, page, "x")
        for more in ({"confirm": True}, {"dryRun": True}, {}):
            body = {"id": page["id"], "ifVersion": 1, **more}
            answer = api.call_refused("POST", DELETE, body)
            assert (answer.status, answer.data["code"]) == (409, "version_conflict"), more
        assert len(list_pages(api, site)) == 2
        body = {"id": page["id"], "ifVersion": 2, "confirm": True}
        assert api.post(DELETE, body)["deleted"] is True

    def test_deleted_page_is_gone_and_its_html_is_kept_for_30_days(
        self, owner: Owner, api: Api, site: str, time: Time
    ) -> None:
        other_page = save(api, create(api, site, "Kept"), "kept")
        page = create(api, site, "Gone")
        save(api, page, "gone")
        data = delete(api, page)
        assert (data["id"], data["deleted"]) == (page["id"], True)
        until = (time.now + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M")
        assert data["undo"].startswith(f"Until {until}")
        assert f'POST /api/pages/restore with {{"id": "{page["id"]}"}}' in data["undo"]
        assert titles(api, site) == ["Kept"]
        assert api.call_refused("GET", f"/api/pages/{page['id']}").status == 404
        assert read(api, other_page)["page"] == other_page
        time.pass_by(days=29, hours=23)
        run_jobs()
        assert objects(owner) == [b"gone", b"kept"]
        time.pass_by(hours=1)
        assert run_jobs()["page-purge"] == 1
        assert objects(owner) == [b"kept"]

    def test_delete_frees_the_slug(self, api: Api, site: str) -> None:
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
        rows_before = all_rows()
        for more in ({}, {"confirm": True}, {"confirm": False}):
            data = api.post(DELETE, {"id": page["id"], "dryRun": True, **more})
            assert data == {"status": True, "id": page["id"], "deleted": False, "undo": None}
        assert all_rows() == rows_before
        assert objects(owner) == [b"html"]

    def test_the_home_page_is_not_deleted_while_there_are_others(self, api: Api, site: str) -> None:
        home, other = create(api, site, "Home"), create(api, site, "Other")
        for more in ({"confirm": True}, {"dryRun": True}, {}):
            answer = api.call_refused("POST", DELETE, {"id": home["id"], **more})
            assert (answer.status, answer.data["code"]) == (409, "conflict")
            assert "isHome" in answer.data["message"]
        update(api, other, isHome=True)
        delete(api, home)
        assert homes(api, site) == ["Other"]

    def test_the_last_page_may_be_deleted_even_if_it_is_home(
        self, owner: Owner, api: Api, site: str
    ) -> None:
        delete(api, create(api, site))
        assert list_pages(api, site) == []
        assert counters.read(owner.workspace.id, noun="PAGE") == {}
        assert create(api, site, "Next")["isHome"] is True

    def test_pages_of_other_sites_do_not_prevent_deleting_the_last_one(
        self, api: Api, site: str
    ) -> None:
        create(api, new_site(api, "Other"))
        assert delete(api, create(api, site))["deleted"] is True

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

        assert delete(api, page)["deleted"] is True
        time.pass_by(hours=2)
        run_jobs()
        time.pass_by(days=30)
        with monkeypatch.context() as patched:
            patched.setattr(object_store.FolderStore, "delete_under", fail)
            assert run_jobs()["page-purge"] == 0
        assert objects(owner) == [b"html"]
        assert run_jobs()["page-purge"] == 0
        time.pass_by(minutes=1.1)
        assert run_jobs()["page-purge"] == 1
        assert objects(owner) == []
        assert run_jobs()["page-purge"] == 0
