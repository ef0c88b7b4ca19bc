"""Refunds of payments, each made once whatever the provider does."""

from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.gateways.payments import RefundState
from tests.domains.notifications.inbox import text_of
from tests.domains.payments.checkout import EMAIL, PRICE, Checkout
from tests.factories.event_runs import run_until_idle

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def paid(checkout: Checkout) -> Checkout:
    """A checkout with a booking that is paid."""
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    return checkout


def refund(checkout: Checkout, **fields: Any) -> Any:
    return checkout.console("refund_payment", id=checkout.payments[0].id, **fields)["payment"]


def states(checkout: Checkout) -> list[tuple[int, str]]:
    return [(int(row.amount), row.status) for row in checkout.refunds]


def test_business_refunds_a_payment_in_whole(paid: Checkout) -> None:
    payment = refund(paid)
    assert (payment["refunded"], payment["refundable"]) == (PRICE, 0)
    assert [row["status"] for row in payment["refunds"]] == ["requested"]
    paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "done")]
    assert paid.shop.refunded("pay-1") == PRICE
    assert paid.shop.receipts == {}  # YooKassa makes it from the receipt of the payment.


@pytest.mark.parametrize("status", ["confirmed", "completed"])
def test_part_is_refunded_with_a_receipt(paid: Checkout, status: str) -> None:
    paid.console("set_booking_status", id=paid.booking.id, status=status)
    paid.run_after(minutes=1)
    refund(paid, amount=50_000)
    paid.run_after(minutes=1)
    receipt = list(paid.shop.receipts.values())[-1]
    assert (receipt.email, receipt.amount) == ("grace@example.com", 50_000)
    mode = "full_prepayment" if status == "confirmed" else "full_payment"
    assert receipt.payment_mode == mode


def test_whole_payment_is_refunded_with_a_receipt_after_the_closing_one(paid: Checkout) -> None:
    paid.console("set_booking_status", id=paid.booking.id, status="completed")
    paid.run_after(minutes=1)
    refund(paid)
    paid.run_after(minutes=1)
    receipt = list(paid.shop.receipts.values())[-1]
    assert (receipt.amount, receipt.payment_mode) == (PRICE, "full_payment")


def test_parts_are_refunded_up_to_the_payment(paid: Checkout) -> None:
    refund(paid, amount=100_000)
    with pytest.raises(AppError) as refusal:
        refund(paid, amount=50_001)
    assert refusal.value.code == "refund_too_large"
    assert refusal.value.details == {"refundable": 50_000}
    refund(paid)
    paid.run_after(minutes=1)
    assert states(paid) == [(100_000, "done"), (50_000, "done")]
    with pytest.raises(AppError):
        refund(paid)


@pytest.mark.parametrize("fault", ["before", "after"])
def test_refund_whose_result_is_unknown_is_made_once(paid: Checkout, fault: str) -> None:
    refund(paid)
    paid.shop.faults["refund"] = [fault, fault]
    for _ in range(3):
        paid.run_after(minutes=6)
    assert states(paid) == [(PRICE, "done")]
    assert len(paid.shop.refunds) == 1
    assert paid.shop.calls.count("refund") == 3


def test_refund_is_looked_up_once_the_provider_has_forgotten_the_key(paid: Checkout) -> None:
    refund(paid)
    paid.shop.faults["refund"] = ["after"]
    paid.run_after(minutes=1)
    paid.shop.keys.clear()
    paid.run_after(hours=24)
    assert states(paid) == [(PRICE, "done")]
    assert len(paid.shop.refunds) == 1
    assert paid.shop.calls.count("refund") == 1


def test_refund_that_never_reached_the_provider_is_sent_a_day_later(paid: Checkout) -> None:
    refund(paid)
    paid.shop.faults["refund"] = ["before"]
    paid.run_after(minutes=1)
    paid.run_after(hours=24)
    assert states(paid) == [(PRICE, "done")]
    assert [row.idempotency_key[-2:] for row in paid.refunds] == ["-2"]


