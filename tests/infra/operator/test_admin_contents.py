"""The operator's commands for sites, files, clients, money and bots."""

from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.ids import new_id
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import audit
from chalicelib.engine.listing import counters
from tests.conftest import Api, Owner, all_rows
from tests.factories.examples import AGENT, FORM, submit
from tests.factories.files import list_stored_files
from tests.factories.operator import LIST, Operator

pytestmark = pytest.mark.usefixtures("reload_settings")
"""Commands that connect to a stage change the environment of this process."""


class TestSuspendAndResumeSite:
    def test_suspend_and_resume_print_the_status_that_lists_show(
        self, operator: Operator, owner: Owner
    ) -> None:
        api = owner.api()
        site = api.post("/api/projects/create", {"title": "x"})["project"]["id"]
        for command, status in (
            ("suspend-site", "suspended"),
            ("suspend-site", "suspended"),
            ("resume-site", "active"),
            ("resume-site", "active"),
        ):
            assert operator.run(command, "--site", site) == {"id": site, "status": status}
            assert api.get(LIST)["projects"][0]["status"] == status
            assert counters.read(owner.workspace.id, noun="SITE")[f"status:{status}"] == 1


class TestAddFile:
    @pytest.fixture
    def paper_file(self, tmp_path: Path) -> Path:
        """A local file."""
        path = tmp_path / "Отчёт.pdf"
        path.write_bytes(b"%PDF-1.7 \x00\xff")
        return path

    @staticmethod
    def words(workspace: str, path: Path, folder: str = "Бумаги") -> tuple[str, ...]:
        return "add-file", "--workspace", workspace, "--folder", folder, "--path", str(path)

    def test_add_file_prints_the_file_as_the_list_shows_it(
        self, operator: Operator, workspace: str, paper_file: Path
    ) -> None:
        printed = operator.run(*self.words(workspace, paper_file))
        api = Api(operator.create_key(workspace)["token"])
        (folder,) = api.get("/api/files/list")["folders"]
        (file,) = api.get(f"/api/files/list?folderId={folder['id']}")["files"]
        assert printed == file
        assert (file["name"], file["mimeType"]) == ("Отчёт.pdf", "application/pdf")
        assert (folder["name"], folder["filesCount"]) == ("Бумаги", 1)
        (entry,) = [e for e in audit.latest(workspace) if e.operation == "add_file"]
        assert entry.actor == "operator"
        assert f"file:{file['id']}" in entry.resources

    def test_add_file_uses_an_existing_folder(
        self, operator: Operator, workspace: str, paper_file: Path
    ) -> None:
        first = operator.run(*self.words(workspace, paper_file))
        second_file = operator.run(*self.words(workspace, paper_file, "БУМАГИ"))
        assert first["folderId"] == second_file["folderId"]

    @pytest.mark.parametrize("folder", ["", "a/b", "x" * 101])
    def test_add_file_refuses_a_misleading_folder_name(
        self, folder: str, operator: Operator, workspace: str, paper_file: Path
    ) -> None:
        old_rows = all_rows()
        assert "folder: expected" in operator.run_failing(
            *self.words(workspace, paper_file, folder)
        )
        assert all_rows() == old_rows

    def test_add_file_respects_the_quota(
        self, operator: Operator, workspace: str, paper_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 5)
        old_rows, objects = all_rows(), list_stored_files()
        assert "plan" in operator.run_failing(*self.words(workspace, paper_file))
        assert all_rows() == old_rows
        assert list_stored_files() == objects

    def test_add_file_refuses_a_missing_or_too_large_file(
        self, operator: Operator, workspace: str, tmp_path: Path
    ) -> None:
        empty, damaged, large = (tmp_path / name for name in ("empty", "damaged", "large"))
        empty.touch()
        damaged.write_bytes(b"\x89PNG\r\n\x1a\n")
        large.write_bytes(b"x" * 20_000_001)
        for path in (tmp_path, tmp_path / "none", empty, damaged, large):
            assert operator.run_failing(*self.words(workspace, path))


