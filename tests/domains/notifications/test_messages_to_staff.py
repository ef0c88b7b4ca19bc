"""Messages to members with the role *staff*, who get those about the own bookings only."""

import re
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.domains.schedule.flows import busy_links, busy_readings
from chalicelib.domains.schedule.rules.job_kinds import READ_BUSY_TIMES
from chalicelib.domains.schedule.store import busy_calendars
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.engine import jobs
from chalicelib.engine.unit import run_unit
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import submit
from tests.factories.forms import new_form
from tests.factories.people import Account
from tests.factories.salon import Salon

BOB = "bob@example.com"
OWN_KINDS = {"booking", "booking_moved", "booking_cancelled", "calendar_unread"}
ADA = {"name": "Ada", "phone": "+74951112233", "email": "ada@example.com"}
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(api: Api, inbox: Inbox) -> Salon:
    return Salon.opened(api, resources=[{"name": "Bob"}, {"name": "Olga"}])


@pytest.fixture
def bob(owner: Owner, salon: Salon) -> Account:
    """A member of the staff. The owner wants no message about bookings."""
    choose(
        owner,
        owner.workspace.owner_id,
        "owner",
        **{kind: [] for kind in OWN_KINDS - {"calendar_unread"}},
    )
    account = Account.create("bob")
    account.joins(owner.workspace.id, "staff", salon.resources[0])
    return account


def mails_to_bob(inbox: Inbox) -> list[Any]:
    run_until_idle()
    return [mail for mail in inbox.mails if mail["To"] == BOB]


def test_the_staff_choose_kinds_about_the_own_bookings_only(owner: Owner, bob: Account) -> None:
    workspace = owner.workspace.id
    choices = bob.call(workspace, "get_notifications")["choices"]
    assert {choice["kind"] for choice in choices} == OWN_KINDS
    assert all(choice["mail"] for choice in choices)
    wanted = [
        {"kind": kind, "mail": True, "telegram": True}
        for kind in ("lead", "booking_paid", "payment_disputed", "dialog", "contacts")
    ]
    choices = bob.call(workspace, "set_notifications", choices=wanted)["choices"]
    assert {choice["kind"] for choice in choices} == OWN_KINDS
    # A choice of a former role does not survive in the lower one either.
    call_console(workspace, "set_member_role", email=BOB, role="manager")
    bob.call(workspace, "set_notifications", choices=wanted)
    call_console(workspace, "set_member_role", email=BOB, role="staff")
    choices = bob.call(workspace, "get_notifications")["choices"]
    assert {choice["kind"] for choice in choices} == OWN_KINDS


@pytest.mark.usefixtures("bob")
def test_the_staff_get_the_own_bookings_and_neither_leads_nor_the_bookings_of_others(
    owner: Owner, salon: Salon, inbox: Inbox
) -> None:
    own, other = salon.resources
    salon.book("2027-01-18T10:00", resourceId=other)
    submit(new_form(owner.api()), name="Ada")
    assert mails_to_bob(inbox) == []
    salon.book("2027-01-18T12:00", resourceId=own)
    assert len(mails_to_bob(inbox)) == 1


@pytest.mark.usefixtures("bob")
def test_a_message_has_the_clients_phone_and_no_address(salon: Salon, inbox: Inbox) -> None:
    body = salon.order("2027-01-18T12:00", resourceId=salon.resource) | {"client": ADA}
    salon.api.post("/api/bookings/create", body)
    (mail,) = mails_to_bob(inbox)
    for kind in ("plain", "html"):
        text = text_of(mail, kind)
        assert "+74951112233" in text
        assert "ada@example.com" not in text


@pytest.mark.usefixtures("bob")
def test_who_loses_a_booking_is_told_the_times_without_the_client(
    salon: Salon, inbox: Inbox
) -> None:
    own, other = salon.resources
    body = salon.order("2027-01-18T12:00", resourceId=own, notes="Decaf")
    # A short name may be in a random token of a link.
    body |= {"client": ADA | {"name": "Ada Lovelace"}}
    booking = salon.api.post("/api/bookings/create", body)["booking"]
    assert len(mails_to_bob(inbox)) == 1
    inbox.clear()
    move = {"id": booking["id"], "resourceId": other, "startAt": "2027-01-19T12:00"}
    salon.api.post("/api/bookings/reschedule", move)
    (mail,) = mails_to_bob(inbox)
    for text in (mail["Subject"], text_of(mail), text_of(mail, "html")):
        assert not [
            word for word in ("Lovelace", "4951112233", "Decaf", booking["id"]) if word in text
        ]
    assert "18" in text_of(mail)


