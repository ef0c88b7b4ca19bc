"""Return of deleted pages and sites within 30 days."""

from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.jobs import JobKind
from chalicelib.domains.files.store import files
from chalicelib.domains.sites.flows import page_objects, undoing
from chalicelib.domains.sites.operations import site_restoring
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.factories.examples import FORM, submit
from tests.factories.pages import (
    Killed,
    create,
    delete,
    list_pages,
    new_site,
    objects,
    read,
    save,
    update,
)
from tests.support.warned import warned

RESTORE = "/api/pages/restore"
RESTORE_SITE = "/api/projects/restore"
SITE_DELETE = "/api/projects/delete"


def restore(api: Api, page: Any) -> Any:
    return api.post(RESTORE, {"id": page["id"]})


def restore_site(api: Api, site: str) -> Any:
    return api.post(RESTORE_SITE, {"id": site})


def delete_site(api: Api, site: str) -> Any:
    return api.post(SITE_DELETE, {"id": site})


def code(answer: Any) -> tuple[int, str]:
    return answer.status, answer.data["code"]


def found(api: Api, site: str, external_id: str) -> list[str]:
    """Return the ids of the pages of a site with an id in the caller's system."""
    data = api.get(f"/api/pages/list?projectId={site}&externalId={external_id}")
    return [page["id"] for page in data["pages"]]


def mark(api: Api, site: str, pages: list[Any]) -> str:
    """Set external ids and metadata of a site, its pages and a new form; return the form's id."""
    metadata = {"shelf": "A7"}
    api.post("/api/projects/update", {"id": site, "externalId": "1", "metadata": metadata})
    for number, page in enumerate(pages):
        update(api, page, externalId=str(number), metadata=metadata)
    body = FORM | {"projectId": site, "externalId": "1", "metadata": metadata}
    form: str = api.post("/api/forms/create", body)["form"]["id"]
    return form


