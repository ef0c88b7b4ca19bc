"""SMS to clients about their bookings: who gets them, what they cost, what follows a failure."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.domains.billing.store import ledger, sms_holds
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.notifications.flows import sms_channel
from chalicelib.domains.notifications.store import client_deliveries
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import sms
from tests import fakes
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.domains.notifications.clients import ADA, mails_to, visitor
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import recorded_events, run_until_idle
from tests.factories.salon import Salon
from tests.fakes.sms import FakeSmsRu, FakeTwilio

pytestmark = pytest.mark.usefixtures("database", "large_share")
BOOK = "/api/public/bookings"
NOON, THREE = "2027-03-03T12:00:00Z", "2027-03-03T14:00:00Z"
PHONE = "+79147001234"
PRICE = 800


@pytest.fixture
def salon(
    api: Api,
    owner: Owner,
    inbox: Inbox,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> Salon:
    """A salon in Russia whose owner has money, and sends SMS before mails."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    call_operator("set_sms_price", country="RU", kopecks=PRICE)
    credit(owner, 100_000 - money(owner)[0])
    set_channels(owner, "sms", "mail")
    return Salon.opened(api, resources=[{"name": "Grace", "timezone": "Europe/Moscow"}])


def credit(owner: Owner, kopecks: int) -> None:
    def stage(unit: UnitOfWork) -> None:
        account_id = owner.workspace.owner_id
        ledger.post(unit, ledger.wallet(account_id), ledger.ADJUST, amount=kopecks)

    run_unit(owner.workspace.id, None, stage)


def set_channels(owner: Owner, *channels: str, membership: str = "owner") -> Any:
    return call_console(
        owner.workspace.id,
        "set_client_channels",
        account_id=owner.workspace.owner_id,
        membership=membership,
        channels=list(channels),
    )


def book(salon: Salon, start: str = NOON, phone: str | None = PHONE, **fields: Any) -> Any:
    """Book as a visitor."""
    who = {"name": "Ada", "email": ADA} | ({"phone": phone} if phone else {})
    response = visitor.post(BOOK, salon.order(start) | {"client": who} | fields)
    run_until_idle()
    return response["booking"]


def add_booking(salon: Salon, start: str = NOON, phone: str = PHONE, **who: str) -> Any:
    """Book as a member of the business."""
    order = salon.order(start) | {"client": {"name": "Ada", "phone": phone, **who}}
    booking = salon.api.post("/api/bookings/create", order)["booking"]
    run_until_idle()
    return booking


def money(owner: Owner) -> tuple[int, int]:
    wallet = ledger.wallet(owner.workspace.owner_id)
    return int(wallet.available), int(wallet.reserved)


def entries(owner: Owner) -> list[tuple[str, int]]:
    """Return the entries of SMS in the ledger, oldest first."""
    rows = ledger.entries(owner.workspace.owner_id)[::-1]
    return [(row.kind, int(row.amount)) for row in rows if row.request_id and not row.agent_id]


def fates(salon: Salon, booking: Any) -> list[tuple[str, str, str | None]]:
    """Return what became of the messages about a booking, by channel."""
    shown = salon.api.get(f"/api/bookings/{booking['id']}")["booking"]
    return sorted((each["channel"], each["state"], each["reason"]) for each in shown["mails"])


def test_a_confirmation_goes_by_sms_and_costs_its_segments(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, inbox: Inbox
) -> None:
    booking = book(salon)
    (sent,) = smsru.sent
    assert sent["to"] == PHONE.removeprefix("+")
    assert "вы записаны на 03.03 в 15:00" in sent["msg"]
    assert sent["msg"].startswith(f"{owner.workspace.name}: ")
    assert "Haircut" in sent["msg"]
    assert mails_to(inbox) == []
    assert money(owner) == (100_000 - 2 * PRICE, 0)
    assert entries(owner) == [("reserve", 0), ("sms", -2 * PRICE)]
    assert fates(salon, booking) == [("sms", "sent", None)]


