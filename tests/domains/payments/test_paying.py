"""A booking that is paid in advance, from the booking page to the confirmation."""

import re

import pytest

from chalicelib.domains.payments.store import merchants
from tests.domains.notifications.inbox import text_of
from tests.domains.payments.checkout import FORM, PRICE, Checkout, visitor

pytestmark = pytest.mark.usefixtures("database")


def test_booking_is_confirmed_when_the_provider_reports_the_payment(checkout: Checkout) -> None:
    path = checkout.hold()
    assert checkout.booking.status == "pending_payment"
    assert checkout.subjects() == ["Booking awaiting payment"]
    assert "1,500" in checkout.view(path)
    answer = checkout.click(path)
    assert (answer.status, answer.headers["Location"]) == (303, "https://pay.example/pay-1")
    request = checkout.shop.payments["pay-1"].request
    assert (request.amount, request.currency) == (PRICE, "RUB")
    assert request.receipt is not None
    assert request.receipt.payment_mode == "full_prepayment"
    checkout.shop.pay()
    assert checkout.hook().status == 200
    booking = checkout.booking
    assert (booking.status, booking.paid, booking.hold_expires_at) == ("confirmed", PRICE, None)
    assert checkout.statuses == ["succeeded"]
    assert "Booking paid" in checkout.view(path)
    assert checkout.subjects() == ["Booking awaiting payment", "Booking confirmed"]


