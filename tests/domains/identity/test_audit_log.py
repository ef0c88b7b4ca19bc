"""Entries of the audit log in the console, with pages, filters and access."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import ForbiddenError, NotFoundError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import audit
from chalicelib.engine.tables import AuditTableRow
from infra.bench.dynamodb.usage import metering
from tests.conftest import PASSWORD, Api, Owner, Time, call_console, call_operator
from tests.factories.examples import FORM, submit
from tests.support.keyed import keyed


@pytest.fixture
def quiet_owner(new_owner: Callable[..., Owner], time: Time) -> Owner:
    """A workspace that was created yesterday. Nothing has changed today."""
    owner = new_owner()
    time.pass_by(days=1)
    return owner


def log(owner: Owner, **arguments: Any) -> Any:
    return call_console(owner.workspace.id, "list_audit_log", **arguments)


def entries(owner: Owner, **arguments: Any) -> list[Any]:
    return [entry["operation"] for entry in log(owner, **arguments)["entries"]]


def write(owner: Owner, count: int, time: Time, actor: str = "operator") -> None:
    """Write changes to the log, one second apart. The operations are named ``change-<number>``."""
    for number in range(count):
        event = AuditEvent(f"change-{number}", actor)
        audit.row(owner.workspace.id, event).save()
        time.pass_by(seconds=1)


class TestEntry:
    def test_entry_names_actor_operation_and_key(self, quiet_owner: Owner, time: Time) -> None:
        token = quiet_owner.token()
        time.pass_by(minutes=1)
        site = Api(token).post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        (site_entry, key_entry, *_) = log(quiet_owner)["entries"]
        account = accounts.get(quiet_owner.workspace.owner_id)
        (key,) = call_console(quiet_owner.workspace.id, "list_keys")["keys"]
        assert site_entry | {"clientIp": None, "requestId": "r"} == {
            "id": site_entry["id"],
            "at": "2027-01-16T12:01:00.000Z",
            "actor": {
                "kind": "account",
                "id": account.id,
                "name": account.name,
                "email": account.email,
            },
            "key": {"id": key["id"], "name": "test", "masked": key["masked"], "isApp": False},
            "clientIp": None,
            "operation": "create_site",
            "title": "Create a site",
            "area": "sites",
            "resources": [
                {"type": "site", "id": site, "name": "Bakery", "exists": True, "within": None}
            ],
            "fields": ["title"],
            "requestId": "r",
        }
        assert site_entry["requestId"]
        nobody = {"kind": "operator", "id": None, "name": None, "email": None}
        assert (key_entry["operation"], key_entry["key"]) == ("create_key", None)
        assert key_entry["actor"] == nobody
        assert key_entry["resources"] == [
            {"type": "key", "id": key["id"], "name": "test", "exists": True, "within": None}
        ]
        assert token not in str(log(quiet_owner))

    def test_entry_of_a_console_user_has_no_key(self, quiet_owner: Owner) -> None:
        home, who = quiet_owner.workspace.id, quiet_owner.workspace.owner_id
        key = call_console(home, "create_key", account_id=who, name="x", scopes=["crm:read"])
        call_console(home, "revoke_key", account_id=who, id=key["keyId"])
        for entry in log(quiet_owner)["entries"][:2]:
            assert (entry["actor"]["id"], entry["key"], entry["area"]) == (who, None, "identity")

    def test_entry_of_a_visitor_or_a_job_has_no_name(self, quiet_owner: Owner, time: Time) -> None:
        form = quiet_owner.api().post("/api/forms/create", FORM)["form"]["id"]
        time.pass_by(seconds=1)
        submit(form, visitor="hash-of-the-day", name="Ada", email="ada@example.com")
        audit.row(quiet_owner.workspace.id, AuditEvent.by_job("site-deletion")).save()
        entries_shown = log(quiet_owner)["entries"][:2]
        kinds = {entry["actor"]["kind"]: entry for entry in entries_shown}
        assert kinds.keys() == {"visitor", "job"}
        assert kinds["job"]["title"] is None
        assert kinds["visitor"]["title"] == REGISTRY["submit_form"].title
        assert "hash-of-the-day" not in str(entries_shown)

    def test_entry_names_a_revoked_key_and_a_removed_member(self, quiet_owner: Owner) -> None:
        home = quiet_owner.workspace.id
        account = call_operator("create_account", email="bob@example.com", password=PASSWORD)
        call_operator("add_member", workspaceId=home, email="bob@example.com", role="manager")
        who = {"account_id": account["accountId"], "membership": "manager"}
        key = call_console(home, "create_key", **who, name="Laptop", scopes=["*:write"])
        Api(key["token"]).post("/api/projects/create", {"title": "Bakery"})
        call_operator("remove_member", workspaceId=home, email="bob@example.com")
        (entry,) = [e for e in log(quiet_owner)["entries"] if e["operation"] == "create_site"]
        assert (entry["actor"]["email"], entry["key"]["name"]) == ("bob@example.com", "Laptop")

    def test_every_operation_has_an_area(self) -> None:
        from chalicelib.domains.identity.operations import audit_log

        areas = audit_log._areas()
        missing = [operation.name for operation in REGISTRY if areas[operation.name] is None]
        assert missing == [], (
            "These are in no area. Name their domain, module or route in logged= of an area in "
            "chalicelib/core/areas.py."
        )
        assert {"identity", "pages", "billing"} <= set(areas.values())


@pytest.mark.store
class TestPages:
    def test_pages_go_from_newest_to_oldest_without_a_gap(
        self, quiet_owner: Owner, time: Time
    ) -> None:
        write(quiet_owner, 7, time)
        pages, position = [], None
        while True:
            page = log(quiet_owner, limit=3, before=position)
            pages.append([entry["operation"] for entry in page["entries"]])
            position = page["next"]
            if position is None:
                break
        assert pages == [
            ["change-6", "change-5", "change-4"],
            ["change-3", "change-2", "change-1"],
            ["change-0", "create_workspace"],
        ]

    def test_full_last_page_reports_no_next_page(self, quiet_owner: Owner, time: Time) -> None:
        write(quiet_owner, 2, time)
        assert log(quiet_owner, limit=3)["next"] is None
        assert log(quiet_owner, limit=2)["next"] is not None

    def test_later_pages_are_stable_while_changes_are_added(
        self, quiet_owner: Owner, time: Time
    ) -> None:
        write(quiet_owner, 4, time)
        position = log(quiet_owner, limit=2)["next"]
        write(quiet_owner, 1, time)
        assert entries(quiet_owner, limit=2, before=position) == ["change-1", "change-0"]

    @pytest.mark.parametrize("position", ["0", "~~", "01HZZZZZZZZZZZZZZZZZZZZZZZ", "ё"])
    def test_unknown_positions_are_accepted(self, position: str, quiet_owner: Owner) -> None:
        assert entries(quiet_owner, before=position) in ([], ["create_workspace"])

    def test_entries_older_than_ninety_days_are_left_out(
        self, quiet_owner: Owner, time: Time
    ) -> None:
        time.pass_by(days=88)
        assert entries(quiet_owner) == ["create_workspace"]
        time.pass_by(days=1, seconds=1)
        assert entries(quiet_owner) == []
        assert entries(quiet_owner, **{"from": "2020-01-01"}) == []

    def test_page_takes_one_query_and_four_batch_reads(self, quiet_owner: Owner) -> None:
        quiet_owner.api().post("/api/projects/create", {"title": "Bakery"})
        with metering() as usage:
            log(quiet_owner)
        assert usage.calls == ["Query", *["BatchGetItem"] * 4]


class TestFilters:
    def test_filter_by_actor(self, quiet_owner: Owner, time: Time) -> None:
        quiet_owner.api().post("/api/projects/create", {"title": "Bakery"})
        write(quiet_owner, 1, time, actor="visitor:x")
        owner_id = quiet_owner.workspace.owner_id
        assert entries(quiet_owner, actor=owner_id) == ["create_site"]
        assert entries(quiet_owner, actor="visitor") == ["change-0"]
        assert set(entries(quiet_owner, actor="operator")) == {"create_key", "create_workspace"}
        assert entries(quiet_owner, actor="nobody") == []

    def test_filter_by_area(self, quiet_owner: Owner) -> None:
        quiet_owner.api().post("/api/projects/create", {"title": "Bakery"})
        assert entries(quiet_owner, area="sites") == ["create_site"]
        assert entries(quiet_owner, area="sites", actor="operator") == []
        assert entries(quiet_owner, area="nonsense") == []

    def test_filter_by_days_in_the_workspaces_zone(self, quiet_owner: Owner, time: Time) -> None:
        write(quiet_owner, 1, time)
        for day, operations in (("15", ["create_workspace"]), ("16", ["change-0"]), ("17", [])):
            date = f"2027-01-{day}"
            assert entries(quiet_owner, **{"from": date, "to": date}) == operations
        moscow = {"from": "2027-01-16T15:00", "to": "2027-01-16T15:00:01"}
        assert entries(quiet_owner, **moscow) == ["change-0"]
        assert entries(quiet_owner, to="2027-01-16T14:59:59") == ["create_workspace"]
        assert entries(quiet_owner, to="2020-01-01") == []

    def test_filtered_page_reads_a_limited_number_and_reports_where_to_continue(
        self, quiet_owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "MAX_SCANNED", 5)
        write(quiet_owner, 1, time, actor="job")
        write(quiet_owner, 7, time)
        first = log(quiet_owner, actor="job")
        assert first["entries"] == []
        assert first["next"] is not None
        second = log(quiet_owner, actor="job", before=first["next"])
        assert [entry["operation"] for entry in second["entries"]] == ["change-0"]
        assert second["next"] is None

    def test_filtered_page_ends_when_it_is_full(self, quiet_owner: Owner, time: Time) -> None:
        write(quiet_owner, 5, time, actor="job")
        first = log(quiet_owner, actor="job", limit=3)
        assert [e["operation"] for e in first["entries"]] == ["change-4", "change-3", "change-2"]
        second = log(quiet_owner, actor="job", limit=3, before=first["next"])
        assert [entry["operation"] for entry in second["entries"]] == ["change-1", "change-0"]
        assert second["next"] is None


class TestAccess:
    def test_a_foreign_key_or_account_in_a_row_is_not_resolved(
        self, quiet_owner: Owner, owner: Owner
    ) -> None:
        (key,) = call_console(owner.workspace.id, "list_keys")["keys"]
        audit.row(quiet_owner.workspace.id, AuditEvent("x", "nobody", key_id=key["id"])).save()
        entry = log(quiet_owner)["entries"][0]
        assert entry["key"] is None
        assert entry["actor"] == {"kind": "account", "id": "nobody", "name": None, "email": None}

    def test_managers_and_the_operator_can_read_the_log(self, quiet_owner: Owner) -> None:
        assert entries(quiet_owner, membership="manager") == ["create_workspace"]
        with pytest.raises(ForbiddenError, check=keyed("role_required", role="manager")):
            entries(quiet_owner, membership="member")
        page = call_operator("list_audit_log", workspaceId=quiet_owner.workspace.id)
        assert [entry["operation"] for entry in page["entries"]] == ["create_workspace"]
        with pytest.raises(NotFoundError, check=keyed("workspace")):
            call_operator("list_audit_log", workspaceId="nobody")


def test_reading_the_log_adds_no_entry(quiet_owner: Owner) -> None:
    entry_count = sum(1 for _ in AuditTableRow.scan())
    log(quiet_owner)
    assert sum(1 for _ in AuditTableRow.scan()) == entry_count