def test_refund_that_the_provider_carries_out_later_is_followed(paid: Checkout) -> None:
    paid.shop.refund_status = "pending"
    refund(paid)
    paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "sent")]
    ((refund_id, (payment_id, state)),) = paid.shop.refunds.items()
    paid.shop.refunds[refund_id] = (payment_id, state._replace(status="done"))
    assert paid.hook().status == 200
    assert states(paid) == [(PRICE, "done")]


@pytest.mark.parametrize(
    ("status", "amount"), [("done", 40_000), ("failed", 50_000), ("pending", 40_000)]
)
def test_another_refund_at_the_provider_is_not_taken_for_a_lost_one(
    paid: Checkout, status: Any, amount: int
) -> None:
    refund(paid, amount=50_000)
    paid.shop.faults["refund"] = ["before"]
    paid.run_after(minutes=1)
    paid.shop.refunds["refund-0"] = ("pay-1", RefundState("refund-0", status, amount))
    paid.run_after(hours=24)
    assert states(paid) == [(50_000, "done")]
    assert paid.shop.calls.count("refund") == 2


def test_recorded_refund_is_not_taken_for_a_lost_one(paid: Checkout) -> None:
    refund(paid, amount=50_000)
    paid.run_after(minutes=1)
    refund(paid, amount=50_000)
    paid.shop.faults["refund"] = ["before"]
    paid.run_after(minutes=1)
    paid.run_after(hours=24)
    assert states(paid) == [(50_000, "done")] * 2
    assert paid.shop.refunded("pay-1") == 100_000


def test_pending_refund_that_fails_is_shown_as_failed(paid: Checkout) -> None:
    paid.shop.refund_status = "failed"
    refund(paid, amount=1)
    paid.run_after(minutes=1)
    (payment,) = paid.console("list_payments")["payments"]
    (row,) = payment["refunds"]
    assert (row["status"], row["amount"]) == ("failed", 1)
    assert "did not carry out" in row["failure"]


def test_pending_refund_is_read_every_five_minutes_in_its_first_hour_then_hourly(
    paid: Checkout,
) -> None:
    paid.shop.refund_status = "pending"
    refund(paid)
    for _ in range(180):
        paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "sent")]
    assert paid.shop.calls.count("refund") == 1
    assert paid.shop.calls.count("refund_state") == 12 + 1


def test_failed_refund_is_shown_and_can_be_repeated(paid: Checkout) -> None:
    paid.shop.faults["refund"] = ["Not enough money on the account."]
    refund(paid)
    paid.run_after(minutes=1)
    (payment,) = paid.console("list_payments")["payments"]
    (row,) = payment["refunds"]
    assert (row["status"], row["failure"]) == ("failed", "Not enough money on the account.")
    arguments = {"id": payment["id"], "refundId": row["id"]}
    paid.console("retry_refund", **arguments)
    with pytest.raises(AppError) as refusal:
        paid.console("retry_refund", **arguments)
    assert refusal.value.key == "refund_not_failed"
    paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "done")]
    assert paid.shop.refunded("pay-1") == PRICE


def test_refund_of_a_payment_from_another_stage_is_not_repeated(paid: Checkout) -> None:
    paid.shop.faults["refund"] = ["Not enough money on the account."]
    refund(paid)
    paid.run_after(minutes=1)
    (row,), (payment,) = paid.refunds, paid.payments
    payment.is_imported = True
    payment.save()
    with pytest.raises(AppError) as refusal:
        paid.console("retry_refund", id=row.payment_id, refundId=row.id)
    assert (refusal.value.code, refusal.value.key) == ("conflict", "other_stage")


def test_refusal_after_an_unknown_result_does_not_lead_to_a_second_refund(paid: Checkout) -> None:
    refund(paid, amount=50_000)
    paid.shop.faults["refund"] = ["after", "The key was revoked."]
    paid.run_after(minutes=1)
    paid.run_after(minutes=6)
    assert states(paid) == [(50_000, "failed")]
    (row,) = paid.refunds
    paid.console("retry_refund", id=row.payment_id, refundId=row.id)
    paid.run_after(minutes=1)
    assert states(paid) == [(50_000, "done")]
    assert paid.shop.refunded("pay-1") == 50_000


