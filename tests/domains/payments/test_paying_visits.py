"""A visit is paid by one payment, and refunded by one refund."""

from typing import Any

import pytest

from chalicelib.domains.bookings.store.bookings import BookingRow
from tests.domains.payments.checkout import EMAIL, PRICE, START, Checkout, visitor
from tests.factories.salon import bookings_of

BOOK = "/api/public/bookings"
COLOUR = 50_000
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def colour(checkout: Checkout) -> str:
    """A second service, of which half is paid in advance."""
    api, resources = checkout.salon.api, checkout.salon.resources
    body = {"name": "Colour", "durationMin": 30, "price": COLOUR, "resourceIds": resources}
    created: str = api.post("/api/services/create", body | {"requirePayment": True})["service"][
        "id"
    ]
    checkout.console("set_payment_terms", id=created, depositPercent=50, refundUntilMin=60)
    return created


def book(checkout: Checkout, colour: str, **fields: Any) -> Any:
    client = {"name": "Grace", "email": EMAIL}
    body = checkout.salon.order(f"{START}:00+03:00", andThen=[colour]) | {"client": client}
    return visitor.post(BOOK, body | fields)


def token(made: Any) -> str:
    return str(made["manageUrl"].rpartition("/")[2])


def rows(checkout: Checkout) -> list[BookingRow]:
    found = [row for row in bookings_of(checkout.workspace) if row.client_email == EMAIL]
    return sorted(found, key=lambda row: row.starts_at)


def pay(checkout: Checkout, made: Any) -> None:
    visitor.post(f"{BOOK}/pay", {"token": token(made)})
    checkout.shop.pay()
    checkout.hook()


def test_one_payment_confirms_all_and_one_cancellation_refunds_it_once(
    checkout: Checkout, colour: str
) -> None:
    made = book(checkout, colour, price=PRICE + COLOUR, amountDue=PRICE + COLOUR // 2)
    assert made["amountDue"] == PRICE + COLOUR // 2
    assert [part["status"] for part in made["visit"]] == ["pending_payment"] * 2
    pay(checkout, made)
    assert [row.status for row in rows(checkout)] == ["confirmed"] * 2
    assert [int(row.amount) for row in checkout.payments] == [PRICE + COLOUR // 2]
    managed = visitor.post(f"{BOOK}/by-token", {"token": token(made)})
    assert (managed["paid"], managed["amountLeft"]) == (PRICE + COLOUR // 2, COLOUR // 2)
    assert managed["refund"] == PRICE + COLOUR // 2
    visitor.post(f"{BOOK}/cancel", {"token": token(made), "refund": managed["refund"]})
    visitor.post(f"{BOOK}/cancel", {"token": token(made)})
    checkout.run_after(minutes=1)
    assert [row.status for row in rows(checkout)] == ["cancelled"] * 2
    assert [int(row.amount) for row in checkout.refunds] == [PRICE + COLOUR // 2]


def test_members_see_the_money_of_a_visit_on_each_of_its_bookings(
    checkout: Checkout, colour: str
) -> None:
    pay(checkout, book(checkout, colour))
    first, second = rows(checkout)
    for row in (first, second):
        money = checkout.console("get_booking_money", bookingId=row.id)
        assert (money["paid"], money["left"]) == (PRICE + COLOUR // 2, COLOUR // 2)
        (payment,) = checkout.console("list_payments", bookingIds=[row.id])["payments"]
        assert (payment["bookingId"], payment["price"]) == (first.id, PRICE + COLOUR)
    checkout.console("note_visit_payment", bookingId=second.id, method="cash")
    assert checkout.console("get_booking_money", bookingId=first.id)["left"] == 0


@pytest.mark.parametrize("is_taken", [False, True])
def test_money_that_comes_late_books_the_whole_visit_again_or_goes_back(
    checkout: Checkout, colour: str, *, is_taken: bool
) -> None:
    made = book(checkout, colour)
    visitor.post(f"{BOOK}/pay", {"token": token(made)})
    checkout.run_after(minutes=31)
    assert [row.status for row in rows(checkout)] == ["cancelled"] * 2
    if is_taken:
        checkout.salon.book("2027-01-18T11:00", "Bob")  # the time of the second service
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    assert [row.status for row in rows(checkout)] == ["cancelled" if is_taken else "confirmed"] * 2
    assert [int(row.amount) for row in checkout.refunds] == [PRICE + COLOUR // 2] * is_taken


def test_a_moved_visit_keeps_its_payment(checkout: Checkout, colour: str) -> None:
    made = book(checkout, colour)
    pay(checkout, made)
    later = "2027-01-18T15:00:00+03:00"
    moved = visitor.post(f"{BOOK}/reschedule", {"token": token(made), "startAt": later})
    assert [part["status"] for part in moved["visit"]] == ["confirmed"] * 2
    checkout.console("set_booking_status", id=rows(checkout)[1].id, status="cancelled")
    assert [row.status for row in rows(checkout)] == ["cancelled"] * 2
    (payment,) = checkout.console("list_payments")["payments"]
    assert payment["refundDue"] is True
