"""Messages to members when processes are killed, responses are lost and senders are busy.

Every committed change is reported at least once. No other change is reported.
"""

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import retry
from chalicelib.core.jobs import JOB_HANDLERS, PEOPLE_EVENTS, Queue
from chalicelib.domains.notifications.flows import member_choices
from chalicelib.domains.notifications.rules.job_kinds import NOTIFY_MEMBER
from chalicelib.domains.notifications.store import choices
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.gateways import mail
from chalicelib.gateways.mail import Mail, MailDelayedError
from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.notifications.helpers import link, new_member
from tests.domains.notifications.inbox import Inbox, choose
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.dynamodb_faults import TIMES, closed
from tests.fakes.telegram import FakeTelegram, failure
from tests.support.effort import matrix, slow_but_for

pytestmark = pytest.mark.usefixtures("database")
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
STEP = 3
every_third_write = pytest.mark.parametrize("first", slow_but_for([1], range(1, STEP + 1)))
"""A fault at every third write, beginning with the first. The slow tests have the others."""
LEASE = jobs.LEASE + timedelta(seconds=1)


class Killed(BaseException):
    """The process ends between two lines."""


def kill(_http: Any, _parsed: dict[str, Any]) -> None:
    raise Killed


@contextmanager
def failing_write(number: int, fault: Callable[..., None], when: str) -> Iterator[list[str]]:
    """Apply a fault to the write with this number; after a kill, to all requests that follow.

    Yields the writes that were begun.
    """
    seen: list[str] = []

    def hits(name: str) -> bool:
        return name in WRITES and len(seen) == number

    def begin_write(model: Any, **_: Any) -> None:
        if fault is kill and (len(seen) > number or (len(seen) == number and when == "after")):
            raise Killed
        if model.name in WRITES:
            seen.append(model.name)
        if when == "before" and hits(model.name):
            fault(None, {})

    def end_write(model: Any, **_: Any) -> None:
        if when == "after" and hits(model.name):
            fault(None, {})

    events = connection().client.meta.events
    events.register_first("before-call.dynamodb", begin_write)
    events.register_first("after-call.dynamodb", end_write)
    try:
        yield seen
    finally:
        events.unregister("before-call.dynamodb", begin_write)
        events.unregister("after-call.dynamodb", end_write)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts of requests follow each other without a pause."""
    monkeypatch.setattr(retry, "sleep", lambda _: None)


@pytest.fixture
def lead_inbox(inbox: Inbox, owner: Owner) -> Inbox:
    """The inbox of an owner who has chosen emails about leads, in English."""
    choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail"])
    return inbox


def kinds_of_jobs(owner: Owner) -> set[str]:
    """Return the kinds of jobs that wait in the workspace."""
    return {job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)}


def names_of_leads(api: Api) -> list[str]:
    rows = api.get("/api/forms/collection-list?size=100")["collections"]
    return [lead["name"] for lead in rows]


@every_third_write
@matrix("fault, when", [kill, closed], TIMES)
def test_every_committed_lead_is_reported_whichever_write_fails(
    lead_inbox: Inbox,
    things: Things,
    api: Api,
    time: Time,
    fault: Callable[..., None],
    when: str,
    first: int,
) -> None:
    for number in itertools.count(first, STEP):
        name = f"Ada {number}"
        with failing_write(number, fault, when) as seen, suppress(Killed):
            submit(things.form, name=name, email=f"ada{number}@example.com")
            run_until_idle()
        time.now += LEASE
        run_until_idle()
        is_committed = name in names_of_leads(api)
        assert (f"New lead: {name}" in lead_inbox.subjects) == is_committed, (number, seen)
        if len(seen) < number:
            break
        time.pass_by(minutes=11)
    # Emit, the jobs of all members and of one with their leases, the window, and the deletions.
    assert number > 6


@every_third_write
@matrix("fault, when", [kill, closed], TIMES)
def test_held_back_messages_are_reported_whichever_write_fails(
    lead_inbox: Inbox,
    things: Things,
    time: Time,
    fault: Callable[..., None],
    when: str,
    first: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chalicelib.domains.notifications.store.windows.MOST", 1)
    for number in itertools.count(first, STEP):
        time.pass_by(minutes=11)
        for _ in range(2):
            submit(things.form, name="Ada", email="ada@example.com")
        count_before = len(lead_inbox.mails)
        with failing_write(number, fault, when) as seen, suppress(Killed):
            run_until_idle()
            time.pass_by(minutes=11)
            run_until_idle()
        time.pass_by(minutes=11)
        run_until_idle()
        new = lead_inbox.subjects
        assert len(new) >= count_before + 2, (number, seen)
        assert any("1 more" in subject or "2 more" in subject for subject in new)
        for path in lead_inbox.folder.glob("*.eml"):
            path.unlink()
        if len(seen) < number:
            break
    assert number > 10


def test_client_erased_before_sending_is_in_no_message(
    lead_inbox: Inbox, owner: Owner, things: Things, time: Time
) -> None:
    submit(things.form, name="Ada", email="ada@example.com")
    jobs.run({PEOPLE_EVENTS: JOB_HANDLERS[PEOPLE_EVENTS]}, queue=Queue.EVENTS)
    assert NOTIFY_MEMBER in kinds_of_jobs(owner)
    call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
    run_until_idle()
    time.pass_by(days=1)
    run_until_idle()
    assert lead_inbox.mails == []


class TestWaits:
    """A busy sender gets no request before the stated time, and the log has no error."""

    def test_email_is_delayed_as_the_server_requests(
        self,
        lead_inbox: Inbox,
        things: Things,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        attempts: list[Mail] = []

        def delay(message: Mail) -> None:
            attempts.append(message)
            raise MailDelayedError("busy", 900.0)

        caplog.set_level(logging.INFO)
        with monkeypatch.context() as patched:
            patched.setattr(mail, "send", delay)
            submit(things.form, name="Ada", email="ada@example.com")
            run_until_idle()
            time.pass_by(seconds=899)
            run_until_idle()
        assert len(attempts) == 1
        time.pass_by(seconds=1)
        run_until_idle()
        assert lead_inbox.only()["Message-ID"].startswith(f"<{attempts[0].id}@")
        levels = {record.levelno for record in caplog.records if "message" in record.getMessage()}
        assert levels == {logging.INFO}

    def test_chat_message_is_delayed_as_telegram_requests(
        self, telegram: FakeTelegram, inbox: Inbox, owner: Owner, things: Things, time: Time
    ) -> None:
        link(owner, 7)
        choose(owner, owner.workspace.owner_id, "owner", "en", lead=["telegram"])
        telegram.failures = [failure(429, "Too Many Requests", retry_after=600)]
        submit(things.form, name="Ada", email="ada@example.com")
        run_until_idle()
        time.pass_by(seconds=599)
        run_until_idle()
        assert telegram.texts == []
        time.pass_by(seconds=1)
        run_until_idle()
        assert len(telegram.texts) == 1

    def test_message_is_dropped_after_a_day_with_one_warning(
        self,
        lead_inbox: Inbox,
        owner: Owner,
        things: Things,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        attempts: list[Mail] = []

        def delay(message: Mail) -> None:
            attempts.append(message)
            raise MailDelayedError("busy")

        monkeypatch.setattr(mail, "send", delay)
        submit(things.form, name="Ada", email="ada@example.com")
        for _ in range(72):
            run_until_idle()
            time.pass_by(hours=1)
        assert 4 <= len(attempts) <= 12
        assert [
            job for job in jobs.read_workspace_jobs(owner.workspace.id) if "notify" in job.kind
        ] == []
        severe = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [record.getMessage() for record in severe] == ["a message to a member was given up"]


class TestFormerMembers:
    def test_choices_of_a_former_member_are_removed(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        workspace = owner.workspace
        member = new_member(owner, "bob@example.com")
        choose(owner, member, "member", lead=["mail"])
        choose(owner, workspace.owner_id, "owner", lead=[])
        call_operator("remove_member", workspaceId=workspace.id, email="bob@example.com")
        jobs.run(JOB_HANDLERS)
        run_until_idle()  # the owner is notified of the removal
        assert list(choices.read_all(workspace.id)) == [workspace.owner_id]
        submit(things.form, name="Ada", email="ada@example.com")
        assert PEOPLE_EVENTS not in kinds_of_jobs(owner)

    def test_choices_of_a_returned_member_are_kept(self, inbox: Inbox, owner: Owner) -> None:
        workspace = owner.workspace
        member = new_member(owner, "bob@example.com")
        choose(owner, member, "member", lead=["mail"])
        call_operator("remove_member", workspaceId=workspace.id, email="bob@example.com")
        call_operator(
            "add_member", workspaceId=workspace.id, email="bob@example.com", role="member"
        )
        jobs.run(JOB_HANDLERS)
        assert member_choices.read_choices(workspace.id, member).wants("lead", "mail")
