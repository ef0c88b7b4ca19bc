"""A message to a client goes by the first channel that takes it, and at most once by each."""

from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS, Postponed
from chalicelib.domains.bookings.rules.job_kinds import MAIL_CLIENT
from chalicelib.domains.notifications.rules.client_channels import order_of
from chalicelib.engine import jobs
from chalicelib.gateways import telegram as telegram_gateway
from tests.conftest import Api, Owner, Time, call_console, run_concurrently
from tests.domains.notifications.chats import chats_of, link, link_max
from tests.domains.notifications.clients import ADA, book, mails_to
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon
from tests.fakes.max_messenger import STOPPED, FakeMax
from tests.fakes.telegram import FakeTelegram, failure

NOON, NINE = "2027-03-03T12:00:00Z", "2027-03-03T09:00:00Z"
BLOCKED = failure(403, "Forbidden: bot was blocked by the user")
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(api: Api, owner: Owner, inbox: Inbox, telegram: FakeTelegram) -> Salon:
    return Salon.opened(api)


@pytest.fixture
def booking(salon: Salon, owner: Owner, inbox: Inbox, telegram: FakeTelegram) -> str:
    """A booking by the business whose client has linked a chat in Telegram."""
    made = str(salon.book(NOON)["id"])
    run_until_idle()
    link(owner, made)
    inbox.clear()
    telegram.sent_messages.clear()
    return made


def move(salon: Salon, booking: str, start: str = NINE) -> None:
    salon.api.post("/api/bookings/reschedule", {"id": booking, "startAt": start})


def entries(salon: Salon, booking: str) -> list[tuple[str, str, str | None]]:
    """Return what the booking says of the messages about its move."""
    mails = salon.api.get(f"/api/bookings/{booking}")["booking"]["mails"]
    moved = [each for each in mails if each["kind"] == "moved"]
    return [(each["channel"], each["state"], each["reason"]) for each in moved]


def choose(owner: Owner, *channels: str) -> None:
    call_console(owner.workspace.id, "set_client_channels", channels=list(channels))


def test_a_linked_client_is_told_by_the_messenger_and_not_by_mail(
    salon: Salon, owner: Owner, booking: str, inbox: Inbox, telegram: FakeTelegram
) -> None:
    move(salon, booking)
    run_until_idle()
    (text,) = telegram.texts
    assert text.startswith(f"{owner.workspace.name}\n")
    assert "/booking/" in text
    assert "Haircut" in text
    assert mails_to(inbox) == []
    assert entries(salon, booking) == [("telegram", "sent", None)]


def test_another_booking_of_the_client_by_the_business_goes_to_the_chat(
    salon: Salon, booking: str, inbox: Inbox, telegram: FakeTelegram
) -> None:
    salon.book(NINE)
    run_until_idle()
    assert len(telegram.texts) == 1
    assert mails_to(inbox) == []


def test_a_stranger_who_types_the_clients_address_reaches_the_address_only(
    salon: Salon, booking: str, inbox: Inbox, telegram: FakeTelegram
) -> None:
    book(salon, NINE)
    run_until_idle()
    assert telegram.texts == []
    assert len(mails_to(inbox)) == 1


def test_a_chat_that_a_stranger_links_hears_of_no_other_booking(
    salon: Salon, owner: Owner, inbox: Inbox, telegram: FakeTelegram
) -> None:
    link(owner, book(salon, NOON)["booking"]["id"], 666)
    run_until_idle()
    telegram.sent_messages.clear()
    inbox.clear()
    salon.book(NINE)
    run_until_idle()
    assert telegram.texts == []
    assert len(mails_to(inbox)) == 1