class TestPages:
    def test_a_page_returns_with_its_html_versions_and_design(
        self, owner: Owner, time: Time, api: Api, site: str
    ) -> None:
        create(api, site, "Home")
        page = create(api, site, "About")
        save(api, page, "one")
        time.pass_by(minutes=10)
        save(api, page, "two")
        design = {"a": "x" * 5000}
        body = {"id": page["id"], "designSystem": design, "slug": "about-us"}
        updated = api.post("/api/pages/update", body)["page"]
        versions = api.get(f"/api/pages/{page['id']}/versions")["versions"]
        used = files.used_bytes(owner.workspace.id)
        delete(api, page)
        assert files.used_bytes(owner.workspace.id) == used - 3
        time.pass_by(days=29)
        run_jobs()
        data = restore(api, page)
        assert (data["formerSlug"], data["missingFileIds"]) == (None, [])
        changed_fields = ("version", "updatedAt")
        restored = read(api, page)["page"]
        assert (restored.pop("html"), restored.pop("sections")) == ("two", None)
        assert restored["version"] == updated["version"] + 1
        assert restored == data["page"]
        assert {k: v for k, v in restored.items() if k not in changed_fields} == {
            k: v for k, v in updated.items() if k not in changed_fields
        }
        assert api.get(f"/api/pages/{page['id']}/versions")["versions"] == versions
        assert files.used_bytes(owner.workspace.id) == used
        time.pass_by(days=2)
        run_jobs()
        assert read(api, page)["page"]["html"] == "two", "the purge skips what lives again"

    def test_the_last_page_returns_as_the_home_page(self, api: Api, site: str) -> None:
        page = create(api, site)
        delete(api, page)
        assert restore(api, page)["page"]["isHome"] is True

    def test_a_taken_slug_gets_an_ending(self, api: Api, site: str) -> None:
        create(api, site)
        page = create(api, site, slug="about")
        delete(api, page)
        create(api, site, slug="about")
        data = restore(api, page)
        assert (data["page"]["slug"], data["formerSlug"]) == ("about-2", "about")
        facts = {"requested": "about", "slug": "about-2"}
        assert warned(data) == [{"code": "slug_changed", **facts}]

    def test_an_external_id_and_metadata_return(self, api: Api, site: str) -> None:
        page = create(api, site, externalId="1", metadata={"shelf": "A7"})
        delete(api, page)
        assert found(api, site, "1") == []
        data = restore(api, page)
        assert (data["page"]["externalId"], data["page"]["metadata"]) == ("1", {"shelf": "A7"})
        assert (found(api, site, "1"), warned(data)) == ([page["id"]], [])

    @pytest.mark.parametrize("moment", ["before the call", "before its commit"])
    def test_a_page_returns_without_an_external_id_that_another_page_has(
        self, moment: str, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create(api, site, "Home")
        page = create(api, site, externalId="1", metadata={"shelf": "A7"})
        delete(api, page)
        commit, holders = UnitOfWork.commit, []

        def commit_late(self: UnitOfWork, *arguments: Any) -> None:
            monkeypatch.setattr(UnitOfWork, "commit", commit)
            holders.append(create(api, site, "Holder", externalId="1"))
            commit(self, *arguments)

        if moment == "before the call":
            holders.append(create(api, site, "Holder", externalId="1"))
        else:
            monkeypatch.setattr(UnitOfWork, "commit", commit_late)
        data = restore(api, page)
        (holder,) = holders
        assert (data["page"]["externalId"], data["page"]["metadata"]) == (None, {"shelf": "A7"})
        facts = {"id": page["id"], "externalId": "1", "recordId": holder["id"]}
        assert warned(data) == [{"code": "external_id_removed", **facts}]
        assert found(api, site, "1") == [holder["id"]]

    def test_an_earlier_version_returns_without_its_metadata(self, api: Api, site: str) -> None:
        page = create(api, site, externalId="1", metadata={"shelf": "A7"})
        save(api, page, "one")
        save(api, page, "two")
        api.post("/api/pages/update", {"id": page["id"], "metadata": {"shelf": "B1"}})
        (version,) = api.get(f"/api/pages/{page['id']}/versions")["versions"]
        body = {"id": page["id"], "versionId": version["id"]}
        restored = api.post("/api/pages/restore-version", body)["page"]
        assert (restored["externalId"], restored["metadata"]) == ("1", {"shelf": "B1"})

    def test_a_page_returns_only_if_its_html_fits_the_storage(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        page = create(api, site)
        save(api, page, "12345")
        delete(api, page)
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 4)
        assert code(api.call_refused("POST", RESTORE, {"id": page["id"]})) == (
            409,
            "quota_exceeded",
        )
        assert list_pages(api, site) == []

    def test_after_30_days_a_page_is_gone(self, time: Time, api: Api, site: str) -> None:
        page = create(api, site)
        delete(api, page)
        time.pass_by(days=30)
        assert code(api.call_refused("POST", RESTORE, {"id": page["id"]})) == (404, "not_found")

    def test_a_live_page_and_an_unknown_one_are_refused(
        self, api: Api, site: str, new_owner: Any
    ) -> None:
        page = create(api, site)
        assert code(api.call_refused("POST", RESTORE, {"id": page["id"]})) == (409, "conflict")
        delete(api, page)
        stranger = new_owner().api()
        assert code(stranger.call_refused("POST", RESTORE, {"id": page["id"]})) == (
            404,
            "not_found",
        )

    def test_a_page_deleted_with_its_site_returns_with_the_site_only(
        self, api: Api, site: str
    ) -> None:
        page = create(api, site)
        delete_site(api, site)
        answer = api.call_refused("POST", RESTORE, {"id": page["id"]})
        assert code(answer) == (409, "conflict")
        assert site in answer.data["message"]

    @pytest.mark.parametrize("moment", ["before the purge commits", "after the purge committed"])
    def test_concurrent_restore_and_purge_have_one_winner(
        self, moment: str, owner: Owner, time: Time, api: Api, site: str, monkeypatch: Any
    ) -> None:
        page = create(api, site)
        save(api, page, "html")
        delete(api, page)
        time.pass_by(days=30)
        # The restore read the time before the 30 days were over, and is late.
        monkeypatch.setattr(
            Listing,
            "find_deleted",
            lambda self, tenant, record_id: self.row.find(self.trash(tenant), record_id),
        )
        statuses: list[int] = []

        def restore_once(result: Any) -> Any:
            if not statuses:
                answer = owner.api().call("POST", RESTORE, {"id": page["id"]})
                statuses.append(answer.status)
            return result

        if moment == "before the purge commits":
            monkeypatch.setattr(
                undoing,
                "run_job_unit",
                lambda job, stage: run_job_unit(job, lambda unit: restore_once(stage(unit))),
            )
        else:
            purge = page_objects.end_deletion
            monkeypatch.setattr(
                page_objects, "end_deletion", lambda *arguments: restore_once(purge(*arguments))
            )
        run_jobs()
        if moment == "before the purge commits":
            assert statuses == [200]
            assert read(api, page)["page"]["html"] == "html"
            assert objects(owner) == [b"html"]
        else:
            assert statuses == [404]
            assert objects(owner) == []

    def test_a_page_deleted_again_is_purged_by_its_last_deletion(
        self, owner: Owner, time: Time, api: Api, site: str
    ) -> None:
        page = create(api, site)
        save(api, page, "html")
        delete(api, page)
        time.pass_by(days=10)
        restore(api, page)
        delete(api, page)
        time.pass_by(days=20)
        run_jobs()
        assert objects(owner) == [b"html"]
        time.pass_by(days=10)
        run_jobs()
        assert objects(owner) == []


class TestSites:
    @pytest.fixture
    def pages(self, api: Api, site: str) -> list[Any]:
        new_pages = [create(api, site, title) for title in ("Home", "About", "Menu")]
        for page in new_pages:
            save(api, page, f"<h1>{page['title']}</h1>")
        return new_pages

    def test_overwritten_and_deleted_site_is_restored_unchanged(
        self, owner: Owner, api: Api, site: str, pages: list[Any]
    ) -> None:
        form = api.post("/api/forms/create", FORM | {"projectId": site})["form"]["id"]
        submit(form, name="Ada", email="ada@example.com")
        pages_before, used = list_pages(api, site), files.used_bytes(owner.workspace.id)
        counts = counters.read_all(owner.workspace.id, noun="PAGE")
        save(api, pages[1], "<h1>About</h1>!")
        save(api, pages[1], "oops")
        delete_site(api, site)
        assert files.used_bytes(owner.workspace.id) == 0
        data = restore_site(api, site)
        assert data["project"]["status"] == "inactive"
        assert (data["formerSlug"], data["unboundDomain"], data["forms"]) == (None, None, 1)
        pages_after = list_pages(api, site)
        for page in (*pages_after, *data["pages"]):
            page.pop("updatedAt")  # Separate transactions restore the pages.
        assert data["pages"] == pages_after
        assert [page["id"] for page in data["pages"]] == [page["id"] for page in pages_before]
        assert data["chargedBytes"] == files.used_bytes(owner.workspace.id)
        first = api.get(f"/api/pages/{pages[1]['id']}/versions")["versions"][-1]
        body = {"id": pages[1]["id"], "versionId": first["id"]}
        api.post("/api/pages/restore-version", body)
        assert read(api, pages[1])["page"]["html"] == "<h1>About</h1>"
        assert files.used_bytes(owner.workspace.id) == used
        assert counters.read_all(owner.workspace.id, noun="PAGE") == counts
        submit(form, name="Eve", email="eve@example.com")
        (restored,) = api.get("/api/forms/list")["forms"]
        assert (restored["id"], restored["submissions"]) == (form, 2)

    def test_records_deleted_before_the_site_are_not_restored(
        self, api: Api, site: str, pages: list[Any]
    ) -> None:
        delete(api, pages[2])
        delete_site(api, site)
        assert len(restore_site(api, site)["pages"]) == 2
        assert [page["title"] for page in list_pages(api, site)] == ["Home", "About"]
        assert restore(api, pages[2])["page"]["title"] == "Menu"

    def test_a_taken_slug_and_a_bound_domain_are_named(
        self, api: Api, site: str, new_owner: Any
    ) -> None:
        slug = api.get("/api/projects/list")["projects"][0]["slug"]
        delete_site(api, site)
        new_owner().api().post("/api/projects/create", {"title": "Rival", "slug": slug})
        data = restore_site(api, site)
        assert (data["project"]["slug"], data["formerSlug"]) == (f"{slug}-2", slug)

    def test_external_ids_of_a_site_its_pages_and_forms_return(
        self, owner: Owner, api: Api, site: str, pages: list[Any]
    ) -> None:
        form = mark(api, site, pages)
        delete_site(api, site)
        data = restore_site(api, site)
        assert warned(data) == []
        assert data["project"]["externalId"] == "1"
        listed = [data["pages"], list_pages(api, site)]
        assert [[page["externalId"] for page in rows] for rows in listed] == 2 * [["0", "1", "2"]]
        assert [page["metadata"] for page in data["pages"]] == 3 * [{"shelf": "A7"}]
        (found_form,) = api.get("/api/forms/list?externalId=1")["forms"]
        assert (found_form["id"], found_form["metadata"]) == (form, {"shelf": "A7"})

    def test_a_site_returns_without_external_ids_that_others_have(
        self, api: Api, site: str, pages: list[Any]
    ) -> None:
        form = mark(api, site, pages)
        delete_site(api, site)
        rival = api.post("/api/projects/create", {"title": "Rival", "externalId": "1"})["project"]
        page = create(api, rival["id"], externalId="1")
        rival_form = api.post("/api/forms/create", FORM | {"externalId": "1"})["form"]
        data = restore_site(api, site)
        lost = {site: rival["id"], pages[1]["id"]: page["id"], form: rival_form["id"]}
        assert warned(data) == [
            {"code": "external_id_removed", "id": one, "externalId": "1", "recordId": holder}
            for one, holder in lost.items()
        ]
        assert data["project"]["externalId"] is None
        listed = [data["pages"], list_pages(api, site)]
        assert [[page["externalId"] for page in rows] for rows in listed] == 2 * [["0", None, "2"]]
        restored_form = api.get(f"/api/forms/{form}")["form"]
        assert (restored_form["externalId"], restored_form["metadata"]) == (None, {"shelf": "A7"})

    def test_an_external_id_that_is_taken_during_a_restore_does_not_stop_it(
        self, time: Time, api: Api, site: str, pages: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mark(api, site, pages)
        delete_site(api, site)
        with monkeypatch.context() as dying:
            dying.setattr("chalicelib.engine.jobs.attempt", Killed.now)
            with pytest.raises(Killed):
                restore_site(api, site)
        holder = create(api, new_site(api, "Rival"), externalId="1")
        time.pass_by(minutes=1)
        run_jobs()
        external_ids = [page["externalId"] for page in list_pages(api, site)]
        assert external_ids == ["0", None, "2"]
        assert found(api, holder["projectId"], "1") == [holder["id"]]

    def test_a_full_storage_leaves_the_site_deleted(
        self, api: Api, site: str, pages: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        delete_site(api, site)
        with monkeypatch.context() as full:
            full.setitem(plans.STORAGE_BYTES, "business", 10)
            answer = api.call_refused("POST", RESTORE_SITE, {"id": site})
        assert code(answer) == (409, "quota_exceeded")
        assert api.get("/api/projects/list")["projects"] == []
        assert len(restore_site(api, site)["pages"]) == len(pages)

    def test_restored_site_is_still_suspended(self, api: Api, site: str) -> None:
        from tests.conftest import call_operator

        call_operator("suspend_site", id=site)
        delete_site(api, site)
        assert restore_site(api, site)["project"]["status"] == "suspended"

    def test_a_deletion_that_still_runs_is_not_undone(
        self, time: Time, api: Api, site: str, pages: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as dying:
            dying.setattr(undoing, "MOST_ITEMS", 1)
            dying.setattr("chalicelib.engine.jobs.attempt", Killed.now)
            with pytest.raises(Killed):
                delete_site(api, site)
        assert code(api.call_refused("POST", RESTORE_SITE, {"id": site})) == (409, "conflict")
        run_jobs()
        assert len(restore_site(api, site)["pages"]) == len(pages)

    @pytest.mark.parametrize("commits", range(5))
    def test_a_restore_killed_at_any_write_is_finished_by_the_runner(
        self,
        commits: int,
        owner: Owner,
        time: Time,
        api: Api,
        site: str,
        pages: list[Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        api.post("/api/forms/create", FORM | {"projectId": site})
        used = files.used_bytes(owner.workspace.id)
        delete_site(api, site)
        monkeypatch.setattr(undoing, "MOST_ITEMS", 1)
        commit, commits_left = UnitOfWork.commit, [commits]

        def die(self: UnitOfWork, *arguments: Any) -> None:
            commits_left[0] -= 1
            if commits_left[0] < 0:
                raise Killed
            commit(self, *arguments)

        with monkeypatch.context() as dying:
            dying.setattr(UnitOfWork, "commit", die)
            with pytest.raises(Killed):
                restore_site(api, site)
        if commits == 0:
            assert api.get("/api/projects/list")["projects"] == []
            restore_site(api, site)
        elif commits < 5:
            answer = api.call_refused("POST", SITE_DELETE, {"id": site})
            assert code(answer) == (409, "conflict"), "while it is being restored"
        time.pass_by(minutes=1)
        run_jobs()
        assert [page["title"] for page in list_pages(api, site)] == ["Home", "About", "Menu"]
        assert files.used_bytes(owner.workspace.id) == used
        assert len(api.get("/api/forms/list")["forms"]) == 1
        assert delete_site(api, site)["cascade"]["pages"] == 3

    def test_repeated_cascade_does_not_delete_a_restored_site(
        self, owner: Owner, time: Time, api: Api, site: str, pages: list[Any]
    ) -> None:
        from chalicelib.engine import jobs

        delete_site(api, site)
        restore_site(api, site)
        jobs.schedule(jobs.row(JobKind("site-cascade"), owner.workspace.id, {"siteId": site}))
        jobs.schedule(jobs.row(site_restoring.RESTORE, owner.workspace.id, {"siteId": site}))
        run_jobs()
        assert len(list_pages(api, site)) == len(pages)

    def test_after_30_days_a_site_is_gone_with_all_objects(
        self, owner: Owner, time: Time, api: Api, site: str, pages: list[Any]
    ) -> None:
        save(api, pages[0], "new")
        delete_site(api, site)
        time.pass_by(days=30)
        assert code(api.call_refused("POST", RESTORE_SITE, {"id": site})) == (404, "not_found")
        run_jobs()
        assert objects(owner) == []

    def test_the_purge_of_an_undone_deletion_removes_nothing(
        self, owner: Owner, time: Time, api: Api, site: str, pages: list[Any]
    ) -> None:
        delete_site(api, site)
        time.pass_by(days=29)
        restore_site(api, site)
        time.pass_by(days=2)
        run_jobs()
        assert len(objects(owner)) == len(pages)
        for page in pages:
            assert read(api, page)["page"]["html"]

    def test_sites_of_another_workspace_are_unknown(
        self, api: Api, site: str, new_owner: Any
    ) -> None:
        assert code(api.call_refused("POST", RESTORE_SITE, {"id": site})) == (409, "conflict")
        delete_site(api, site)
        stranger = new_owner().api()
        assert code(stranger.call_refused("POST", RESTORE_SITE, {"id": site})) == (404, "not_found")

    def test_a_site_of_40_pages_with_many_former_slugs_returns(self, api: Api) -> None:
        site = new_site(api, "Large")
        for number in range(40):
            page = create(api, site, f"Page {number}")
            for name in "abcde":
                slug = f"{name}-{number}"
                api.post("/api/pages/update", {"id": page["id"], "slug": slug})
        slugs_before = [page["slug"] for page in list_pages(api, site)]
        delete_site(api, site)
        restore_site(api, site)
        assert [page["slug"] for page in list_pages(api, site)] == slugs_before

    def test_a_site_of_26_pages_with_external_ids_returns(self, api: Api) -> None:
        site = new_site(api, "Large")
        for number in range(26):
            create(api, site, f"Page {number}", externalId=str(number))
        pages_before = list_pages(api, site)
        delete_site(api, site)
        assert restore_site(api, site)["pages"][25]["externalId"] == "25"
        external_ids = [page["externalId"] for page in list_pages(api, site)]
        assert external_ids == [page["externalId"] for page in pages_before]