def test_the_short_link_leads_to_the_page_of_the_booking(smsru: FakeSmsRu, salon: Salon) -> None:
    booking = book(salon)
    url = smsru.sent[0]["msg"].rpartition(" ")[2]
    path = url.removeprefix("http://127.0.0.1:8000")
    response = visitor.call("GET", path)
    assert response.status == 303
    location = response.headers["Location"]
    assert "/booking/" in location
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    page = visitor.call("GET", location.removeprefix("http://127.0.0.1:8000"))
    assert page.status == 200
    assert "Haircut" in page.body.decode()
    for wrong in (path[:-1] + ("A" if path[-1] != "A" else "B"), "/b/x", f"{path}x", "/b/%00"):
        assert visitor.call("GET", wrong).status == 404
    assert booking


def test_twilio_counts_the_segments(twilio: FakeTwilio, salon: Salon, owner: Owner) -> None:
    twilio.segments = "1"
    book(salon)
    assert len(twilio.messages) == 1
    assert money(owner) == (100_000 - PRICE, 0)


def test_an_sms_is_off_until_the_owner_chooses_it(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, inbox: Inbox
) -> None:
    set_channels(owner, "mail")
    book(salon)
    assert smsru.requests == []
    assert len(mails_to(inbox)) == 1


def test_only_the_owner_switches_sms_on(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, api: Api
) -> None:
    set_channels(owner, "mail")
    change = {"channels": ["sms", "mail"]}
    answer = api.call("POST", "/api/client-channels/update", change)
    assert answer.status == 403
    assert answer.data["key"] == "role_required"
    assert answer.data["role"] == "owner"
    set_channels(owner, "sms", "mail")
    # Once on, the order may be changed, and SMS switched off.
    assert (
        api.call("POST", "/api/client-channels/update", {"channels": ["mail", "sms"]}).status == 200
    )
    assert api.call("POST", "/api/client-channels/update", {"channels": ["mail"]}).status == 200


@pytest.mark.parametrize(
    "phone",
    [
        None,
        "+74951234567",  # a landline
        "+77011234567",  # Kazakhstan, which shares the country code
        "+79147001234 доб. 12",
        "+447400123456",
        "+78001234567",
    ],
)
def test_numbers_that_are_no_mobile_numbers_of_the_country_get_mail(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, owner: Owner, phone: str | None
) -> None:
    book(salon, phone=phone)
    assert smsru.requests == []
    assert len(mails_to(inbox)) == 1
    assert entries(owner) == []


def test_a_client_without_an_address_gets_an_sms(smsru: FakeSmsRu, salon: Salon) -> None:
    add_booking(salon)
    assert len(smsru.sent) == 1


def test_a_country_without_a_price_gets_mail(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, owner: Owner
) -> None:
    call_operator("set_sms_price", country="RU")
    booking = book(salon)
    assert smsru.requests == []
    assert len(mails_to(inbox)) == 1
    assert ("sms", "withheld", "by_country") in fates(salon, booking)


def test_a_price_that_changes_applies_to_later_sms(
    smsru: FakeSmsRu, salon: Salon, owner: Owner
) -> None:
    book(salon)
    call_operator("set_sms_price", country="RU", kopecks=100)
    book(salon, THREE)
    assert [amount for kind, amount in entries(owner) if kind == "sms"] == [-1_600, -200]
    prices = call_operator("list_sms_prices")["prices"]
    assert prices == [{"country": "RU", "kopecks": 100}]


def test_without_enough_money_the_client_gets_mail_and_the_owner_is_told_once_a_day(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, owner: Owner, time: Time
) -> None:
    credit(owner, -98_401)
    assert money(owner) == (1_599, 0)
    with recorded_events() as events:
        first, second = book(salon), book(salon, THREE)
    assert smsru.requests == []
    assert len(mails_to(inbox)) == 2
    assert money(owner) == (1_599, 0)
    assert [name for name, _ in events].count("balance.low") == 1
    assert ("sms", "withheld", "by_balance") in fates(salon, first) + fates(salon, second)
    time.pass_by(days=1)
    with recorded_events() as events:
        book(salon, "2027-03-04T12:00:00Z")
    assert [name for name, _ in events].count("balance.low") == 1