class TestEraseClient:
    def test_erase_client_prints_the_removed_data(self, operator: Operator, workspace: str) -> None:
        api = Api(operator.create_key(workspace)["token"])
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        lead = submit(form, name="Ada", phone="8 (495) 123-45-67")
        client = api.get(f"/api/forms/collection/{lead}")["lead"]["clientId"]
        words = ("erase-client", "--workspace", workspace)
        dry_run = operator.run(*words, "--phone", "+7 495 123 45 67", "--dry-run")
        assert dry_run["erased"] is False
        assert [record["phone"] for record in dry_run["found"]] == ["+74951234567"] * 2
        assert api.get(f"/api/forms/collection/{lead}")["lead"]["phone"] == "+74951234567"
        printed = operator.run(*words, "--phone", "+7 495 123 45 67")
        kinds = [(record["kind"], record["phone"]) for record in printed.pop("found")]
        assert kinds == [("client", None), ("lead", None)]
        assert printed == {
            "erased": True,
            "clientId": client,
            "clientIds": [client],
            "leads": 1,
            "bookings": 0,
            "cancelledBookings": [],
            "dialogs": 0,
            "storedAnswers": 0,
            "linkedClients": [],
        }
        assert api.get(f"/api/forms/collection/{lead}")["lead"]["phone"] is None
        (entry,) = [e for e in audit.latest(workspace) if e.operation == "erase_client"][-1:]
        assert entry.actor == "operator"
        assert "4951234567" not in str(entry.attribute_values)


class TestMoney:
    @pytest.fixture(autouse=True)
    def _account(self, operator: Operator) -> None:
        operator.create_account("ann@example.com")

    def changes(self, operator: Operator, command: str, kopecks: int, key: str) -> Any:
        words = ("--account", "ann@example.com", "--kopecks", str(kopecks), "--reason", "Paid")
        return operator.run(command, *words, "--idempotency-key", key)

    def test_balance_is_printed_with_its_entries(self, operator: Operator) -> None:
        self.changes(operator, "credit", 500, "a")
        self.changes(operator, "adjust", 50, "b")
        assert operator.run("balance", "--account", "ann@example.com") == {
            "accountId": accounts.require_by_email("ann@example.com").id,
            "available": 550,
            "reserved": 0,
            "entries": 2,
        }
        printed = operator.run("ledger", "--account", "ann@example.com")["entries"]
        assert [(e["kind"], e["amount"], e["balanceAfter"]) for e in printed] == [
            ("adjust", 50, 550),
            ("topup", 500, 500),
        ]
        assert list(printed[0]) == [
            *("id", "kind", "amount", "held", "balanceAfter", "requestId", "agentId", "at")
        ]
        last = operator.run("ledger", "--account", "ann@example.com", "--limit", "1")
        assert last["entries"] == printed[:1]


class TestBots:
    @pytest.fixture
    def agent(self, workspace: str, operator: Operator) -> str:
        api = Api(operator.create_key(workspace)["token"])
        agent_id: str = api.post("/api/agents/create", AGENT)["agent"]["id"]
        return agent_id

    def test_bots_are_switched_on_and_off(self, operator: Operator, agent: str) -> None:
        printed = operator.run("set-bot", "--agent", agent, "--active", "false")
        assert printed == {"agentId": agent, "isActive": False, "isPrivate": False}
        printed = operator.run("set-bot", "--agent", agent, "--private", "true")
        assert printed == {"agentId": agent, "isActive": False, "isPrivate": True}
        line = operator.run_failing("set-bot", "--agent", agent)
        assert line.endswith("(validation_error: no_changes)")

    def test_limit_of_none_removes_a_bots_limit(self, operator: Operator, agent: str) -> None:
        words = ("--daily", "100", "--weekly", "0")
        printed = operator.run("set-bot-limits", "--agent", agent, *words)
        assert printed == {"agentId": agent, "daily": 100, "weekly": 0, "monthly": None}
        words = ("--daily", "none", "--monthly", "900")
        printed = operator.run("set-bot-limits", "--agent", agent, *words)
        assert printed == {"agentId": agent, "daily": None, "weekly": 0, "monthly": 900}
        limits = operator.run("bot-limits", "--agent", agent)
        windows = ("daily", "weekly", "monthly")
        assert [limits[window]["limit"] for window in windows] == [None, 0, 900]
        assert [limits[window]["remaining"] for window in windows] == [None, 0, 900]
        result = operator.invoke("set-bot-limits", "--agent", agent, "--daily", "many")
        assert (result.exit_code, "many" in result.stderr) == (1, True)

    @pytest.mark.parametrize(
        "words",
        [
            ("set-bot", "--active", "true"),
            ("set-bot-limits", "--daily", "1"),
            ("bot-limits",),
            ("create-bot-key", "--name", "x"),
            ("delete-bot-key", "--key", "x"),
        ],
    )
    def test_unknown_bots_are_not_found(self, operator: Operator, words: tuple[str, ...]) -> None:
        line = operator.run_failing(*words, "--agent", new_id())
        assert line.endswith("(not_found: agent)")