def test_mail_about_an_unpaid_booking_has_the_link_that_pays(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.subjects()
    mail = next(mail for mail in checkout.inbox.mails if "awaiting" in mail["Subject"])
    assert path in text_of(mail)


def test_client_who_returns_sees_the_payment_without_a_notification(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    assert "Payment not finished" in checkout.view(path, is_back=True)
    checkout.shop.pay()
    assert "Booking paid" in checkout.view(path, is_back=True)
    assert checkout.booking.status == "confirmed"


def test_job_finds_the_payment_whose_notification_was_lost(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.run_after(minutes=1)
    assert checkout.booking.status == "confirmed"


def test_opening_the_page_opens_no_payment(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.view(path)
    assert visitor.call("HEAD", path).status == 200
    assert checkout.payments == []


def test_second_click_leads_to_the_open_payment(checkout: Checkout) -> None:
    path = checkout.hold()
    places = {checkout.click(path).headers["Location"] for _ in range(3)}
    assert places == {"https://pay.example/pay-1"}
    assert checkout.statuses == ["pending"]


def test_declined_payment_is_followed_by_another_one(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay(status="failed")
    assert checkout.click(path).headers["Location"] == "https://pay.example/pay-2"
    assert checkout.statuses == ["failed", "pending"]
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "confirmed"


@pytest.mark.parametrize("fault", ["before", "after"])
def test_payment_whose_creation_is_unknown_is_created_once(checkout: Checkout, fault: str) -> None:
    path = checkout.hold()
    checkout.shop.faults["create"] = [fault]
    assert checkout.click(path).status == 502
    assert checkout.click(path).status == 303
    assert len(checkout.shop.payments) == 1
    assert checkout.statuses == ["pending"]


def test_payment_that_the_provider_cannot_create_is_replaced_by_another_one(
    checkout: Checkout,
) -> None:
    """Stripe repeats a stored error 500 for the same key."""
    path = checkout.hold()
    checkout.shop.faults["create"] = ["before", "before"]
    assert [checkout.click(path).status for _ in range(2)] == [502, 502]
    checkout.time.pass_by(minutes=2)
    assert checkout.click(path).status == 303
    assert checkout.statuses == ["created", "pending"]
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "confirmed"


def test_payment_that_overtakes_the_first_mail_leads_to_one_mail(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    assert checkout.subjects() == ["Booking confirmed"]


def test_client_is_told_of_money_that_is_refunded_after_the_start(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.run_after(days=4)
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    assert checkout.shop.refunded("pay-1") == PRICE
    assert checkout.subjects()[-1] == "Payment returned"


def test_link_of_a_paid_booking_that_was_cancelled_shows_nothing_to_pay(
    checkout: Checkout,
) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay()
    checkout.hook()
    checkout.cancel()
    assert "Nothing to pay" in checkout.view(path)


def test_payment_that_the_provider_refuses_has_failed(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.shop.faults["create"] = ["The shop is closed."]
    answer = checkout.click(path)
    assert answer.status == 409
    assert "did not accept" in answer.body.decode()
    assert [row.reason for row in checkout.payments] == ["The shop is closed."]


def test_hold_ends_without_a_payment(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.run_after(minutes=31)
    assert checkout.booking.status == "cancelled"
    assert "Nothing to pay" in checkout.view(path)
    assert checkout.click(path).status == 409


def test_end_of_a_hold_asks_the_provider_first(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.can_expire = True
    checkout.run_after(minutes=20)
    checkout.shop.pay()
    # The job of the payment is due an hour after the creation.
    checkout.run_after(minutes=11)
    assert checkout.booking.status == "confirmed"
    assert "expire" in checkout.shop.calls


def test_end_of_a_hold_ends_the_payment_at_the_provider(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.can_expire = True
    checkout.run_after(minutes=31)
    assert checkout.statuses == ["expired"]
    assert checkout.booking.status == "cancelled"


def test_end_of_a_hold_waits_for_a_provider_that_does_not_respond(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.run_after(minutes=20)
    checkout.shop.faults = {"expire": ["before"] * 20, "state": ["before"] * 20}
    checkout.run_after(minutes=11)
    assert checkout.booking.status == "pending_payment"
    for _ in range(10):
        checkout.run_after(minutes=1)
    assert checkout.booking.status == "cancelled"


def test_payment_after_the_hold_confirms_a_booking_whose_time_is_free(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.run_after(minutes=31)
    assert checkout.booking.status == "cancelled"
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "confirmed"
    assert checkout.subjects()[-1] == "Booking confirmed"


def test_payment_after_the_hold_is_refunded_if_the_time_is_taken(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.run_after(minutes=31)
    checkout.book_by_key()
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "cancelled"
    checkout.run_after(minutes=1)
    assert [(row.amount, row.status) for row in checkout.refunds] == [(PRICE, "done")]
    assert checkout.shop.refunded("pay-1") == PRICE
    assert "Payment returned" in checkout.view(path)
    assert checkout.subjects()[-1] == "Payment returned"


def test_payment_of_an_expired_hold_whose_time_is_taken_is_refunded(checkout: Checkout) -> None:
    """The job of the hold has not run yet, and another client has booked the time."""
    checkout.click(checkout.hold())
    checkout.time.pass_by(minutes=31)
    checkout.book_by_key()
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    assert checkout.booking.status == "cancelled"
    assert checkout.shop.refunded("pay-1") == PRICE


def test_second_success_is_refunded(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay(status="expired")
    checkout.click(path)
    checkout.shop.pay("pay-2")
    checkout.hook("pay-2")
    checkout.shop.pay("pay-1")
    checkout.hook("pay-1")
    checkout.run_after(minutes=1)
    assert checkout.statuses == ["succeeded", "succeeded"]
    assert (checkout.shop.refunded("pay-1"), checkout.shop.refunded("pay-2")) == (PRICE, 0)
    assert checkout.booking.status == "confirmed"


def test_payment_for_a_booking_that_was_cancelled_is_refunded(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.cancel()
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    assert checkout.booking.status == "cancelled"
    assert checkout.shop.refunded("pay-1") == PRICE


def test_payment_for_a_hold_that_a_member_has_confirmed_is_recorded(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.console("set_booking_status", id=checkout.booking.id, status="confirmed")
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    booking = checkout.booking
    assert (booking.status, booking.paid) == ("confirmed", PRICE)
    assert checkout.refunds == []


def test_state_is_asked_for_until_it_is_final_and_at_most_8_days(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    for _ in range(26):
        checkout.run_after(hours=1)
    for day in range(2, 10):
        assert checkout.statuses == ["pending" if day < 9 else "expired"]
        calls = checkout.shop.calls.count("state")
        for _ in range(2):
            checkout.run_after(hours=12)
        assert checkout.shop.calls.count("state") == calls + 1 - (day == 9)
    checkout.shop.pay()
    checkout.hook()
    assert checkout.statuses == ["succeeded"]  # The money was late.


def test_money_is_found_although_the_key_did_not_work_for_days(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.faults = {name: ["The key was revoked."] * 99 for name in ("state", "expire")}
    checkout.shop.pay()
    checkout.run_after(hours=1)
    for _ in range(30):
        checkout.run_after(hours=1)
    checkout.shop.faults.clear()
    checkout.run_after(days=1)
    assert checkout.statuses == ["succeeded"]


@pytest.mark.parametrize("fault", ["before", "The key was revoked."])
def test_notification_of_late_money_is_kept_while_the_provider_fails(
    checkout: Checkout, fault: str
) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay(status="expired")
    checkout.hook()
    assert checkout.statuses == ["expired"]
    checkout.run_after(minutes=31)
    checkout.shop.pay()
    checkout.shop.faults["state"] = [fault, fault]
    assert checkout.hook().status == 200
    checkout.run_after(minutes=30)
    checkout.run_after(hours=1)
    assert checkout.booking.status == "confirmed"


def test_payment_that_the_provider_never_had_ends_with_its_key(checkout: Checkout) -> None:
    checkout.shop.faults["create"] = ["before"]
    checkout.click(checkout.hold())
    for _ in range(23):
        checkout.run_after(hours=1)
    assert checkout.statuses == ["expired"]


def test_moved_booking_keeps_its_payment(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.console(
        "reschedule_booking", id=checkout.booking.id, startAt="2027-01-18T12:00:00+03:00"
    )
    checkout.shop.pay()
    checkout.hook()
    booking = checkout.booking
    assert (booking.status, booking.paid) == ("confirmed", PRICE)
    checkout.console("reschedule_booking", id=booking.id, startAt="2027-01-18T14:00:00+03:00")
    assert checkout.booking.paid_by == checkout.payments[0].id


def test_booking_page_shows_times_only_if_the_service_can_be_paid(checkout: Checkout) -> None:
    page = f"/book/{checkout.owner.workspace.slug}/{checkout.salon.service}"
    assert "Book by phone" not in visitor.call("GET", page).body.decode()
    merchant = merchants.find_current(checkout.workspace)
    assert merchant
    merchant.delete()
    assert "Book by phone" in visitor.call("GET", page).body.decode()


def test_new_booking_leads_from_the_booking_page_to_the_payment(checkout: Checkout) -> None:
    form = "at=2027-01-18T10:00:00%2B03:00&staff=&once=&name=Grace&email=grace@example.com"
    page = f"/book/{checkout.owner.workspace.slug}/{checkout.salon.service}"
    answer = visitor.call("POST", page, form.encode(), FORM)
    assert answer.status == 200
    html = answer.body.decode()
    assert "Your booking is awaiting payment" in html
    match = re.search(r"/pay/[\w=-]{64}", html)
    assert match
    assert "1,500" in checkout.view(match[0])


def test_member_gives_the_link_of_a_booking_by_key_to_the_client(checkout: Checkout) -> None:
    booking = checkout.salon.book("2027-01-18T10:00", "Grace")
    assert "paymentUrl" not in booking
    link = checkout.console("get_booking_money", bookingId=booking["id"])["paymentUrl"]
    checkout.click(link.partition("8000")[2])
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "confirmed"
    assert checkout.console("get_booking_money", bookingId=booking["id"])["paymentUrl"] is None
