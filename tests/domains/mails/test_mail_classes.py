"""E-mails by who has caused them, and what each may use of what a workspace may send."""

import json
import re
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.rules import mail_budgets
from chalicelib.domains.mails.rules.mail_reputation import Cause
from chalicelib.domains.mails.store import mail_rates
from chalicelib.domains.mails.store.mail_rates import MailDayRow, MailPauseRow
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine import limits
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.domains.mails.test_mail_feedback import report
from tests.domains.notifications.clients import mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.payments import pay_booking, set_merchant
from tests.factories.salon import Salon
from tests.fakes.ses_reports import complained, send_event

pytestmark = pytest.mark.usefixtures("database")
HOURS = [f"2027-03-{day:02}T{hour:02}:00:00Z" for day in (3, 4, 5, 8, 9) for hour in range(6, 14)]
SLOTS = {
    who: [f"2027-02-{day:02}T{hour:02}:00:00Z" for day in days for hour in range(6, 14)]
    for who, days in {"a": (1, 2, 3), "b": (4, 5, 8), "c": (9, 10, 11)}.items()
}
FOURTH, ADA = "fourth@example.com", "ada@example.com"


@pytest.fixture
def salon(
    api: Api, owner: Owner, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
) -> Salon:
    """A salon with the free plan, whose limits are as they are outside of tests."""
    salon = Salon.opened(api, [{"capacity": 9}])
    call_operator("set_plan", workspaceId=owner.workspace.id, plan="free")
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    return salon


def call(operation: str, who: str, network: str = "", /, **arguments: Any) -> Any:
    """Call an operation as a visitor, and return the data of the response."""
    principal = VisitorPrincipal(visitor=who, network=network)
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id=new_id())
    return json.loads(reply.body)["data"]


def book(salon: Salon, start: str, email: str, who: str, network: str = "") -> Any:
    client = {"name": "Ada", "email": email}
    order = salon.order(start) | {"client": client}
    made = call("create_public_booking", who, network, **order)
    run_until_idle()
    return made


def take_by_links_only(salon: Salon, owner: Owner) -> None:
    """Let the service have had its bookings without a proof."""
    service = SERVICES.require(owner.workspace.id, record_id=salon.service)
    service.unverified_per_hour = 0
    service.save()


def mails(owner: Owner, booking_id: str) -> list[tuple[str, str, str | None]]:
    """Return the e-mails to a booking's client, as the console shows them."""
    booking = call_console(owner.workspace.id, "get_booking", id=booking_id)["booking"]
    return [(mail["kind"], mail["state"], mail["reason"]) for mail in booking["mails"]]


def manage_token(owner: Owner, booking_id: str) -> str:
    row = BOOKINGS.require(owner.workspace.id, record_id=booking_id)
    return booking_links.token(owner.workspace.id, row, Purpose.MANAGE)


