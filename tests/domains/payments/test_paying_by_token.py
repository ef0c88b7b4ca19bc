"""A client pays a booking and cancels it over the API, by the token of the client's own link."""

from typing import Any

import pytest

from tests.conftest import Answer, run_concurrently
from tests.domains.payments.checkout import EMAIL, PRICE, START, Checkout, visitor

BOOK = "/api/public/bookings"
LATER = "2027-01-18T15:00:00+03:00"
pytestmark = pytest.mark.usefixtures("database")


def book(checkout: Checkout) -> Any:
    """Book over the API, and return the response."""
    client = {"name": "Grace", "email": EMAIL}
    return visitor.post(BOOK, checkout.salon.order(f"{START}:00+03:00") | {"client": client})


def token_of(url: str) -> str:
    return url.rpartition("/")[2]


def send(action: str, token: str, **fields: Any) -> Answer:
    return visitor.call("POST", f"{BOOK}/{action}", {"token": token, **fields})


def read(token: str) -> Any:
    return send("by-token", token).data


@pytest.fixture
def token(checkout: Checkout) -> str:
    """The token of the link of a booking that was paid over the API."""
    token = token_of(book(checkout)["manageUrl"])
    assert send("pay", token).status == 200
    checkout.shop.pay()
    checkout.hook()
    return token


def test_either_token_leads_to_the_page_of_the_provider(checkout: Checkout) -> None:
    made = book(checkout)
    assert (made["amountDue"], made["booking"]["status"]) == (PRICE, "pending_payment")
    tokens = [token_of(made["manageUrl"]), token_of(made["paymentUrl"])]
    answers = [send("pay", token) for token in (*tokens, *tokens)]
    (url,) = {answer.data["paymentUrl"] for answer in answers}
    assert url.startswith("https://")
    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}
    assert len(checkout.shop.payments) == 1
    checkout.shop.pay()
    checkout.hook()
    managed = read(tokens[0])
    assert managed["booking"]["status"] == "confirmed"
    assert (managed["paid"], managed["refund"], managed["amountDue"]) == (PRICE, PRICE, 0)
    answer = send("pay", tokens[0])
    assert (answer.status, answer.data["code"]) == (409, "not_payable")


def test_calls_at_once_open_one_payment(checkout: Checkout) -> None:
    token = token_of(book(checkout)["manageUrl"])
    answers = run_concurrently(4, lambda _: send("pay", token))
    assert {answer.status for answer in answers} == {200}
    assert len(checkout.shop.payments) == 1


def test_payment_that_was_declined_is_followed_by_another_one(checkout: Checkout) -> None:
    token = token_of(book(checkout)["manageUrl"])
    first = send("pay", token).data["paymentUrl"]
    checkout.shop.pay(status="failed")
    assert send("pay", token).data["paymentUrl"] != first


def test_payment_that_arrives_after_a_move_pays_the_booking(checkout: Checkout) -> None:
    token = token_of(book(checkout)["manageUrl"])
    send("pay", token)
    moved = send("reschedule", token, startAt=LATER).data
    assert (moved["booking"]["status"], moved["amountDue"]) == ("pending_payment", PRICE)
    checkout.shop.pay()
    checkout.hook()
    managed = read(token)
    assert (managed["booking"]["status"], managed["booking"]["startLocal"]) == ("confirmed", LATER)
    assert managed["paid"] == PRICE


def test_moved_booking_is_cancelled_and_refunded(checkout: Checkout, token: str) -> None:
    assert send("reschedule", token, startAt=LATER).data["booking"]["status"] == "confirmed"
    assert send("cancel", token, refund=PRICE, dryRun=True).data["booking"]["status"] == "confirmed"
    for _ in range(2):
        answer = send("cancel", token, refund=PRICE)
        assert answer.data["booking"]["status"] == "cancelled"
    assert read(token)["refundState"] == "returning"
    checkout.run_after(minutes=1)
    managed = read(token)
    assert (managed["refundState"], managed["refundAmount"]) == ("returned", PRICE)
    assert len(checkout.refunds) == 1


def test_refund_that_is_no_longer_given_is_409_with_the_new_one(
    checkout: Checkout, token: str
) -> None:
    checkout.time.pass_by(hours=48)
    answer = send("cancel", token, refund=PRICE)
    assert (answer.status, answer.data["code"], answer.data["refund"]) == (409, "changed", 0)
    assert checkout.booking.status == "confirmed"
    assert send("cancel", token, refund=0).status == 200
    assert checkout.refunds == []


def test_link_of_a_key_shows_no_refund(checkout: Checkout, token: str) -> None:
    change = {"id": checkout.booking.id, "status": "confirmed"}
    written = checkout.salon.api.post("/api/bookings/set-status", change)
    shared = token_of(written["manageUrl"])
    managed = read(shared)
    assert (managed["paid"], managed["refund"], managed["asksBusiness"]) == (PRICE, 0, True)
    assert send("cancel", shared, refund=PRICE).data["refund"] == 0
    assert send("cancel", shared, refund=0).data["booking"]["status"] == "cancelled"
    assert (read(shared)["asksBusiness"], read(shared)["paid"]) == (True, PRICE)
    assert checkout.refunds == []
    (payment,) = checkout.payments
    checkout.console("refund_payment", id=payment.id)
    assert read(shared)["asksBusiness"] is False


@pytest.mark.parametrize("action", ["by-token", "pay", "reschedule", "cancel"])
def test_link_works_while_the_booking_page_is_off(checkout: Checkout, action: str) -> None:
    token = token_of(book(checkout)["manageUrl"])
    checkout.console("set_booking_page", isOn=False)
    assert send(action, token, startAt=LATER).status == 200