def test_a_client_without_an_address_is_told_by_the_messenger(
    salon: Salon, owner: Owner, inbox: Inbox, telegram: FakeTelegram
) -> None:
    client = {"name": "Bob", "phone": "+74951234567"}
    order = salon.order(NOON) | {"client": client}
    made = salon.api.post("/api/bookings/create", order)["booking"]["id"]
    link(owner, made)
    move(salon, made)
    run_until_idle()
    assert any("Booking changed" in text or "Запись изменена" in text for text in telegram.texts)


def test_both_reminders_go_by_the_messenger(
    salon: Salon, booking: str, inbox: Inbox, telegram: FakeTelegram, time: Time
) -> None:
    start = datetime.fromisoformat(NOON)
    for number, before in enumerate((timedelta(days=1), timedelta(hours=2)), 1):
        time.now = start - before + timedelta(seconds=1)
        run_until_idle()
        assert len(telegram.texts) == number
    assert mails_to(inbox) == []


def test_a_chat_that_is_gone_ends_its_links_and_the_next_channel_tells(
    salon: Salon, owner: Owner, booking: str, inbox: Inbox, telegram: FakeTelegram
) -> None:
    telegram.failures = [BLOCKED]
    move(salon, booking)
    run_until_idle()
    assert chats_of(owner, booking) == []
    assert len(mails_to(inbox)) == 1
    assert entries(salon, booking) == [("telegram", "withheld", "gone"), ("mail", "sent", None)]


def test_max_follows_telegram_and_mail_follows_max(
    salon: Salon, owner: Owner, booking: str, inbox: Inbox, telegram: FakeTelegram, max_bot: FakeMax
) -> None:
    link_max(owner, booking)
    max_bot.sent_messages.clear()
    telegram.failures = [failure(500, "Oops")]
    max_bot.failures = [STOPPED]
    move(salon, booking)
    run_until_idle()
    assert (telegram.texts, max_bot.texts) == ([], [])
    assert len(mails_to(inbox)) == 1
    assert {channel for channel, *_ in entries(salon, booking)} == {"telegram", "max", "mail"}
    assert entries(salon, booking)[-1] == ("mail", "sent", None)


def test_the_owner_orders_the_channels(
    salon: Salon, owner: Owner, booking: str, inbox: Inbox, telegram: FakeTelegram, max_bot: FakeMax
) -> None:
    link_max(owner, booking)
    max_bot.sent_messages.clear()
    choose(owner, "max", "telegram")
    move(salon, booking)
    run_until_idle()
    assert (len(max_bot.texts), telegram.texts, mails_to(inbox)) == (1, [], [])
    choose(owner, "mail", "max")
    move(salon, booking, NOON)
    run_until_idle()
    assert (len(max_bot.texts), telegram.texts, len(mails_to(inbox))) == (1, [], 1)


def test_a_busy_messenger_gets_the_message_later(
    salon: Salon, booking: str, inbox: Inbox, telegram: FakeTelegram, time: Time
) -> None:
    telegram.failures = [failure(429, "Too Many Requests", retry_after=30)]
    move(salon, booking)
    run_until_idle()
    assert (telegram.texts, mails_to(inbox)) == ([], [])
    assert entries(salon, booking) == [("telegram", "waiting", "busy")]
    time.pass_by(seconds=31)
    run_until_idle()
    assert len(telegram.texts) == 1
    assert mails_to(inbox) == []
    assert entries(salon, booking) == [("telegram", "sent", None)]


def test_a_messenger_that_stays_busy_for_ten_minutes_is_passed_over(
    salon: Salon, booking: str, inbox: Inbox, telegram: FakeTelegram, time: Time
) -> None:
    busy = failure(429, "Too Many Requests", retry_after=240)
    telegram.failures = [busy] * 9
    move(salon, booking)
    for _ in range(5):
        run_until_idle()
        time.pass_by(seconds=241)
    assert telegram.texts == []
    assert len(mails_to(inbox)) == 1
    assert len(telegram.failures) == 6  # Three tries: at once, after 4 and after 8 minutes.
    assert entries(salon, booking) == [("telegram", "withheld", "busy"), ("mail", "sent", None)]


