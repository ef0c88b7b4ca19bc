"""A workspace that is exported and imported equals the original."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from chalicelib.core.jobs import JOB_HANDLERS, KNOWLEDGE_STALE
from chalicelib.core.operations import load_all
from chalicelib.domains.bookings.flows import holds
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.exports.flows import contents, whole_records
from chalicelib.domains.identity.store import api_keys, workspaces
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine import jobs
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.registry import NOUNS
from chalicelib.gateways.object_store import object_store
from tests.conftest import Owner, Time, all_rows, call_operator
from tests.factories.examples import Things, submit
from tests.factories.files import list_stored_files
from tests.factories.transfer import (
    ID,
    Furnished,
    call_with_key,
    comparable,
    is_behind,
    reads,
    rows_of,
)
from tests.support.export_files import (
    invoke,
    objects,
    read_whole,
    run,
    run_failing,
    start_empty,
)

pytestmark = pytest.mark.usefixtures("database")
load_all()


class TestRoundTrip:
    @pytest.mark.store
    def test_imported_workspace_equals_the_exported_one(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        tmp_path: Path,
    ) -> None:
        workspace = bakery.workspace
        rows, stored_objects = rows_of(workspace), objects()
        counts = {noun: counters.read_all(workspace, noun=noun) for noun in NOUNS}
        start_empty(empty_database, bakery.owner_email)
        printed = run("import", str(export_file))
        assert printed["workspaceId"] == workspace
        assert printed["membersWithoutAccount"] == ["mate@example.com"]
        assert bakery.reads == bakery.answers
        assert {noun: counters.read_all(workspace, noun=noun) for noun in NOUNS} == counts
        assert comparable(rows_of(workspace), workspace) == comparable(rows, workspace)
        unused_keys = {key for key in stored_objects if "/uploads/" in key} | {
            key for key in stored_objects if key not in objects()
        }
        assert {
            key: body for key, body in stored_objects.items() if key not in unused_keys
        } == objects()
        unused_keys = {key for key in unused_keys if not re.search("/(pages|imports)/", key)}
        assert len(unused_keys) == 1, "the announced upload, besides pages and imports"
        second_export = tmp_path / "again.zip"
        run("export", "--workspace", workspace, "--out", str(second_export))
        first, second = (
            # An import gives webhooks another secret, deleted ones too.
            [line for line in read_whole(path) if "WEBHOOK" not in str(line)[:40]]
            for path in (export_file, second_export)
        )
        assert second == first

    def test_every_row_of_a_workspace_is_exported_or_listed_as_excluded(
        self, bakery: Furnished, export_file: Path
    ) -> None:
        excluded = re.compile(
            r"COUNT#|CALENDAR#|CALENDAR_LINK|BUSY_CALENDAR|REPORT|USAGE|FILE#USE#|"
            r"[A-Z_]+#(BY|TEXT|VERSION|[a-z_]+_id)\b"
        )
        for key in rows_of(bakery.workspace):
            table, at = key.split("/")[0], key.partition(f"W#{bakery.workspace}#")[2]
            place = at.rpartition("/")[0]
            kind = contents.noun_at(place) or contents.kind_at(place)
            assert kind or excluded.match(at) or is_behind(key, bakery.workspace), (table, at)

    def test_imported_workspace_can_be_used(
        self, bakery: Furnished, export_file: Path, empty_database: Callable[[], None], time: Time
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        run("import", str(export_file))
        workspace, t = bakery.workspace, bakery.things
        api = Owner(workspaces.get(workspace)).api()
        assert api.get("/api/workspaces/list")["activeWorkspaceId"] == workspace
        product = {"name": "New", "price": 1, "categoryId": t.category}
        api.post("/api/products/create", product)
        assert api.get("/api/products/list")["total"] == 3
        api.call_refused("POST", "/api/products/create", product | {"sku": "ё-1"})
        (found,) = api.get("/api/products/list?externalId=erp-1")["products"]
        assert found["metadata"] == {"shelf": "A7"}
        refused = api.call_refused(
            "POST", "/api/products/create", product | {"externalId": "erp-1"}
        )
        assert refused.data["recordId"] == found["id"]
        for noun, query in (("projects", ""), ("pages", f"&projectId={t.site}"), ("forms", "")):
            (found,) = api.get(f"/api/{noun}/list?externalId=erp-1{query}")[noun]
            assert found["metadata"] == {"shelf": "A7"}
        refused = api.call_refused(
            "POST", "/api/projects/create", {"title": "New", "externalId": "erp-1"}
        )
        assert refused.data["recordId"] == t.site
        lead = submit(t.form, name="New", email="long@example.com")
        assert api.get(f"/api/forms/collection/{lead}")["lead"]["name"] == "New"
        bookings = api.get("/api/bookings/list?from=2027-02-01&status=all&q=zoe")["bookings"]
        assert len(bookings) == 2
        who = {"name": "Eve", "email": "eve@example.com"}
        busy = {"serviceId": bakery.salon_service, "startAt": "2027-02-02T10:00", "client": who}
        resource = next(b for b in bookings if b["status"] == "confirmed")["resourceId"]
        answer = api.call_refused("POST", "/api/bookings/create", busy | {"resourceId": resource})
        assert answer.data["code"] == "slot_unavailable"
        call_operator("erase_client", workspaceId=workspace, email="zoe.ray@example.com")
        all_stored = json.dumps(all_rows(), default=str).lower()
        assert "zoe ray" not in all_stored
        assert "zoe.ray" not in all_stored

    def test_imported_domain_is_verified_and_not_yet_served(
        self, bakery: Furnished, empty_database: Callable[[], None], tmp_path: Path
    ) -> None:
        row = SITES.require(bakery.workspace, record_id=bakery.things.site)
        row.update([SiteRow.domain_binding.status.set("active")])
        archive = tmp_path / "served.zip"
        run("export", "--workspace", bakery.workspace, "--out", str(archive))
        start_empty(empty_database, bakery.owner_email)
        run("import", str(archive))
        site = SITES.require(bakery.workspace, record_id=bakery.things.site)
        assert site.domain is not None
        assert (site.domain.state, site.active_host) == ("verified", None)

    def test_imported_bookings_lapse_and_dialogs_expire(
        self, bakery: Furnished, export_file: Path, empty_database: Callable[[], None], time: Time
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        run("import", str(export_file))
        time.pass_by(hours=1)
        assert jobs.run(JOB_HANDLERS)[holds.LAPSE] == 1
        held_booking = call_with_key(bakery.workspace, "get_booking", id=bakery.held_booking)[
            "booking"
        ]
        assert held_booking["status"] == "cancelled"
        time.pass_by(days=400)
        jobs.run(JOB_HANDLERS)
        assert DIALOGS.entries(bakery.workspace) == []
        gone = [key for key in list_stored_files() if f"{bakery.workspace}/sites" in key]
        assert len(gone) == 1, "the HTML of the deleted site went after 30 days"

    @pytest.mark.parametrize("ids", ["keep", "new"])
    def test_imported_bots_find_what_they_know_after_a_minute(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        time: Time,
        ids: str,
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        workspace = run("import", str(export_file), "--ids", ids)["workspaceId"]
        (bot,) = AGENTS.latest(workspace, 1)
        assert (
            search.find(workspace, bot_id=bot.id, question="Do you deliver bread?", limit=1) == []
        )
        time.pass_by(minutes=1)
        assert jobs.run(JOB_HANDLERS)[KNOWLEDGE_STALE] >= 1
        (passage,) = search.find(
            workspace, bot_id=bot.id, question="Do you deliver bread?", limit=1
        )
        assert (passage.title, passage.text) == (
            "Delivery",
            "We deliver bread on weekdays from 9 to 18.",
        )

    def test_members_with_accounts_are_imported(
        self, bakery: Furnished, export_file: Path, empty_database: Callable[[], None]
    ) -> None:
        start_empty(empty_database, "new@example.com")
        account = call_operator("create_account", email="mate@example.com", password="long enough")
        assert "owner" in run_failing("import", str(export_file))
        printed = run("import", str(export_file), "--owner", "new@example.com")
        assert (printed["owner"], printed["membersWithoutAccount"]) == ("new@example.com", [])
        joined = workspaces.membership(account["accountId"], workspace_id=bakery.workspace)
        assert joined is not None
        assert joined.role == "manager"
        assert api_keys.read_all(bakery.workspace) == []

    def test_records_changed_during_the_export_are_exported_in_one_state(
        self,
        bakery: Furnished,
        empty_database: Callable[[], None],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        time: Time,
    ) -> None:
        """A page and a lead change between the read of each record and the read of its parts."""
        workspace, path = bakery.workspace, tmp_path / "busy.zip"
        long = "л" * 4000
        changes: list[Callable[[], Any]] = [
            lambda: call_with_key(
                workspace, "save_page_html", id=bakery.things.page, html="<p>Newer</p>"
            ),
            lambda: call_with_key(
                workspace, "update_lead", id=bakery.things.lead, data={"message": long + "!"}
            ),
        ]
        call_with_key(workspace, "update_lead", id=bakery.things.lead, data={"message": long})
        time.pass_by(minutes=10)
        for name in ("_page", "_lead"):
            kind = getattr(whole_records, name).__annotations__[name[1:]]

            def look(place: str, record: Any, real: Any = whole_records.READS[kind]) -> Any:
                if record.id in {bakery.things.page, bakery.things.lead} and changes:
                    changes.pop(0 if record.id == bakery.things.page else -1)()
                return real(place, record)

            monkeypatch.setitem(whole_records.READS, kind, look)
        result = invoke("export", "--workspace", workspace, "--out", str(path))
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["changedMeanwhile"] == 2
        assert "Export again" in result.stderr
        start_empty(empty_database, bakery.owner_email)
        run("import", str(path))
        page = call_with_key(workspace, "get_page", id=bakery.things.page)["page"]
        assert page["html"] == "<p>Newer</p>"
        lead = call_with_key(workspace, "get_lead", id=bakery.things.lead)["lead"]
        assert lead["data"]["message"] == long + "!"

    def test_answer_in_progress_is_exported_with_its_text_so_far(self) -> None:
        message = {"content": {"S": "Hel"}, "status": {"S": "partial"}, "is_open": {"BOOL": True}}
        message["input_tokens"] = {"N": "5"}
        closed = contents.MESSAGES.clean(message)
        assert closed == {"content": {"S": "Hel"}, "status": {"S": "partial"}}
        silent = contents.MESSAGES.clean(message | {"content": {"S": ""}})
        assert silent["status"] == {"S": "error"}


class TestCopy:
    @pytest.mark.store
    def test_copy_has_its_own_ids(self, bakery: Furnished, export_file: Path) -> None:
        old_rows, old_objects = rows_of(bakery.workspace), objects()
        printed = run("import", str(export_file), "--ids", "new")
        copy = printed["workspaceId"]
        assert copy != bakery.workspace
        assert printed["slugsChanged"] == {"bakery": "bakery-2"}
        assert printed["domainsDropped"] == ["www.example.com"]
        new_rows = rows_of(bakery.workspace)
        assert {k: v for k, v in new_rows.items() if "#AUDIT" not in k} == {
            k: v for k, v in old_rows.items() if "#AUDIT" not in k
        }
        new = {
            key: item
            for key, item in all_rows().items()
            if key not in old_rows and copy in json.dumps([key, item], default=str)
        }
        original_ids = ids_of(old_rows)
        found_ids = set(ID.findall(json.dumps(list(new.items()), default=str, ensure_ascii=False)))
        assert found_ids & original_ids == set()
        added_objects = {key: body for key, body in objects().items() if key not in old_objects}
        assert not any(old in key for key in added_objects for old in original_ids)
        (page,) = (body.decode() for key, body in added_objects.items() if b"<form" in body)
        assert not any(old in page for old in original_ids)
        assert "01ARZ3NDEKTSV4RRFFQ69G5FAV" in page
        assert '"/s/bakery-2/about"' in page
        (url,) = re.findall(r'src="http://127.0.0.1:8000/([^"]+)"', page)
        assert object_store().get(url) is not None

    def test_copy_returns_the_same_data_as_the_original(
        self, bakery: Furnished, export_file: Path
    ) -> None:
        copy = run("import", str(export_file), "--ids", "new")["workspaceId"]
        ids = new_ids(bakery.workspace, copy)
        things = Things(**{name: ids(value) for name, value in vars(bakery.things).items()})
        answers = reads(copy, things, ids(bakery.salon_service))
        expected = json.loads(ids(json.dumps(bakery.answers, ensure_ascii=False)))
        for documents in (answers, expected):
            # the slug, and no domain
            for name in ("all sites", "get_site", "get_workspace", "list_sites"):
                del documents[name]
            for name in ("slug", "url"):
                del documents["get_booking_page"]["bookingPage"][name]
        assert _but_for_the_slug(answers) == _but_for_the_slug(expected)

    def test_forms_and_bots_work_in_original_and_copy(
        self, bakery: Furnished, export_file: Path
    ) -> None:
        copy = run("import", str(export_file), "--ids", "new")["workspaceId"]
        ids = new_ids(bakery.workspace, copy)
        for form in (bakery.things.form, ids(bakery.things.form)):
            submit(form, name="Both", email="both@example.com")
        for workspace in (bakery.workspace, copy):
            leads = call_with_key(workspace, "list_leads", search="both")
            assert leads["total"] == 1

    def test_second_copy_has_other_ids(self, bakery: Furnished, export_file: Path) -> None:
        copies = [run("import", str(export_file), "--ids", "new") for _ in range(2)]
        assert copies[0]["workspaceId"] != copies[1]["workspaceId"]
        assert copies[1]["slugsChanged"] == {"bakery": "bakery-3"}


def _but_for_the_slug(answers: dict[str, Any]) -> Any:
    """Return responses without the sizes that depend on the slug and the domain."""
    text = json.dumps(answers, sort_keys=True, ensure_ascii=False)
    text = re.sub(r"/s/bakery(-2)?", "/s/bakery", text)
    return json.loads(re.sub(r'"htmlBytes": \d+', '"htmlBytes": 0', text))


def ids_of(rows: dict[str, Any]) -> set[str]:
    """Return the ids in the keys of rows, except ids of accounts."""
    return {ulid for key in rows if "#MEMBER/" not in key for ulid in ID.findall(key)}


def new_ids(workspace: str, copy: str) -> Callable[[str], str]:
    """Return a function that replaces ids of the original by ids of the copy."""
    step = int(ULID.from_str(copy)) - int(ULID.from_str(workspace))
    old = ids_of(rows_of(workspace))
    renamed_ids = {old_id: str(ULID.from_int(int(ULID.from_str(old_id)) + step)) for old_id in old}

    def renamed(text: str) -> str:
        for old_id, new_id in renamed_ids.items():
            text = text.replace(old_id, new_id)
        return text

    return renamed