class TestSharesOfStrangers:
    def attack(self, salon: Salon, owner: Owner, inbox: Inbox, time: Time) -> list[Any]:
        """Book nine times in two hours as one visitor, and move and cancel each booking."""
        hours, outcomes = iter(HOURS), []
        for number in range(9):
            made = book(salon, next(hours), f"v{number}@example.com", "attacker")
            booking_id = made["booking"]["id"]
            token = manage_token(owner, booking_id)
            call("move_public_booking", "attacker", token=token, startAt=next(hours))
            run_until_idle()
            call("cancel_public_booking", "attacker", token=made["cancelToken"])
            run_until_idle()
            outcomes += mails(owner, booking_id)
            if number % 3 == 2:
                time.pass_by(minutes=61)
        return outcomes

    def test_one_visitor_uses_up_a_fifth_of_what_strangers_may_cause(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        outcomes = self.attack(salon, owner, inbox, time)
        assert [state for _, state, _ in outcomes].count("sent") == 5
        assert {reason for _, state, reason in outcomes if state == "withheld"} == {"by_share"}
        made = book(salon, HOURS[-1], FOURTH, "fourth")
        assert mails(owner, made["booking"]["id"]) == [("confirmed", "sent", None)]

    def test_one_visitor_does_not_use_up_the_link_of_the_fourth_person(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        self.attack(salon, owner, inbox, time)
        take_by_links_only(salon, owner)
        made = book(salon, HOURS[-1], FOURTH, "fourth")
        assert made["confirmByMail"]
        assert len(mails_to(inbox, FOURTH)) == 1

    def test_the_end_of_a_hold_counts_for_the_visitor_who_has_booked(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        set_merchant(owner.workspace.id)
        call_console(owner.workspace.id, "update_service", id=salon.service, requirePayment=True)
        outcomes = []
        for hour in range(3):
            made = [
                book(salon, start, f"v{hour}{number}@example.com", "attacker")
                for number, start in enumerate(HOURS[2 * hour : 2 * hour + 2])
            ]
            time.pass_by(minutes=31)
            run_jobs()
            run_until_idle()
            for booking in made:
                outcomes += mails(owner, booking["booking"]["id"])
            time.pass_by(minutes=31)
        assert len(outcomes) == 12
        assert [state for _, state, _ in outcomes].count("sent") == 5

    def test_a_network_uses_up_half_of_what_strangers_may_cause(
        self, salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        states = []
        for number, start in enumerate(HOURS[:15]):
            made = book(salon, start, f"v{number}@example.com", f"subscriber-{number}", "net")
            states += [state for _, state, _ in mails(owner, made["booking"]["id"])]
        assert states.count("sent") == 12

    def test_a_link_is_promised_only_while_it_will_be_sent(
        self, salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        take_by_links_only(salon, owner)
        for number in range(3):
            assert book(salon, HOURS[0], f"v{number}@example.com", "attacker")["confirmByMail"]
        with pytest.raises(RateLimitedError):
            book(salon, HOURS[0], "v9@example.com", "attacker")
        assert book(salon, HOURS[0], FOURTH, "fourth")["confirmByMail"]
        assert len([mail for mail in inbox.mails if str(mail["To"]).startswith("v")]) == 3
        assert len(mails_to(inbox, FOURTH)) == 1

    def test_one_visitor_leaves_links_to_an_address_for_its_owner(
        self, salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        take_by_links_only(salon, owner)
        for _ in range(2):
            assert book(salon, HOURS[0], ADA, "attacker")["confirmByMail"]
        with pytest.raises(RateLimitedError):
            book(salon, HOURS[0], ADA, "attacker")
        assert book(salon, HOURS[0], ADA, "ada")["confirmByMail"]
        assert len(mails_to(inbox)) == 3

    @pytest.mark.parametrize("blocked", ["is_suppressed", "is_paused"])
    def test_no_link_is_promised_to_an_address_that_gets_no_mail(
        self,
        blocked: str,
        salon: Salon,
        owner: Owner,
        inbox: Inbox,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        take_by_links_only(salon, owner)
        monkeypatch.setattr(mail_gate, blocked, lambda *_: True)
        with pytest.raises(RateLimitedError):
            book(salon, HOURS[0], ADA, "ada")
        run_until_idle()
        assert mails_to(inbox) == []


class TestSharesOfClients:
    def attack(self, salon: Salon, owner: Owner, inbox: Inbox, who: str) -> list[str]:
        """Prove three addresses of a domain, and move and cancel what each has booked."""
        hours, states = iter(SLOTS[who]), list[str]()
        for number in range(3):
            address = f"{who}{number}@example.com"
            book(salon, next(hours), address, who)
            (link,) = re.findall(
                r"/booking/confirm/([\w=-]+)", text_of(mails_to(inbox, address)[0])
            )
            booking_id = call("book_by_link", who, token=link)["booking"]["id"]
            run_until_idle()
            manage = manage_token(owner, booking_id)
            for _ in range(5):
                call("move_public_booking", who, token=manage, startAt=next(hours))
                run_until_idle()
            row = BOOKINGS.require(owner.workspace.id, record_id=booking_id)
            cancel = booking_links.token(owner.workspace.id, row, Purpose.CANCEL)
            call("cancel_public_booking", who, token=cancel)
            run_until_idle()
            states += [state for _, state, _ in mails(owner, booking_id)]
        return states

    def test_visitors_with_a_proof_leave_a_quarter_to_the_business(
        self, salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        take_by_links_only(salon, owner)
        order = salon.order(HOURS[-1]) | {"client": {"name": "Ada", "email": ADA}}
        made = call_console(owner.workspace.id, "create_booking", **order)["booking"]["id"]
        sent = [self.attack(salon, owner, inbox, who).count("sent") for who in SLOTS]
        assert sent == [19, 19, 0]
        call_console(owner.workspace.id, "set_booking_status", id=made, status="cancelled")
        run_until_idle()
        assert mails(owner, made) == [("confirmed", "sent", None), ("cancelled", "sent", None)]

    def test_reminders_of_clients_with_a_proof_count_for_visitors(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        take_by_links_only(salon, owner)
        book(salon, HOURS[0], ADA, "ada")
        (link,) = re.findall(r"/booking/confirm/([\w=-]+)", text_of(mails_to(inbox)[0]))
        call("book_by_link", "ada", token=link)
        run_until_idle()
        time.now = time.now.replace(month=3, day=2, hour=6, minute=1)
        visitors = mail_budgets.workspace_limits("free", "client_reminder")[1]
        run_until_idle()
        assert limits.take(visitors, owner.workspace.id).remaining == visitors.max_requests - 2


class TestProofs:
    def test_a_client_who_has_paid_is_confirmed_whatever_strangers_have_sent(
        self, salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        for start in HOURS[:3]:
            book(salon, start, ADA, "stranger")
        set_merchant(owner.workspace.id)
        call_console(owner.workspace.id, "update_service", id=salon.service, requirePayment=True)
        made = book(salon, HOURS[3], ADA, "ada")
        assert mails(owner, made["booking"]["id"]) == [("pending", "withheld", "by_address")]
        pay_booking(owner.workspace.id, made["booking"]["id"])
        run_until_idle()
        assert mails(owner, made["booking"]["id"])[-1] == ("confirmed", "sent", None)

    def test_a_proved_address_is_told_of_changes_by_its_client(
        self, salon: Salon, owner: Owner, inbox: Inbox
    ) -> None:
        take_by_links_only(salon, owner)
        book(salon, HOURS[0], ADA, "ada")
        link = re.search(r"/booking/confirm/([\w=-]+)", text_of(mails_to(inbox)[0]))
        assert link
        made = call("book_by_link", "ada", token=link[1])
        run_until_idle()
        booking_id = made["booking"]["id"]
        assert mails(owner, booking_id) == [("confirmed", "sent", None)]
        manage = manage_token(owner, booking_id)
        for start in HOURS[1:5]:
            call("move_public_booking", "ada", token=manage, startAt=start)
            run_until_idle()
        assert mails(owner, booking_id)[1:] == [("moved", "sent", None)] * 4


class TestPauses:
    def complain(self, workspace: str, cause: Cause, first: int = 0) -> None:
        """Count 1,500 sent e-mails, and report complaints of two of them."""
        numbers = (first, first + 1)
        assert report(*(send_event(f"m-{n}", workspace, cause=cause) for n in numbers)) == []
        (today,) = [
            day
            for day in MailDayRow.partition(mail_rates._days(workspace, cause))
            if day.sk == clock.now().date().isoformat()
        ]
        today.update([MailDayRow.sent.add(1_498)])
        assert (
            report(
                *(
                    complained(f"m-{n}", workspace, f"c{n}@example.com", cause=cause)
                    for n in numbers
                )
            )
            == []
        )

    def test_complaints_of_what_strangers_cause_leave_the_salons_own_mails(
        self, salon: Salon, owner: Owner, inbox: Inbox, time: Time
    ) -> None:
        made = book(salon, HOURS[0], ADA, "ada")["booking"]["id"]
        self.complain(owner.workspace.id, "stranger")
        other = book(salon, HOURS[1], FOURTH, "fourth")["booking"]["id"]
        assert mails(owner, other) == [("confirmed", "withheld", "by_pause")]
        call_console(owner.workspace.id, "set_booking_status", id=made, status="cancelled")
        run_until_idle()
        assert mails(owner, made)[-1] == ("cancelled", "sent", None)
        for number in range(2):
            assert mail_gate.is_suppressed(f"c{number}@example.com")

    def test_a_pause_ends_by_itself_and_doubles_up_to_a_week(
        self, owner: Owner, time: Time
    ) -> None:
        workspace, first = owner.workspace.id, 0
        for days in (1, 2, 4, 7, 7):
            self.complain(workspace, "stranger", first)
            first += 2
            time.pass_by(days=days, minutes=-1)
            assert mail_gate.is_paused(workspace, "stranger"), days
            assert not mail_gate.is_paused(workspace, "business")
            time.pass_by(minutes=1)
            assert not mail_gate.is_paused(workspace, "stranger"), days
        time.pass_by(days=31)
        self.complain(workspace, "stranger", first)
        time.pass_by(days=1)
        assert not mail_gate.is_paused(workspace, "stranger")

    def test_only_the_operator_pauses_what_the_business_sends(
        self, salon: Salon, owner: Owner, inbox: Inbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        workspace = owner.workspace.id
        self.complain(workspace, "business")
        assert "high rates of bounces or complaints" in caplog.text
        assert not mail_gate.is_paused(workspace, "business")
        assert not mail_gate.is_paused(workspace, "stranger")
        assert call_operator("pause_mail", workspaceId=workspace) == {"wasPaused": False}
        assert call_operator("pause_mail", workspaceId=workspace) == {"wasPaused": True}
        made = call_console(
            workspace,
            "create_booking",
            **salon.order(HOURS[0]) | {"client": {"name": "Ada", "email": ADA}},
        )["booking"]["id"]
        run_until_idle()
        assert mails(owner, made) == [("confirmed", "withheld", "by_pause")]
        shown = call_console(workspace, "get_notifications", account_id=owner.workspace.owner_id)
        assert shown["clientMailPaused"]
        assert call_operator("resume_mail", workspaceId=workspace) == {"wasPaused": True}
        assert not mail_gate.is_paused(workspace, "business")

    def test_a_pause_of_an_earlier_release_ends_after_a_day(self, owner: Owner, time: Time) -> None:
        key = (f"W#{owner.workspace.id}#MAIL-PAUSE", "-")
        MailPauseRow(*key, reason="complaints", since=clock.now()).save()
        assert mail_gate.is_paused(owner.workspace.id, "stranger")
        time.pass_by(days=1)
        assert not mail_gate.is_paused(owner.workspace.id, "stranger")