class _Dies(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("sent", [True, False])
def test_a_job_that_died_while_it_sent_does_not_send_by_the_same_channel_again(
    salon: Salon,
    booking: str,
    inbox: Inbox,
    telegram: FakeTelegram,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
    sent: bool,
) -> None:
    send = telegram_gateway.send

    def send_and_die(*args: Any, **options: Any) -> None:
        if sent:
            send(*args, **options)
        raise _Dies

    monkeypatch.setattr(telegram_gateway, "send", send_and_die)
    move(salon, booking)
    with pytest.raises(_Dies):
        run_until_idle()
    monkeypatch.setattr(telegram_gateway, "send", send)
    time.pass_by(minutes=7)  # after the lease of the job
    run_until_idle()
    assert len(telegram.texts) == sent
    assert len(mails_to(inbox)) == 1
    assert entries(salon, booking) == [("telegram", "withheld", "unknown"), ("mail", "sent", None)]


def test_two_runs_of_a_job_at_once_send_one_message(
    salon: Salon, booking: str, inbox: Inbox, telegram: FakeTelegram, time: Time
) -> None:
    move(salon, booking)
    rows = make_mail_job()
    barrier = Barrier(2)

    def run(_: int) -> bool:
        barrier.wait()
        try:
            JOB_HANDLERS[MAIL_CLIENT](rows)
        except Postponed:
            return False
        return True

    run_concurrently(2, run)
    run_until_idle()
    time.pass_by(minutes=2)
    run_until_idle()
    assert len(telegram.texts) == 1
    assert mails_to(inbox) == []


def make_mail_job() -> Any:
    """Run the job of the event only, and return the job of the message that it makes."""
    made: list[Any] = []
    schedule = jobs.schedule

    def keep(job: Any) -> None:
        made.append(job)
        schedule(job)

    handlers = {kind: handler for kind, handler in JOB_HANDLERS.items() if kind != MAIL_CLIENT}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "schedule", keep)
        jobs.run({"visitor-events": handlers["visitor-events"]}, queue=jobs.Queue.EVENTS)
    (job,) = (each for each in made if each.kind == MAIL_CLIENT)
    return job


def test_a_client_who_is_erased_before_the_job_gets_nothing(
    salon: Salon, owner: Owner, booking: str, inbox: Inbox, telegram: FakeTelegram
) -> None:
    move(salon, booking)
    owner.api().post("/api/clients/delete", {"email": ADA})
    run_until_idle()
    assert telegram.texts == []
    assert mails_to(inbox) == []


def test_a_client_who_is_erased_while_a_message_waits_gets_nothing(
    salon: Salon, owner: Owner, booking: str, inbox: Inbox, telegram: FakeTelegram, time: Time
) -> None:
    telegram.failures = [failure(429, "Too Many Requests", retry_after=30)]
    move(salon, booking)
    run_until_idle()
    owner.api().post("/api/clients/delete", {"email": ADA})
    time.pass_by(minutes=2)
    run_until_idle()
    assert telegram.texts == []
    assert mails_to(inbox) == []


def test_money_goes_by_mail_first() -> None:
    for kind in ("refunded", "refund_started", "refund_failed"):
        assert order_of(kind, None)[0] == "mail"
        assert set(order_of(kind, None)) == set(order_of("confirmed", None))
    assert order_of("confirmed", ["mail", "max", "mail", "pigeon"]) == ("mail", "max")


def test_a_test_workspace_keeps_the_message_instead(
    tester: Owner, inbox: Inbox, telegram: FakeTelegram
) -> None:
    salon = Salon.opened(tester.api())
    made = salon.book(NOON)["id"]
    link(tester, made)
    move(salon, made)
    run_until_idle()
    kept = call_console(tester.workspace.id, "list_outbox")["messages"]
    assert "telegram" in {message["channel"] for message in kept}
    assert telegram.texts == []
