"""Members link Telegram chats by codes, and end the links."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import ForbiddenError, NotConfiguredError, UpstreamFailedError
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED
from chalicelib.domains.notifications.flows import telegram_chats
from chalicelib.domains.notifications.store import telegram_links
from chalicelib.domains.notifications.store.telegram_links import TelegramLinkRow
from chalicelib.engine import jobs
from chalicelib.gateways.messenger_errors import MessengerError
from tests import fakes
from tests.conftest import Owner, all_rows, call_console, call_operator, run_concurrently
from tests.domains.notifications.helpers import (
    LINKED,
    STOPPED,
    WRONG,
    is_linked,
    link,
    new_code,
    new_member,
    send_text,
    state,
)
from tests.fakes.telegram import NAME, FakeTelegram, failure

pytestmark = pytest.mark.usefixtures("telegram")


def chats(owner: Owner) -> list[int]:
    """Return the chats that are linked to members of a workspace."""
    rows = TelegramLinkRow.partition(telegram_links._workspace_partition(owner.workspace.id))
    return [int(row.chat_id) for row in rows]


def test_a_member_links_the_chat_that_sends_the_code(owner: Owner) -> None:
    link = call_console(owner.workspace.id, "link_telegram", account_id=owner.workspace.owner_id)
    assert link["bot"] == NAME
    assert link["url"] == f"https://t.me/{NAME}?start={link['code']}"
    assert not is_linked(owner)
    answer = send_text(7, f"/start {link['code']}", username="ada")
    assert answer.startswith(f"{LINKED} about the workspace “{owner.workspace.name}”")
    link_state = state(owner)
    assert link_state["isConfigured"] is True
    assert (link_state["isLinked"], link_state["name"]) == (True, "@ada")
    assert chats(owner) == [7]


def test_codes_are_stored_as_hashes(owner: Owner) -> None:
    code = new_code(owner)
    assert code not in str(all_rows())


def test_plain_members_link_their_own_chats(owner: Owner) -> None:
    account_id = new_member(owner, "plain@example.com")
    code = new_code(owner, account_id, membership="member")
    assert send_text(8, f"/start {code}").startswith(LINKED)
    assert is_linked(owner, account_id)
    assert not is_linked(owner)


def test_a_new_chat_replaces_the_former_one(owner: Owner) -> None:
    link(owner, 7)
    link(owner, 8)
    assert chats(owner) == [8]
    assert send_text(7, "/stop").startswith(STOPPED)
    assert chats(owner) == [8]


def test_a_chat_can_be_linked_again_to_the_same_member(owner: Owner) -> None:
    link(owner, 7)
    link(owner, 7)
    assert chats(owner) == [7]
    send_text(7, "/stop")
    assert chats(owner) == []
    link(owner, 7)
    assert chats(owner) == [7]


def test_code_sent_by_two_chats_links_one(owner: Owner) -> None:
    code = new_code(owner)
    answers = run_concurrently(2, lambda number: send_text(10 + number, f"/start {code}"))
    assert sorted(answer.startswith(LINKED) for answer in answers) == [False, True]
    winner = 10 + [answer.startswith(LINKED) for answer in answers].index(True)
    assert chats(owner) == [winner]


def test_code_sent_twice_concurrently_links_once(owner: Owner) -> None:
    code = new_code(owner)
    answers = run_concurrently(2, lambda _: send_text(7, f"/start {code}"))
    assert all(answer.startswith(LINKED) for answer in answers)
    assert chats(owner) == [7]


def test_concurrent_codes_of_a_member_leave_one_chat(owner: Owner) -> None:
    codes = [new_code(owner), new_code(owner)]
    answers = run_concurrently(2, lambda number: send_text(10 + number, f"/start {codes[number]}"))
    assert all(answer.startswith(LINKED) for answer in answers)
    (winner,) = chats(owner)
    send_text(21 - winner, "/stop")  # the other of 10 and 11
    assert chats(owner) == [winner]
    send_text(winner, "/stop")
    assert chats(owner) == []


def test_a_code_is_valid_for_ten_minutes(owner: Owner) -> None:
    begun = datetime(2026, 6, 1, tzinfo=UTC)
    with clock.using(lambda: begun):
        early, late = new_code(owner), new_code(owner)
    with clock.using(lambda: begun + timedelta(minutes=9, seconds=59)):
        assert send_text(7, f"/start {early}").startswith(LINKED)
    with clock.using(lambda: begun + timedelta(minutes=10)):
        assert send_text(8, f"/start {late}").startswith(WRONG)
    assert chats(owner) == [7]


def test_used_code_is_wrong_for_other_chats_and_later(owner: Owner) -> None:
    code = new_code(owner)
    send_text(7, f"/start {code}")
    assert send_text(8, f"/start {code}").startswith(WRONG)
    send_text(7, "/stop")
    assert send_text(7, f"/start {code}").startswith(WRONG)
    assert chats(owner) == []


def test_a_member_unlinks_in_the_console(owner: Owner) -> None:
    link(owner, 7)
    arguments = {"account_id": owner.workspace.owner_id}
    assert call_console(owner.workspace.id, "unlink_telegram", **arguments) == {"wasLinked": True}
    assert call_console(owner.workspace.id, "unlink_telegram", **arguments) == {"wasLinked": False}
    assert chats(owner) == []


def test_stop_asks_for_which_workspace_and_ends_all_on_request(
    owner: Owner, new_owner: Callable[..., Owner]
) -> None:
    other, third = new_owner(), new_owner()
    link(owner, 7)
    link(other, 7)
    link(third, 8)
    question = send_text(7, "/stop")
    assert all(each.workspace.name in question for each in (owner, other))
    assert is_linked(owner)
    assert is_linked(other)
    send_text(7, "/stop_all")
    assert [is_linked(member) for member in (owner, other, third)] == [False, False, True]


def test_a_member_of_another_workspace_neither_sees_nor_ends_a_link(
    owner: Owner, new_owner: Callable[..., Owner]
) -> None:
    other = new_owner()
    link(owner, 7)
    assert state(other)["name"] is None
    gone = call_console(other.workspace.id, "unlink_telegram", account_id=other.workspace.owner_id)
    assert gone == {"wasLinked": False}
    elsewhere = call_console(
        other.workspace.id, "unlink_telegram", account_id=owner.workspace.owner_id
    )
    assert elsewhere == {"wasLinked": False}
    assert chats(owner) == [7]
    assert chats(other) == []


def test_linking_requires_a_workspace() -> None:
    for operation in ("link_telegram", "unlink_telegram"):
        with pytest.raises(ForbiddenError):
            call_console("platform", operation, membership="account")


@pytest.mark.parametrize(
    "refusal",
    [
        failure(403, "Forbidden: bot was blocked by the user"),
        failure(400, "Bad Request: chat not found"),
    ],
)
def test_a_message_to_a_chat_that_is_gone_removes_its_links(
    owner: Owner, telegram: FakeTelegram, refusal: tuple[int, object]
) -> None:
    link(owner, 7)
    assert telegram_chats.deliver("w", chat_id=7, text="A new lead")
    telegram.failures = [refusal]
    assert not telegram_chats.deliver("w", chat_id=7, text="A new lead")
    assert chats(owner) == []
    assert telegram.texts == ["A new lead"]


@pytest.mark.parametrize(
    "refusal", [failure(429, "Too Many Requests", retry_after=9), failure(500, "Oops")]
)
def test_a_message_that_fails_for_another_reason_keeps_the_links(
    owner: Owner, telegram: FakeTelegram, refusal: tuple[int, object]
) -> None:
    link(owner, 7)
    telegram.failures = [refusal]
    with pytest.raises(MessengerError):
        telegram_chats.deliver("w", chat_id=7, text="A new lead")
    assert chats(owner) == [7]


class TestEndOfAMembership:
    """Links of members who leave, or whose account is disabled."""

    @staticmethod
    def leave(owner: Owner) -> None:
        call_operator("remove_member", workspaceId=owner.workspace.id, email="leaver@example.com")

    def test_a_former_member_loses_the_link(self, owner: Owner) -> None:
        account_id = new_member(owner, "leaver@example.com")
        link(owner, 8, account_id)
        assert chats(owner) == [8]
        self.leave(owner)
        jobs.run(JOB_HANDLERS)
        assert chats(owner) == []
        assert not is_linked(owner, account_id)
        assert "TELEGRAM_CHAT" not in str(all_rows())

    def test_link_dated_after_the_removal_ends_without_a_membership(self, owner: Owner) -> None:
        """The clocks of two machines may differ."""
        account_id = new_member(owner, "leaver@example.com")
        link(owner, 8, account_id)
        begun = clock.now()
        with clock.using(lambda: begun - timedelta(seconds=5)):
            self.leave(owner)
        jobs.run(JOB_HANDLERS)
        assert "TELEGRAM_CHAT" not in str(all_rows())

    def test_member_who_returns_keeps_the_new_link(self, owner: Owner) -> None:
        account_id = new_member(owner, "leaver@example.com")
        link(owner, 8, account_id)
        begun = clock.now()
        with clock.using(lambda: begun + timedelta(seconds=1)):
            self.leave(owner)
        with clock.using(lambda: begun + timedelta(seconds=2)):
            call_operator("add_member", workspaceId=owner.workspace.id, email="leaver@example.com")
            link(owner, 9, account_id)
            jobs.run(JOB_HANDLERS)
        assert chats(owner) == [9]

    def test_member_who_returns_before_the_job_loses_the_former_link(self, owner: Owner) -> None:
        account_id = new_member(owner, "leaver@example.com")
        link(owner, 8, account_id)
        begun = clock.now()
        with clock.using(lambda: begun + timedelta(seconds=1)):
            self.leave(owner)
        with clock.using(lambda: begun + timedelta(seconds=2)):
            call_operator("add_member", workspaceId=owner.workspace.id, email="leaver@example.com")
            assert jobs.run(JOB_HANDLERS)[MEMBERSHIP_ENDED] == 1
        assert not is_linked(owner, account_id)
        assert chats(owner) == []

    @pytest.mark.parametrize("operation", ["remove_member", "disable_account"])
    def test_a_code_of_a_former_member_is_wrong(self, owner: Owner, operation: str) -> None:
        account_id = new_member(owner, "leaver@example.com")
        code = new_code(owner, account_id)
        arguments = {"workspaceId": owner.workspace.id} if operation == "remove_member" else {}
        call_operator(operation, email="leaver@example.com", **arguments)
        assert send_text(8, f"/start {code}").startswith(WRONG)
        assert not is_linked(owner, account_id)


def test_links_are_in_the_audit_log_of_the_workspace(owner: Owner) -> None:
    link(owner, 7)
    send_text(7, "/stop")
    entries = call_console(owner.workspace.id, "list_audit_log", limit=3)["entries"]
    assert [(log_entry["operation"], log_entry["actor"]["id"]) for log_entry in entries] == [
        ("unlink_telegram", owner.workspace.owner_id),
        ("link_telegram", owner.workspace.owner_id),
        ("link_telegram", owner.workspace.owner_id),
    ]
    assert {log_entry["area"] for log_entry in entries} == {"identity"}


def test_a_code_needs_a_bot_that_answers(owner: Owner, telegram: FakeTelegram) -> None:
    telegram.breaks = fakes.status(502)
    with pytest.raises(UpstreamFailedError):
        new_code(owner)


def test_codes_require_a_bot(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
    reload_settings()
    assert state(owner)["isConfigured"] is False
    with pytest.raises(NotConfiguredError):
        new_code(owner)
