"""The table of messages is complete, and nobody who causes an event is left without an answer."""

from collections.abc import Mapping

import pytest

from chalicelib.core.events import EVENT_TYPES, INTERNAL_TYPES, MESSAGE_KINDS, VISITOR_EVENTS
from chalicelib.core.jobs import JOB_HANDLERS, PEOPLE_EVENTS
from chalicelib.core.jobs import VISITOR_EVENTS as VISITOR_JOBS
from chalicelib.core.operations import load_all
from chalicelib.domains.billing.store.sms_holds import SETTLE_SMS
from chalicelib.domains.identity.rules.job_kinds import MEMBERSHIP_ENDED
from chalicelib.domains.notifications.rules import who_is_told
from chalicelib.domains.notifications.rules.job_kinds import (
    CHECK_SMS,
    NOTIFY_DIGEST,
    NOTIFY_MEMBER,
)
from chalicelib.domains.notifications.rules.who_is_told import (
    ACCOUNT_MAILS,
    EVENTS,
    JOBS,
    MEMBER_KINDS,
    NotSent,
    ToClient,
    Told,
    ToMembers,
)
from infra.local import told_table
from tests.factories.event_runs import unanswered
from tests.support.registers import check_register

load_all()
TABLE = "chalicelib/domains/notifications/rules/who_is_told.py"
DELIVERY = {
    *(VISITOR_JOBS, PEOPLE_EVENTS, NOTIFY_MEMBER, NOTIFY_DIGEST, MEMBERSHIP_ENDED),
    *(CHECK_SMS, SETTLE_SMS),
}
"""Jobs that carry out what rows of events say. Two follow an SMS that was sent."""


def test_every_event_has_a_row() -> None:
    check_register(
        EVENTS,
        declared=EVENT_TYPES.keys() | INTERNAL_TYPES.keys(),
        place=f"EVENTS of {TABLE}",
        line="a Told that says which members and clients get a message, or why nobody",
    )


def test_every_job_that_sends_a_message_has_a_row() -> None:
    flows = "chalicelib.domains.notifications.flows"
    kinds = {kind for kind, handler in JOB_HANDLERS.items() if handler.__module__.startswith(flows)}
    check_register(
        JOBS.keys() | ACCOUNT_MAILS.keys(),
        declared=kinds - DELIVERY,
        place=f"JOBS of {TABLE} (ACCOUNT_MAILS, if it goes to an account)",
        line="who gets the message",
    )


def test_the_engine_emits_what_the_table_sends() -> None:
    by_event = {
        told.members.kind: event
        for event, told in EVENTS.items()
        if isinstance(told.members, ToMembers)
    }
    assert by_event == {name: kind.type for name, kind in MESSAGE_KINDS.items()}
    opt_in = {name for name, told in MEMBER_KINDS.items() if not told.mailed}
    assert opt_in == {name for name, kind in MESSAGE_KINDS.items() if kind.opt_in}
    mailed = {event for event, told in EVENTS.items() if isinstance(told.client, ToClient)}
    assert mailed == VISITOR_EVENTS


def test_a_kind_goes_by_the_channels_of_a_kind_that_is_as_private() -> None:
    for told in MEMBER_KINDS.values():
        assert not told.like or MEMBER_KINDS[told.like].owner_only == told.owner_only


def test_every_reason_is_given() -> None:
    for told in (*EVENTS.values(), *JOBS.values()):
        for cell in (told.client, told.members):
            assert not isinstance(cell, NotSent) or cell.because


def test_what_visitors_cause_reaches_somebody() -> None:
    assert unreached({**EVENTS, **JOBS}) == set()
    planted = Told(NotSent("planted"), NotSent("planted"), by_visitors=True)
    assert unreached({**EVENTS, "planted": planted}) == {"planted"}


def unreached(table: Mapping[str, Told]) -> set[str]:
    """Return the rows of visitors by which nobody is told."""
    return {name for name, told in table.items() if told.by_visitors and not told.reaches_somebody}


def test_an_event_of_a_visitor_that_reaches_nobody_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = [("booking.moved", "visitor:1"), ("lead.status_changed", "account")]
    assert unanswered(moved) == set()
    planted = {**EVENTS, "booking.moved": Told(NotSent("planted"), NotSent("planted"))}
    monkeypatch.setattr(who_is_told, "EVENTS", planted)
    assert unanswered(moved) == {"booking.moved"}


def test_the_document_has_the_table() -> None:
    is_current = told_table.markdown() in told_table.DOCUMENT.read_text()
    assert is_current, "The table of docs/notifications.md is stale: run make update."
