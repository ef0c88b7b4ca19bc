"""Money that arrives when its booking has changed. The table in docs/payments.md has the rows."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.domains.payments.checkout import PRICE, START, Checkout

pytestmark = pytest.mark.usefixtures("database")
Change = Callable[[Checkout], Any]


def lapse(checkout: Checkout) -> None:
    checkout.run_after(minutes=31)
    assert checkout.booking.status == "cancelled"


def erase(checkout: Checkout) -> None:
    checkout.console("erase_client", id=checkout.booking.client_id)


def set_status(status: str) -> Change:
    def change(checkout: Checkout) -> None:
        checkout.console("set_booking_status", id=checkout.booking.id, status=status)

    return change


def take_time_off(checkout: Checkout) -> None:
    body = {"startAt": "2027-01-18", "endAt": "2027-01-18"}
    checkout.console("create_time_off", **body)


def close(checkout: Checkout) -> None:
    checkout.salon.set_hours(checkout.salon.api, checkout.salon.resource, [])


def switch_off(checkout: Checkout) -> None:
    checkout.console("update_service", id=checkout.salon.service, status="inactive")


def delete_service(checkout: Checkout) -> None:
    checkout.console("delete_service", id=checkout.salon.service)


def unbind(checkout: Checkout) -> None:
    checkout.console("update_service", id=checkout.salon.service, resourceIds=[])


def delete_resource(checkout: Checkout) -> None:
    checkout.console("delete_resource", id=checkout.salon.resource, force=True)


def begin(checkout: Checkout) -> None:
    checkout.run_after(days=3)


ROWS: dict[str, tuple[list[Change], str, str | None]] = {
    "awaits the payment, within its hold": ([], "confirmed", None),
    "has lapsed, and a new booking could have its time": ([lapse], "confirmed", None),
    "has lapsed, and its time is taken": (
        [lapse, lambda checkout: checkout.book_by_key()],
        "cancelled",
        "late",
    ),
    "has lapsed, and there is time off": ([lapse, take_time_off], "cancelled", "late"),
    "has lapsed, and the hours are closed": ([lapse, close], "cancelled", "late"),
    "has lapsed, and the service is switched off": ([lapse, switch_off], "cancelled", "late"),
    "has lapsed, and the service is deleted": ([lapse, delete_service], "cancelled", "late"),
    "has lapsed, and the staff no longer do it": ([lapse, unbind], "cancelled", "late"),
    "has lapsed, and the member of the staff is deleted": (
        [lapse, delete_resource],
        "cancelled",
        "late",
    ),
    "has lapsed, and has begun": ([lapse, begin], "cancelled", "late"),
    "has lapsed, and its client is erased": ([lapse, erase], "cancelled", "cancelled"),
    "awaits the payment, and its client is erased": ([erase], "cancelled", "cancelled"),
    "is cancelled": ([set_status("cancelled")], "cancelled", "cancelled"),
    "has lapsed, and is cancelled once more": (
        [lapse, set_status("no_show"), set_status("cancelled")],
        "cancelled",
        "cancelled",
    ),
    "is confirmed by hand": ([set_status("confirmed")], "confirmed", None),
    "is completed by hand": ([set_status("completed")], "completed", None),
    "is marked as a no-show": ([set_status("no_show")], "no_show", None),
}
"""What happened before the money arrived, the status afterwards, and the reason of a refund."""


@pytest.mark.parametrize("row", ROWS)
def test_money_that_arrives_is_used_or_returned(row: str, checkout: Checkout) -> None:
    changes, status, reason = ROWS[row]
    checkout.click(checkout.hold())
    booking_id = checkout.booking.id
    for change in changes:
        change(checkout)
    checkout.shop.pay("pay-1")
    checkout.hook("pay-1")
    checkout.run_after(minutes=1)
    booking = checkout.find(booking_id)
    assert booking.status == status
    refunds = [(refund.reason, refund.status) for refund in checkout.refunds]
    assert refunds == ([(reason, "done")] if reason else [])
    assert checkout.shop.refunded("pay-1") == (PRICE if reason else 0)
    assert (booking.paid_by is None) is bool(reason)
    if reason and booking.client_email:
        assert checkout.subjects()[-1] == "Payment returned"


def test_second_payment_is_returned_as_one_that_came_twice(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay(status="expired")
    checkout.click(path)
    for payment in ("pay-2", "pay-1"):
        checkout.shop.pay(payment)
        checkout.hook(payment)
    checkout.run_after(minutes=1)
    assert [(refund.reason, refund.status) for refund in checkout.refunds] == [("twice", "done")]
    assert checkout.booking.paid_by == checkout.payments[1].id
    assert "Booking paid" in checkout.view(path)


def test_money_for_an_erased_client_is_returned_although_the_hold_lapses_later(
    checkout: Checkout,
) -> None:
    """The hold has expired, and its job runs after the erasure."""
    checkout.click(checkout.hold())
    checkout.time.pass_by(minutes=31)
    erase(checkout)
    booking_id = checkout.payments[0].subject_id
    checkout.run_after(minutes=1)
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    assert checkout.find(booking_id).status == "cancelled"
    assert checkout.shop.refunded("pay-1") == PRICE


SOON = "2027-01-15T15:20"
"""Twenty minutes after the salon was opened."""


@pytest.fixture
def soon(checkout: Checkout) -> Checkout:
    """A checkout that takes bookings every ten minutes."""
    checkout.console("update_service", id=checkout.salon.service, slotStepMin=10)
    return checkout


def test_hold_ends_at_the_start_and_then_the_page_of_the_provider_is_ended(
    soon: Checkout,
) -> None:
    path = soon.hold(SOON)
    assert soon.booking.hold_expires_at == soon.booking.starts_at
    soon.click(path)
    soon.shop.can_expire = True
    soon.run_after(minutes=20)
    assert (soon.booking.status, soon.statuses) == ("cancelled", ["expired"])
    assert "Nothing to pay" in soon.view(path)
    assert soon.click(path).status == 409


def test_money_that_was_paid_after_the_start_is_returned(soon: Checkout) -> None:
    soon.click(soon.hold(SOON))
    soon.run_after(minutes=20)
    soon.run_after(minutes=5)
    soon.shop.pay()
    soon.hook()
    soon.run_after(minutes=1)
    assert soon.booking.status == "cancelled"
    assert [refund.reason for refund in soon.refunds] == ["late"]
    assert soon.subjects()[-1] == "Payment returned"


def test_money_that_was_paid_before_the_start_is_found_at_the_start(soon: Checkout) -> None:
    """The notification was lost, and the client has come."""
    soon.click(soon.hold(SOON))
    soon.run_after(minutes=19)
    soon.shop.pay()
    soon.run_after(minutes=1)
    assert (soon.booking.status, soon.refunds) == ("confirmed", [])


def test_hold_is_shorter_after_a_move_to_an_earlier_start(soon: Checkout) -> None:
    soon.hold()
    soon.console("reschedule_booking", id=soon.booking.id, startAt=f"{SOON}:00+03:00")
    assert soon.booking.hold_expires_at == soon.booking.starts_at
    soon.run_after(minutes=20)
    assert soon.booking.status == "cancelled"


def test_paid_service_is_not_offered_sooner_than_a_quarter_of_an_hour(
    checkout: Checkout,
) -> None:
    checkout.console("update_service", id=checkout.salon.service, slotStepMin=5)
    slots = f"/api/public/services/{checkout.salon.service}/slots?from=2027-01-15&to=2027-01-15"
    first = checkout.salon.api.get(slots)["slots"][0]["startAt"]
    assert first == "2027-01-15T12:15:00.000Z"
    checkout.console("update_service", id=checkout.salon.service, requirePayment=False)
    assert checkout.salon.api.get(slots)["slots"][0]["startAt"] == "2027-01-15T12:00:00.000Z"


def test_service_without_a_price_does_not_wait_for_a_payment(checkout: Checkout) -> None:
    checkout.console("update_service", id=checkout.salon.service, price=0)
    response = checkout.book_on_page()
    assert response["booking"]["status"] == "confirmed"
    assert response["paymentUrl"] is None
    assert checkout.subjects() == ["Booking confirmed"]


def test_booking_that_a_member_reactivates_is_held_and_can_be_paid(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.run_after(minutes=31)
    set_status("pending_payment")(checkout)
    assert checkout.booking.hold_expires_at is not None
    checkout.click(path)
    checkout.shop.pay()
    checkout.hook()
    assert checkout.booking.status == "confirmed"


@pytest.mark.parametrize("former", ["confirmed", "cancelled"])
def test_booking_that_awaits_a_payment_again_does_not_occupy_its_time_for_ever(
    checkout: Checkout, former: str
) -> None:
    booking = checkout.book_by_key()
    for status in (former, "pending_payment"):
        checkout.console("set_booking_status", id=booking["id"], status=status)
    link = checkout.console("get_booking_money", bookingId=booking["id"])["paymentUrl"]
    assert "1,500" in checkout.view(link.partition("8000")[2])
    checkout.run_after(minutes=31)
    assert checkout.find(booking["id"]).status == "cancelled"
    assert checkout.salon.try_to_book(START, "Bob").status == 200


def test_booking_that_was_refunded_and_takes_place_again_is_not_paid(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay()
    checkout.hook()
    checkout.cancel()
    checkout.console("refund_payment", id=checkout.payments[0].id)
    checkout.run_after(minutes=1)
    set_status("confirmed")(checkout)
    assert "Booking paid" not in checkout.view(path)
    assert checkout.booking.paid is None
    set_status("cancelled")(checkout)
    set_status("pending_payment")(checkout)
    assert "1,500" in checkout.view(path)
    checkout.click(path)
    checkout.shop.pay()
    checkout.hook()
    booking = checkout.booking
    assert (booking.status, booking.paid_by) == ("confirmed", checkout.payments[1].id)


def test_page_of_the_provider_names_the_current_start_after_a_move(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    assert "18.01.2027 10:00" in checkout.shop.payments["pay-1"].request.purpose
    checkout.shop.can_expire = True
    checkout.console(
        "reschedule_booking", id=checkout.booking.id, startAt="2027-01-19T12:00:00+03:00"
    )
    checkout.click(path)
    request = checkout.shop.payments["pay-2"].request
    assert request.receipt is not None
    for text in (request.purpose, request.receipt.description):
        assert "19.01.2027 12:00" in text
    assert checkout.shop.payments["pay-1"].status == "expired"


def test_receipts_name_the_current_start_after_a_move(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    checkout.console(
        "reschedule_booking", id=checkout.booking.id, startAt="2027-01-19T12:00:00+03:00"
    )
    payment = checkout.payments[0]
    checkout.console("refund_payment", id=payment.id, amount=50_000)
    checkout.shop.faults["refund"] = ["after"]
    checkout.run_after(minutes=1)
    # A repeated request is the same as the first one, or the provider would refuse it.
    checkout.console(
        "reschedule_booking", id=checkout.booking.id, startAt="2027-01-20T12:00:00+03:00"
    )
    checkout.run_after(minutes=6)
    assert [refund.status for refund in checkout.refunds] == ["done"]
    set_status("completed")(checkout)
    checkout.run_after(minutes=1)
    names = [receipt.description for receipt in checkout.shop.receipts.values()]
    assert ["19.01.2027" in names[0], "20.01.2027" in names[1]] == [True, True]