def test_the_balance_that_becomes_low_is_told(smsru: FakeSmsRu, salon: Salon, owner: Owner) -> None:
    credit(owner, -89_000)
    with recorded_events() as events:
        book(salon)
    assert [name for name, _ in events].count("balance.low") == 1


def test_a_number_that_visitors_type_gets_two_sms_a_day_from_all_workspaces(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, time: Time, new_owner: Callable[..., Owner]
) -> None:
    other = new_owner()
    credit(other, 10_000)
    set_channels(other, "sms", "mail")
    book(Salon.opened(other.api()), "2027-03-03T10:00:00Z")
    for start in ("2027-03-03T10:00:00Z", "2027-03-03T11:00:00Z"):
        last = book(salon, start)
    assert len(smsru.sent) == 2
    assert len(mails_to(inbox)) == 1
    assert ("sms", "withheld", "by_number") in fates(salon, last)
    # The business itself may still send.
    add_booking(salon, "2027-03-03T13:00:00Z")
    assert len(smsru.sent) == 3
    time.pass_by(days=1)
    book(salon, "2027-03-03T14:00:00Z")
    assert len(smsru.sent) == 4


def test_sms_that_visitors_cause_use_up_a_part_of_the_day(
    smsru: FakeSmsRu, salon: Salon, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chalicelib.domains.notifications.rules import sms_limits

    monkeypatch.setitem(sms_limits.SMS_A_DAY, "business", 4)
    starts = [f"2027-03-0{day}T1{hour}:00:00Z" for day in (3, 4) for hour in range(4)]
    for number, start in enumerate(starts[:4]):
        book(salon, start, f"+7914700123{number}")
    assert len(smsru.sent) == 2
    for number, start in enumerate(starts[4:]):
        add_booking(salon, start, f"+7914700124{number}")
    assert len(smsru.sent) == 4


def test_only_an_accepted_booking_has_sms(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, inbox: Inbox
) -> None:
    held = salon.api.post(
        "/api/bookings/create",
        salon.order(NOON)
        | {"client": {"name": "Ada", "phone": PHONE}, "status": "pending_payment"},
    )["booking"]
    run_until_idle()
    assert smsru.requests == []
    salon.set_status(held["id"], "cancelled")
    run_until_idle()
    assert smsru.requests == []


def test_a_move_a_reminder_and_a_cancellation_go_by_sms(
    smsru: FakeSmsRu, salon: Salon, time: Time
) -> None:
    booking = add_booking(salon)
    salon.api.post("/api/bookings/reschedule", {"id": booking["id"], "startAt": THREE})
    run_until_idle()
    time.now = datetime(2027, 3, 2, 15, 0, tzinfo=UTC)
    run_until_idle()
    salon.set_status(booking["id"], "cancelled")
    run_until_idle()
    texts = [sent["msg"] for sent in smsru.sent]
    words = ("вы записаны на", "перенесена", "ждём вас", "отменена")
    assert [word in text for word, text in zip(words, texts, strict=True)] == [True] * 4
    assert ["/b/" in text for text in texts] == [True, True, True, False]


def test_messages_about_money_are_no_sms() -> None:
    from chalicelib.domains.notifications.rules import sms_texts

    assert {"confirmed", "moved", "cancelled", "reminder"} == sms_texts.KINDS


def test_a_refused_sms_costs_nothing_and_the_client_gets_mail(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, inbox: Inbox
) -> None:
    smsru.codes = [207]
    booking = book(salon)
    assert money(owner) == (100_000, 0)
    assert entries(owner) == [("reserve", 0), ("release", 0)]
    assert len(mails_to(inbox)) == 1
    assert fates(salon, booking) == [("mail", "sent", None), ("sms", "withheld", "by_provider")]


def test_an_account_that_the_provider_refuses_is_an_error_in_the_log(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    smsru.refusal = 201
    book(salon)
    (record,) = [r for r in caplog.records if r.name == sms_channel.__name__]
    assert record.levelname == "ERROR"
    assert len(mails_to(inbox)) == 1


def test_a_busy_provider_gets_the_sms_again_and_it_is_charged_and_counted_once(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, time: Time, inbox: Inbox
) -> None:
    smsru.codes = [220, 220, 100]
    book(salon)
    assert money(owner) == (100_000, 0)
    for _ in range(2):
        time.pass_by(minutes=1, seconds=1)
        run_until_idle()
    assert len(smsru.sent) == 1
    assert mails_to(inbox) == []
    assert money(owner) == (100_000 - 2 * PRICE, 0)
    book(salon, THREE)
    assert len(smsru.sent) == 2  # The attempts did not count.


def test_a_provider_that_stays_busy_leaves_the_message_to_mail(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, time: Time, inbox: Inbox
) -> None:
    smsru.codes = [220] * 99
    book(salon)
    for _ in range(12):
        time.pass_by(minutes=1, seconds=1)
        run_until_idle()
    assert len(mails_to(inbox)) == 1
    assert money(owner) == (100_000, 0)


def lose(twilio: FakeTwilio) -> Callable[[Any], None]:
    """Let Twilio send the next SMS and close the connection."""

    def misbehave(handler: Any) -> None:
        twilio.breaks = None
        request = twilio.requests[-1]
        if request.method == "POST":
            twilio.answer(request)
        fakes.cut_off(handler)

    return misbehave


def test_an_sms_whose_response_is_lost_is_not_sent_again_and_is_charged_when_it_is_found(
    twilio: FakeTwilio, salon: Salon, owner: Owner, inbox: Inbox, time: Time
) -> None:
    twilio.breaks = lose(twilio)
    booking = book(salon)
    assert len(twilio.messages) == 1
    assert money(owner) == (100_000 - 2 * PRICE, 2 * PRICE)
    assert len(mails_to(inbox)) == 1  # Nobody knows whether the SMS arrives.
    time.pass_by(minutes=11)
    run_until_idle()
    assert len(twilio.messages) == 1
    assert money(owner) == (100_000 - PRICE, 0)
    assert fates(salon, booking) == [("mail", "sent", None), ("sms", "sent", None)]
    assert len(mails_to(inbox)) == 1


def test_an_sms_that_twilio_does_not_have_is_released(
    twilio: FakeTwilio, salon: Salon, owner: Owner, inbox: Inbox, time: Time
) -> None:
    twilio.breaks = fakes.status(500)
    book(salon)
    assert money(owner) == (100_000 - 2 * PRICE, 2 * PRICE)
    time.pass_by(minutes=11)
    run_until_idle()  # Twilio does not tell yet.
    assert money(owner) == (100_000 - 2 * PRICE, 2 * PRICE)
    twilio.breaks = None
    time.pass_by(minutes=11)
    run_until_idle()
    assert money(owner) == (100_000, 0)
    assert twilio.messages == []
    assert len(mails_to(inbox)) == 1


def test_sms_ru_cannot_be_asked_so_the_owner_does_not_pay_for_a_lost_response(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, inbox: Inbox, time: Time
) -> None:
    smsru.breaks = fakes.cut_off
    book(salon)
    smsru.breaks = None
    assert money(owner) == (100_000 - 2 * PRICE, 2 * PRICE)
    time.pass_by(minutes=11)
    run_until_idle()
    assert money(owner) == (100_000, 0)
    assert len(smsru.requests) == 1
    assert len(mails_to(inbox)) == 1


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize(("place", "sent"), [("hold", 0), ("send", 0), ("settle", 1), ("end", 1)])
def test_a_process_that_is_killed_sends_and_charges_at_most_once(
    twilio: FakeTwilio,
    salon: Salon,
    owner: Owner,
    inbox: Inbox,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    sent: int,
) -> None:
    def kill(*_: Any, **__: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        match place:
            case "hold":
                patch.setattr(sms_channel.sms_charging, "reserve", kill)
            case "send":
                patch.setattr(sms, "send", kill)
            case "settle":
                patch.setattr(sms_channel.sms_charging, "settle", kill)
            case "end":
                patch.setattr(client_deliveries, "end", kill)
        with pytest.raises(Killed):
            book(salon)
    for _ in range(4):
        time.pass_by(minutes=7)  # The lease of the killed runner ends.
        run_until_idle()
    assert len(twilio.messages) == sent
    assert len(mails_to(inbox)) == 1
    assert money(owner) == (100_000 - sent * PRICE, 0)
    assert all(row.state != ledger.OPEN for row in sms_holds.read_all(owner.workspace.owner_id))


def test_an_sms_that_cannot_arrive_is_followed_by_mail_once(
    smsru: FakeSmsRu, salon: Salon, owner: Owner, inbox: Inbox, time: Time
) -> None:
    booking = book(salon)
    time.pass_by(minutes=3)
    run_until_idle()
    assert mails_to(inbox) == []
    smsru.states["202648-0000001"] = 105
    for _ in range(3):
        time.pass_by(minutes=5)
        run_until_idle()
    assert len(mails_to(inbox)) == 1
    assert len(smsru.sent) == 1
    assert money(owner) == (100_000 - 2 * PRICE, 0)  # The network took it, and charges for it.
    assert fates(salon, booking) == [("mail", "sent", None), ("sms", "withheld", "undelivered")]


def test_an_sms_that_has_arrived_is_not_asked_about_again(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, time: Time
) -> None:
    book(salon)
    smsru.states["202648-0000001"] = 103
    for _ in range(3):
        time.pass_by(hours=1)
        run_until_idle()
    assert len(smsru.requests) == 2
    assert mails_to(inbox) == []


def test_a_provider_that_never_tells_is_asked_less_and_less(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, time: Time
) -> None:
    book(salon)
    for _ in range(60):
        time.pass_by(minutes=30)
        run_until_idle()
    assert 4 <= len(smsru.requests) <= 12
    assert mails_to(inbox) == []


def test_a_booking_that_was_cancelled_meanwhile_is_not_confirmed_by_mail(
    smsru: FakeSmsRu, salon: Salon, inbox: Inbox, time: Time
) -> None:
    booking = book(salon)
    smsru.states["202648-0000001"] = 105
    salon.set_status(booking["id"], "cancelled")
    run_until_idle()
    time.pass_by(minutes=5)
    run_until_idle()
    assert [str(mail["Subject"]).split(":")[0] for mail in mails_to(inbox)] == []
    assert len(smsru.sent) == 2


def test_the_owner_sees_what_sms_cost(smsru: FakeSmsRu, salon: Salon, owner: Owner) -> None:
    book(salon)
    call: dict[str, Any] = {"account_id": owner.workspace.owner_id}
    spending = call_console(owner.workspace.id, "get_spending", **call)
    assert spending["sms"] == {"kopecks": 2 * PRICE, "messages": 1, "segments": 2}
    assert spending["kopecks"] == 0
    lines = call_console(owner.workspace.id, "get_statement", outcomes=True, **call)["lines"]
    assert next((line["kind"], line["amount"], line["segments"]) for line in lines) == (
        "sms",
        -2 * PRICE,
        2,
    )
    terms = call_console(owner.workspace.id, "get_sms_terms", **call)
    assert terms == {"isOn": True, "country": "RU", "kopecks": PRICE, "mostADay": 500}


def test_an_erased_client_gets_no_sms_and_the_link_ends(
    smsru: FakeSmsRu, salon: Salon, owner: Owner
) -> None:
    booking = book(salon)
    path = smsru.sent[0]["msg"].rpartition(" ")[2].removeprefix("http://127.0.0.1:8000")
    assert visitor.call("GET", path).status == 303
    row = BOOKINGS.require(owner.workspace.id, record_id=booking["id"])
    salon.api.post("/api/clients/delete", {"id": row.client_id})
    run_until_idle()
    assert visitor.call("GET", path).status == 404
