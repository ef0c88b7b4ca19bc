"""A visitor without a proved address cannot block the emails of other users."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.domains.mails.rules import mail_budgets
from tests.conftest import PASSWORD, Api, Owner, Time, call_operator
from tests.domains.notifications.clients import ADA, book, mails_to, subjects_to, visitor
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.people import request_reset
from tests.factories.salon import CREATE, STATUS, Salon

pytestmark = pytest.mark.usefixtures("database")
HOURS = [f"2027-03-{day:02}T{hour:02}:00:00Z" for day in (3, 4, 5) for hour in range(6, 15)]


@pytest.fixture
def salon(api: Api, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, reload_settings: Any) -> Salon:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    return Salon.opened(api)


@pytest.fixture
def book_often(salon: Salon, time: Time) -> Callable[..., Any]:
    """Book as a visitor who waits for an hour after each third booking, and return the response."""
    count = itertools.count(1)

    def booked(start: str, email: str = ADA, **fields: Any) -> Any:
        response = book(salon, start, email, **fields)
        run_until_idle()
        if next(count) % 3 == 0:
            time.pass_by(minutes=61)
        return response

    return booked


def cancel(salon: Salon, booking_id: str) -> None:
    salon.api.post(STATUS, {"id": booking_id, "status": "cancelled"})
    run_until_idle()


def book_as_salon(salon: Salon, start: str, email: str = ADA) -> str:
    client = {"name": "Ada", "email": email}
    booking = salon.api.post(CREATE, salon.order(start) | {"client": client})["booking"]
    return str(booking["id"])


def mails(salon: Salon, booking_id: str) -> list[tuple[str, str, str | None]]:
    """Return the emails to a booking's client in the API."""
    sent_mails = salon.api.get(f"/api/bookings/{booking_id}")["booking"]["mails"]
    return [(mail["kind"], mail["state"], mail["reason"]) for mail in sent_mails]


def inbox_of_ada(inbox: Inbox) -> list[Any]:
    """Return the emails to the mailbox of Ada, in any spelling."""
    return [message for message in inbox.mails if str(message["To"]).startswith("ada")]


def gets_cancellation(inbox: Inbox, email: str = ADA) -> bool:
    return any("отменена" in subject.lower() for subject in subjects_to(inbox, email))


@pytest.fixture
def victims_booking(salon: Salon) -> str:
    """A booking that the salon has made for the victim."""
    booking_id = book_as_salon(salon, HOURS[0])
    run_until_idle()
    return booking_id


class TestAStranger:
    def test_seven_bookings_for_another_client_do_not_block_the_salons_emails(
        self, salon: Salon, inbox: Inbox, victims_booking: str, book_often: Callable[..., Any]
    ) -> None:
        inbox.clear()
        for number, hour in enumerate(HOURS[1:8]):
            book_often(hour, f"ada+{number}@example.com")
        assert len(inbox_of_ada(inbox)) == 3
        cancel(salon, victims_booking)
        assert gets_cancellation(inbox)
        assert mails(salon, victims_booking)[-1] == ("cancelled", "sent", None)

    def test_moves_and_cancellations_by_links_do_not_block_the_salons_emails(
        self, salon: Salon, inbox: Inbox, victims_booking: str, book_often: Callable[..., Any]
    ) -> None:
        inbox.clear()
        for hour in HOURS[1:13]:
            response = book_often(hour)
            visitor.post("/api/public/bookings/cancel", {"token": response["cancelToken"]})
            run_until_idle()
        assert len(mails_to(inbox)) == 3
        inbox.clear()
        cancel(salon, victims_booking)
        assert gets_cancellation(inbox)
        assert mails(salon, victims_booking)[-1] == ("cancelled", "sent", None)

    def test_other_spellings_of_a_mailbox_share_a_budget(
        self, salon: Salon, inbox: Inbox, book_often: Callable[..., Any]
    ) -> None:
        for hour, address in zip(
            HOURS,
            [
                "a.da@gmail.com",
                "ada@gmail.com",
                "ADA+1@googlemail.com",
                "a.d.a+x@GoogleMail.com",
                "ad.a@gmail.com",
            ],
            strict=False,
        ):
            book_often(hour, address)
        hosts = [str(message["To"]).lower().partition("@")[2] for message in inbox.mails]
        assert len([host for host in hosts if "g" in host and "mail.com" in host]) == 3

    def test_domains_of_one_provider_share_a_budget(
        self, salon: Salon, inbox: Inbox, book_often: Callable[..., Any]
    ) -> None:
        addresses = ["a.b@yandex.ru", "a-b@ya.ru", "a.b@yandex.com", "a-b@yandex.kz", "a.b@ya.ru"]
        for hour, address in zip(HOURS, addresses, strict=False):
            book_often(hour, address)
        assert len([message for message in inbox.mails if message["To"] in addresses]) == 3

    def test_booking_shows_that_its_email_was_withheld(
        self, salon: Salon, inbox: Inbox, book_often: Callable[..., Any]
    ) -> None:
        booking_ids = [book_often(hour)["booking"]["id"] for hour in HOURS[:4]]
        mails_of_bookings = [mails(salon, booking_id) for booking_id in booking_ids]
        assert mails_of_bookings.count([("confirmed", "withheld", "by_address")]) == 1
        assert mails_of_bookings.count([("confirmed", "sent", None)]) == 3