def test_refund_that_the_owner_made_earlier_is_not_taken_for_a_failed_one(paid: Checkout) -> None:
    earlier = RefundState("refund-0", "done", 50_000, clock.now() - timedelta(hours=1))
    paid.shop.refunds["refund-0"] = ("pay-1", earlier)
    paid.shop.faults["refund"] = ["Not enough money on the account."]
    refund(paid, amount=50_000)
    paid.run_after(minutes=1)
    (row,) = paid.refunds
    paid.console("retry_refund", id=row.payment_id, refundId=row.id)
    paid.run_after(minutes=1)
    assert states(paid) == [(50_000, "done")]
    assert paid.shop.refunded("pay-1") == 100_000


def test_refund_whose_state_the_provider_refuses_has_not_failed(paid: Checkout) -> None:
    paid.shop.refund_status = "pending"
    refund(paid)
    paid.run_after(minutes=1)
    paid.shop.faults["refund_state"] = ["The key was revoked."]
    paid.run_after(minutes=6)
    assert states(paid) == [(PRICE, "sent")]
    ((refund_id, (payment_id, state)),) = paid.shop.refunds.items()
    paid.shop.refunds[refund_id] = (payment_id, state._replace(status="done"))
    paid.run_after(minutes=6)
    assert states(paid) == [(PRICE, "done")]


def test_refund_that_fails_after_it_was_done_is_shown_and_can_be_repeated(paid: Checkout) -> None:
    """A bank may return the money of a refund that a provider has reported as done."""
    refund(paid)
    paid.run_after(minutes=1)
    ((refund_id, (payment_id, state)),) = paid.shop.refunds.items()
    paid.shop.faults["refund_state"] = ["before"]
    paid.hook(f"{payment_id} {refund_id}")
    assert states(paid) == [(PRICE, "done")]
    paid.shop.refunds[refund_id] = (payment_id, state._replace(status="failed"))
    paid.run_after(seconds=1)
    paid.hook(f"{payment_id} {refund_id}")
    assert states(paid) == [(PRICE, "failed")]
    (row,) = paid.refunds
    paid.console("retry_refund", id=row.payment_id, refundId=row.id)
    paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "done")]
    assert paid.shop.refunded("pay-1") == PRICE


def test_refund_made_at_the_provider_is_recorded(paid: Checkout) -> None:
    paid.shop.payments["pay-1"].elsewhere = 40_000
    paid.hook()
    (payment,) = paid.console("list_payments")["payments"]
    assert (payment["refunded"], payment["refundable"]) == (40_000, PRICE - 40_000)
    assert paid.booking.status == "confirmed"


def cancel_page(checkout: Checkout) -> str:
    return str(checkout.page_of_booking("?step=cancel"))


def test_client_gets_the_money_back_until_the_limit(paid: Checkout) -> None:
    assert "You get back 1,500" in cancel_page(paid).replace("\u00a0", " ")
    paid.cancel_by_link()
    assert paid.booking.status == "cancelled"
    paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "done")]


def test_client_gets_nothing_back_after_the_limit(paid: Checkout) -> None:
    paid.time.pass_by(hours=48)
    assert "too late for a refund" in cancel_page(paid)
    paid.cancel_by_link()
    assert paid.booking.status == "cancelled"
    paid.run_after(minutes=1)
    assert states(paid) == []


def test_client_cannot_move_a_booking_to_get_the_money_back(paid: Checkout) -> None:
    paid.move_by_link("2027-01-18T12:00:00+03:00")
    assert "You get back" in cancel_page(paid)
    paid.time.pass_by(hours=48)
    paid.move_by_link("2027-01-25T12:00:00+03:00")
    assert "too late for a refund" in cancel_page(paid)
    paid.cancel_by_link()
    paid.run_after(minutes=1)
    assert states(paid) == []