def lose_calendar(workspace_id: str, resource: str, time: Time) -> None:
    """Read the own calendar of a resource, which has failed for more than a day."""
    calendar = busy_calendars.new(workspace_id, resource)
    busy_links.set_link(calendar, "https://127.0.0.1/", "127.0.0.1")
    calendar.failures, calendar.failing_since = 1, time.now - timedelta(days=2)
    run_unit(workspace_id, None, lambda unit: unit.save(calendar))
    payload = {"resourceId": resource, "turn": int(calendar.turn)}
    busy_readings.read_busy_times(jobs.row(READ_BUSY_TIMES, workspace_id, payload))


class TestOwnCalendar:
    def test_the_staff_is_told_that_the_own_one_is_not_read_without_a_link_to_a_managers_page(
        self, owner: Owner, bob: Account, salon: Salon, inbox: Inbox, time: Time
    ) -> None:
        lose_calendar(owner.workspace.id, salon.resource, time)
        (mail,) = mails_to_bob(inbox)
        assert mail["Subject"] == "Календарь не читается уже сутки: Bob"
        for kind in ("plain", "html"):
            text = text_of(mail, kind)
            assert "Передайте менеджеру" in text
            assert "busy-times" not in text
            links = set(re.findall(rf"/console/w/{owner.workspace.slug}[^\s\"<]*", text))
            assert links == {f"/console/w/{owner.workspace.slug}/notifications"}
        texts = [text_of(each) for each in inbox.mails if each["To"] != BOB]
        (to_owner,) = [each for each in texts if "calendar was not read" in each]
        assert f"/staff/{salon.resource}/busy-times" in to_owner
        assert "Give a manager" not in to_owner
        assert bob.call(owner.workspace.id, "get_notifications")["choices"]

    @pytest.mark.usefixtures("bob")
    def test_the_calendar_of_a_colleague_is_not_theirs(
        self, owner: Owner, salon: Salon, inbox: Inbox, time: Time
    ) -> None:
        lose_calendar(owner.workspace.id, salon.resources[1], time)
        assert mails_to_bob(inbox) == []

    @pytest.mark.usefixtures("bob")
    def test_a_calendar_that_is_read_again_in_the_meantime_is_not_reported(
        self, owner: Owner, salon: Salon, inbox: Inbox, time: Time
    ) -> None:
        lose_calendar(owner.workspace.id, salon.resource, time)
        calendar = BusyCalendarRow.of(owner.workspace.id, salon.resource)
        assert calendar is not None
        calendar.failures, calendar.failing_since = 0, None
        calendar.problem, calendar.succeeded_at = None, time.now
        run_unit(owner.workspace.id, None, lambda unit: unit.save(calendar))
        assert mails_to_bob(inbox) == []


def test_without_a_link_nothing_is_told(
    owner: Owner, bob: Account, salon: Salon, inbox: Inbox
) -> None:
    workspace = owner.workspace.id
    call_console(workspace, "link_member", accountId=bob.id, resourceId=None)
    salon.book("2027-01-18T12:00", resourceId=salon.resource)
    assert mails_to_bob(inbox) == []
    assert bob.call(workspace, "get_notifications")["choices"] == []


@pytest.mark.parametrize("end", ["removed", "left", "linked to another", "unlinked"])
def test_the_link_of_the_calendar_ends_with_the_right(
    owner: Owner, bob: Account, salon: Salon, time: Time, end: str
) -> None:
    workspace = owner.workspace.id
    url = bob.call(workspace, "create_calendar_link")["calendarLink"]["url"]
    others = call_console(workspace, "create_calendar_link", resourceId=salon.resources[1])
    path = url[url.index("/api/") :]
    assert Api(None).call("GET", path).status == 200
    match end:
        case "removed":
            call_operator("remove_member", workspaceId=workspace, email=BOB)
        case "left":
            bob.call(workspace, "leave_workspace")
        case "linked to another":
            bob.joins(workspace, "staff", salon.resources[1])
        case "unlinked":
            call_console(workspace, "link_member", accountId=bob.id, resourceId=None)
    time.pass_by(minutes=1)
    run_jobs()
    assert Api(None).call("GET", path).status == 404
    links = call_console(workspace, "get_calendar_links")["calendarLinks"]
    assert others["calendarLink"] in links


def test_the_link_of_the_calendar_stays_when_the_staff_gets_more_rights(
    owner: Owner, bob: Account, time: Time
) -> None:
    workspace = owner.workspace.id
    link = bob.call(workspace, "create_calendar_link")["calendarLink"]
    call_console(workspace, "set_member_role", email=BOB, role="manager")
    time.pass_by(minutes=1)
    run_jobs()
    assert link in call_console(workspace, "get_calendar_links")["calendarLinks"]