def test_family_of_four_still_gets_the_salons_cancellations(
    salon: Salon, inbox: Inbox, book_often: Callable[..., Any]
) -> None:
    booking_ids = [
        book_often(hour, client={"name": name, "email": ADA})["booking"]["id"]
        for hour, name in zip(HOURS, ["Anna", "Boris", "Vera", "Gleb"], strict=False)
    ]
    run_until_idle()
    inbox.clear()
    for booking_id in booking_ids:
        cancel(salon, booking_id)
    assert len(mails_to(inbox)) == 4
    assert all(
        mails(salon, booking_id)[-1] == ("cancelled", "sent", None) for booking_id in booking_ids
    )


class TestABusiness:
    @pytest.fixture
    def small_budget(self, salon: Salon, monkeypatch: pytest.MonkeyPatch) -> None:
        budget = mail_budgets.BUDGETS["business"]
        few = {**mail_budgets.BUDGETS, "business": replace(budget, max_requests=1)}
        monkeypatch.setattr("chalicelib.domains.mails.flows.mail_gate.BUDGETS", few)

    def test_email_beyond_the_budget_waits_for_the_next_day(
        self, salon: Salon, inbox: Inbox, victims_booking: str, small_budget: None, time: Time
    ) -> None:
        inbox.clear()
        other = book_as_salon(salon, HOURS[1])
        run_until_idle()
        assert mails(salon, other) == [("confirmed", "waiting", "by_address")]
        assert mails_to(inbox) == []
        time.pass_by(hours=13)  # into the next day
        run_until_idle()
        assert len(mails_to(inbox)) == 1
        assert mails(salon, other) == [("confirmed", "sent", None)]

    def test_waiting_email_is_withheld_at_the_start_of_the_booking(
        self, salon: Salon, inbox: Inbox, small_budget: None, time: Time
    ) -> None:
        time.now = time.now.replace(month=3, day=3, hour=9, minute=0)
        book_as_salon(salon, HOURS[4])
        run_until_idle()
        other = book_as_salon(salon, HOURS[5])
        run_until_idle()
        assert mails(salon, other) == [("confirmed", "waiting", "by_address")]
        inbox.clear()
        time.pass_by(hours=5)
        run_until_idle()
        assert mails_to(inbox) == []
        assert ("confirmed", "withheld", "too_late") in mails(salon, other)


@pytest.mark.parametrize("limit", mail_budgets.BUDGETS.values(), ids=mail_budgets.BUDGETS)
def test_every_budget_ends_within_a_day_but_that_of_advertising(limit: Any) -> None:
    """What waits for a longer one would not be sent on the next day. Advertising may be dropped."""
    of_advertising = mail_budgets.BUDGETS["advertising"]
    assert limit.window <= timedelta(days=7 if limit is of_advertising else 1)


@pytest.mark.parametrize("plan", ["free", "start", "business", "enterprise"])
def test_strangers_never_exhaust_the_plans_emails(plan: str) -> None:
    total, visitors, strangers = mail_budgets.workspace_limits(plan, "stranger")
    assert strangers.max_requests < visitors.max_requests < total.max_requests
    for mail_class in ("client", "client_reminder"):
        assert len(mail_budgets.workspace_limits(plan, mail_class)) == 2


def pass_reminder_day(salon: Salon, time: Time) -> list[tuple[str, str, str | None]]:
    """Let the day before HOURS[:9] pass, and return the emails to the victim."""
    booking_id = book_as_salon(salon, HOURS[8])
    run_until_idle()
    for hour in range(6, 15):
        time.now = time.now.replace(month=3, day=2, hour=hour, minute=1)
        run_until_idle()
    return mails(salon, booking_id)


class TestAnotherBusiness:
    """Attack in which another workspace sends an address all emails of its budget."""

    @pytest.fixture
    def other_salon(self, new_owner: Any) -> Any:
        return Salon.opened(new_owner().api(), [{"capacity": 30}])

    def test_another_business_cannot_block_cancellations(
        self, salon: Salon, other_salon: Any, inbox: Inbox, victims_booking: str
    ) -> None:
        for _ in range(21):
            book_as_salon(other_salon, HOURS[0])
        run_until_idle()
        assert len(mails_to(inbox)) == 1 + 19
        inbox.clear()
        cancel(salon, victims_booking)
        assert gets_cancellation(inbox)

    def test_another_business_cannot_exhaust_reminders(
        self, salon: Salon, other_salon: Any, time: Time
    ) -> None:
        for _ in range(6):
            book_as_salon(other_salon, HOURS[0])
        run_until_idle()
        assert pass_reminder_day(salon, time)[-1] == ("reminder", "sent", None)

    def test_invitations_cannot_block_a_password_reset(
        self, owner: Owner, salon: Salon, inbox: Inbox
    ) -> None:
        call_operator("create_account", email=ADA, password=PASSWORD)
        for _ in range(6):
            call_operator("invite_member", workspaceId=owner.workspace.id, email=ADA)
            run_until_idle()
        inbox.clear()
        request_reset(ADA)
        run_until_idle()
        assert len(mails_to(inbox)) == 1


class TestRemindersOfStrangers:
    def test_reminders_of_strangers_leave_the_salons_own(
        self, salon: Salon, book_often: Callable[..., Any], time: Time
    ) -> None:
        """Attack with six bookings for the victim's address on the victim's day."""
        strangers = [
            book_often(hour, f"ada+{number}@example.com")["booking"]["id"]
            for number, hour in enumerate(HOURS[:6])
        ]
        assert pass_reminder_day(salon, time)[-1] == ("reminder", "sent", None)
        assert ("reminder", "waiting", "by_address") in [mails(salon, e)[-1] for e in strangers]

    def test_reminders_of_strangers_use_at_most_half_of_the_plan(self) -> None:
        total, visitors, strangers = mail_budgets.workspace_limits("free", "stranger_reminder")
        assert strangers.max_requests < visitors.max_requests < total.max_requests