def test_client_who_read_of_a_refund_does_not_lose_it_by_a_late_click(paid: Checkout) -> None:
    assert f'name="refund" value="{PRICE}"' in cancel_page(paid)
    paid.time.pass_by(hours=48)
    answer = paid.send_cancellation(f"action=cancel&refund={PRICE}")
    assert answer.status == 409
    assert "too late for a refund" in answer.body.decode()
    assert paid.booking.status == "confirmed"
    paid.cancel_by_link("action=cancel&refund=0")
    assert paid.booking.status == "cancelled"


def test_key_that_cancels_a_paid_booking_refunds_nothing(paid: Checkout) -> None:
    paid.salon.set_status(paid.booking.id, "cancelled")
    paid.run_after(minutes=1)
    assert states(paid) == []
    (payment,) = paid.console("list_payments", bookingIds=[paid.booking.id])["payments"]
    assert payment["refundDue"] is True


def test_payments_of_a_day_have_totals(paid: Checkout) -> None:
    refund(paid, amount=50_000)
    today = paid.console("list_payments", day="2027-01-15")
    assert today["totals"] == {"paid": PRICE, "refunded": 50_000, "count": 1}
    paid.click(paid.hold("2027-01-18T14:00"))
    paid.shop.pay()
    paid.hook()
    first = paid.console("list_payments", day="2027-01-15", limit=1)
    last = paid.console("list_payments", day="2027-01-15", limit=1, cursor=first["next"])
    assert [len(page["payments"]) for page in (first, last)] == [1, 1]
    totals = {"paid": 2 * PRICE, "refunded": 50_000, "count": 2}
    assert [page["totals"] for page in (first, last)] == [totals, totals]
    assert paid.console("list_payments", day="2027-01-14")["payments"] == []
    assert paid.console("list_payments", day="2027-01-16")["payments"] == []


def test_deposit_is_a_part_of_the_price(checkout: Checkout) -> None:
    terms = {"id": checkout.salon.service, "depositPercent": 30, "refundUntilMin": 60}
    assert checkout.console("set_payment_terms", **terms)["paymentTerms"]["takesPayments"]
    checkout.click(checkout.hold())
    request = checkout.shop.payments["pay-1"].request
    assert request.amount == 45_000
    assert request.receipt is not None
    assert request.receipt.payment_mode == "prepayment"
    checkout.shop.pay()
    checkout.hook()
    (payment,) = checkout.console("list_payments")["payments"]
    assert (payment["isDeposit"], payment["price"]) == (True, PRICE)


def test_closing_receipt_follows_a_completed_booking_once(paid: Checkout) -> None:
    paid.console("set_booking_status", id=paid.booking.id, status="completed")
    paid.shop.faults["closing_receipt"] = ["after"]
    paid.run_after(minutes=1)
    paid.run_after(minutes=6)
    paid.run_after(hours=1)
    (receipt,) = paid.shop.receipts.values()
    assert (receipt.payment_mode, receipt.amount) == ("full_payment", PRICE)
    assert paid.shop.calls.count("closing_receipt") == 2
    assert paid.payments[0].receipt_closed_at is not None


def test_closing_receipt_is_sent_by_a_job_that_runs_days_late(paid: Checkout) -> None:
    paid.console("set_booking_status", id=paid.booking.id, status="completed")
    paid.run_after(days=2)
    assert [receipt.payment_mode for receipt in paid.shop.receipts.values()] == ["full_payment"]


def test_closing_receipt_is_not_repeated_once_the_provider_has_forgotten_the_key(
    paid: Checkout,
) -> None:
    paid.console("set_booking_status", id=paid.booking.id, status="completed")
    paid.shop.faults["closing_receipt"] = ["after"]
    paid.run_after(minutes=1)
    paid.run_after(days=1)
    paid.run_after(days=1)
    assert paid.shop.calls.count("closing_receipt") == 1


def test_closing_receipt_follows_money_that_arrives_after_the_visit(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    for status in ("confirmed", "completed"):
        checkout.console("set_booking_status", id=checkout.booking.id, status=status)
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    (receipt,) = checkout.shop.receipts.values()
    assert (receipt.payment_mode, receipt.amount) == ("full_payment", PRICE)


def mails_of_refunds(checkout: Checkout) -> list[str]:
    subjects = checkout.subjects()
    return [subject for subject in subjects if "ayment" in subject and "awaiting" not in subject]


STARTED, RETURNED = "Your payment is being returned", "Payment returned"
NOT_RETURNED = "Your payment could not be returned yet"


def pay_page(checkout: Checkout) -> str:
    link = booking_links.pay_url(checkout.workspace, checkout.booking) or ""
    return checkout.view(link.partition("8000")[2])


def test_client_is_told_that_a_refund_is_on_its_way_and_when_it_is_done(paid: Checkout) -> None:
    paid.shop.refund_status = "pending"
    refund(paid)
    assert mails_of_refunds(paid) == [STARTED]
    paid.cancel()
    paid.run_after(minutes=1)
    assert mails_of_refunds(paid) == [STARTED]
    for page in (pay_page(paid), paid.page_of_booking()):
        assert "is returning this money" in page
        assert "1,500" in page
    ((refund_id, (payment_id, state)),) = paid.shop.refunds.items()
    paid.shop.refunds[refund_id] = (payment_id, state._replace(status="done"))
    paid.hook()
    assert mails_of_refunds(paid) == [STARTED, RETURNED]
    for page in (pay_page(paid), paid.page_of_booking()):
        assert "This money was returned" in page


def test_client_is_told_once_that_a_refund_is_done(paid: Checkout) -> None:
    refund(paid)
    for _ in range(3):
        paid.run_after(minutes=1)
    # The first mail may be sent before the refund.
    assert mails_of_refunds(paid) in ([RETURNED], [STARTED, RETURNED])


def test_failed_refund_reaches_the_client_and_the_members(paid: Checkout) -> None:
    paid.shop.faults["refund"] = ["Not enough money on the account."]
    paid.cancel_by_link()
    paid.run_after(minutes=1)
    assert mails_of_refunds(paid)[-1:] == [NOT_RETURNED]
    for page in (pay_page(paid), paid.page_of_booking()):
        assert "has not returned this money" in page
    told = [mail for mail in paid.inbox.mails if mail["To"] != EMAIL]
    assert str(told[-1]["Subject"]).startswith("Возврат не прошёл: Haircut")
    assert "1 500" in text_of(told[-1]).replace("\u00a0", " ")
    (row,) = paid.refunds
    paid.console("retry_refund", id=row.payment_id, refundId=row.id)
    paid.run_after(minutes=1)
    assert mails_of_refunds(paid)[-1] == RETURNED


def test_client_is_told_once_of_what_the_business_refunds_at_the_provider(
    paid: Checkout,
) -> None:
    paid.inbox.clear()
    for part in (50_000, PRICE):
        paid.shop.payments["pay-1"].elsewhere = part
        for _ in range(2):
            paid.hook()
            paid.run_after(minutes=1)
    assert mails_of_refunds(paid) == [RETURNED] * 2
    sums = [
        text_of(mail).replace("\u00a0", " ") for mail in paid.inbox.mails if mail["To"] == EMAIL
    ]
    assert ["Refund: 500 ₽" in text for text in sums] == [True, False]
    assert ["Refund: 1,000 ₽" in text for text in sums] == [False, True]
    told = [mail for mail in paid.inbox.mails if mail["To"] != EMAIL]
    assert len(told) == 2
    assert "1 500" in text_of(told[-1]).replace("\u00a0", " ")


def test_members_are_told_once_that_a_bank_has_taken_a_payment_back(paid: Checkout) -> None:
    paid.inbox.clear()
    paid.shop.payments["pay-1"].disputed = PRICE
    for _ in range(2):
        paid.hook()
        paid.run_after(minutes=1)
    assert mails_of_refunds(paid) == []
    (told,) = paid.inbox.mails
    assert str(told["Subject"]).startswith("Оплата оспорена: Haircut")
    assert "Списано банком: 1 500 ₽" in text_of(told).replace("\u00a0", " ")


def test_daily_list_finds_what_the_business_refunds_at_the_provider(paid: Checkout) -> None:
    paid.inbox.clear()
    paid.shop.payments["pay-1"].elsewhere = PRICE
    paid.run_after(days=1)
    paid.run_after(minutes=1)
    assert mails_of_refunds(paid) == [RETURNED]


def test_failed_refund_that_the_business_makes_at_the_provider_is_returned(
    paid: Checkout,
) -> None:
    paid.shop.faults["refund"] = ["Not enough money on the account."]
    paid.cancel_by_link()
    paid.run_after(minutes=1)
    assert mails_of_refunds(paid)[-1:] == [NOT_RETURNED]
    paid.shop.payments["pay-1"].elsewhere = PRICE
    paid.hook()
    assert mails_of_refunds(paid)[-1:] == [RETURNED]
    for page in (pay_page(paid), paid.page_of_booking()):
        assert "has not returned this money" not in page


def test_own_refunds_are_told_once_however_often_the_provider_reports_them(
    paid: Checkout,
) -> None:
    refund(paid, amount=50_000)
    for _ in range(3):
        paid.run_after(minutes=1)
        paid.hook()
    assert mails_of_refunds(paid).count(RETURNED) == 1


def test_members_hear_of_a_refund_that_fails_after_it_was_done(paid: Checkout) -> None:
    refund(paid)
    paid.run_after(minutes=1)
    ((refund_id, (payment_id, state)),) = paid.shop.refunds.items()
    count = len(paid.inbox.mails)
    paid.shop.refunds[refund_id] = (payment_id, state._replace(status="failed"))
    paid.hook(f"{payment_id} {refund_id}")
    run_until_idle()
    assert len({mail["To"] for mail in paid.inbox.mails[count:]}) == 2  # the client, the owner
    assert mails_of_refunds(paid)[-1] == NOT_RETURNED


@pytest.mark.parametrize("reason", ["cancelled", "business"])
def test_refund_has_its_true_reason(paid: Checkout, reason: str) -> None:
    if reason == "cancelled":
        paid.cancel_by_link()
    else:
        refund(paid, amount=50_000)
    paid.run_after(minutes=1)
    (payment,) = paid.console("list_payments")["payments"]
    assert [row["reason"] for row in payment["refunds"]] == [reason]
    mail = [mail for mail in paid.inbox.mails if mail["To"] == EMAIL][-1]
    expected = {"cancelled": "The booking was cancelled.", "business": "The business returns"}
    assert expected[reason] in text_of(mail)
    assert ("1,500" if reason == "cancelled" else "500") in text_of(mail)


def test_payment_that_is_refunded_in_part_stays_paid(paid: Checkout) -> None:
    refund(paid, amount=50_000)
    paid.run_after(minutes=1)
    assert "Booking paid" in pay_page(paid)


def test_move_by_the_business_does_not_shorten_the_time_for_refunds(paid: Checkout) -> None:
    paid.console("reschedule_booking", id=paid.booking.id, startAt="2027-01-16T12:00:00+03:00")
    assert "You get back" in cancel_page(paid)
    paid.cancel_by_link()
    paid.run_after(minutes=1)
    assert states(paid) == [(PRICE, "done")]


def test_move_by_the_business_to_a_later_day_makes_the_time_for_refunds_longer(
    paid: Checkout,
) -> None:
    paid.console("reschedule_booking", id=paid.booking.id, startAt="2027-01-25T12:00:00+03:00")
    paid.time.pass_by(days=8)
    assert "You get back" in cancel_page(paid)


def test_new_terms_of_a_service_do_not_change_the_terms_of_a_booking(paid: Checkout) -> None:
    terms = {"id": paid.salon.service, "depositPercent": 30, "refundUntilMin": 10_080}
    paid.console("set_payment_terms", **terms)
    assert "You get back" in cancel_page(paid)


def test_booking_of_an_earlier_release_is_refunded_until_its_limit(paid: Checkout) -> None:
    row = paid.booking
    row.refundable_until = None
    row.save()
    assert "You get back" in cancel_page(paid)
    paid.time.pass_by(hours=48)
    assert "too late for a refund" in cancel_page(paid)
