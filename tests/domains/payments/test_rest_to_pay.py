"""What is left to pay at the visit, and the link that members give to a client."""

import re

import pytest

from tests.conftest import Answer, call_console
from tests.domains.notifications.inbox import text_of
from tests.domains.payments.checkout import EMAIL, PRICE, Checkout
from tests.factories.console import Person, person

pytestmark = pytest.mark.usefixtures("database")

DEPOSIT, REST = 45_000, PRICE - 45_000


@pytest.fixture
def deposit(checkout: Checkout) -> Checkout:
    """A service with a deposit of 30 percent."""
    checkout.console(
        "set_payment_terms",
        id=checkout.salon.service,
        depositPercent=30,
        refundUntilMin=120,
    )
    return checkout


@pytest.fixture
def paid(deposit: Checkout) -> Checkout:
    """A booking whose deposit is paid."""
    deposit.click(deposit.hold())
    deposit.shop.pay()
    deposit.hook()
    return deposit


def path(checkout: Checkout) -> str:
    return f"/console/w/{checkout.owner.workspace.slug}/bookings/{checkout.booking.id}"


def desk(checkout: Checkout) -> Person:
    return person(checkout.owner)


def page(checkout: Checkout) -> str:
    return desk(checkout).get(path(checkout)).body.decode().replace("\xa0", " ")


def act(checkout: Checkout, action: str, **fields: str) -> Answer:
    return desk(checkout).post(path(checkout), {"action": action, **fields})


def left(checkout: Checkout) -> int:
    return int(checkout.console("get_booking_money", bookingId=checkout.booking.id)["left"])


def test_client_who_was_declined_reads_it_and_until_when_the_time_is_held(
    deposit: Checkout,
) -> None:
    payment_path = deposit.hold()
    deposit.click(payment_path)
    deposit.shop.pay(status="failed")
    html = deposit.view(payment_path, is_back=True).replace("\xa0", " ")
    assert "Payment declined" in html
    for fact in ("To pay now", "450", "To pay at the visit", "1,050", "Time held until"):
        assert fact in html
    deposit.click(payment_path)
    assert "Payment declined" not in deposit.view(payment_path)


@pytest.mark.parametrize("is_paid", [False, True])
def test_client_and_owner_see_what_is_left_to_pay(deposit: Checkout, is_paid: bool) -> None:
    deposit.click(deposit.hold())
    if is_paid:
        deposit.shop.pay()
        deposit.hook()
    for html in (deposit.page_of_booking().replace("\xa0", " "), page(deposit)):
        assert ("Paid in advance" in html) == is_paid
        assert "To pay at the visit" in html
        assert "1,050" in html
    assert left(deposit) == REST
    deposit.cancel()
    assert left(deposit) == 0
    assert "To pay at the visit" not in deposit.page_of_booking()


@pytest.mark.parametrize("action", ["cash", "terminal"])
def test_owner_notes_the_rest_as_paid_in_the_history(paid: Checkout, action: str) -> None:
    assert act(paid, action, amount="1050").status == 303
    assert left(paid) == 0
    html = page(paid)
    assert "1,050" in html
    assert "It is no fiscal receipt" in html
    assert "To pay at the visit" not in paid.page_of_booking()
    read = paid.salon.api.get(f"/api/bookings/{paid.booking.id}")["booking"]
    assert [event["status"] for event in read["statusHistory"]] == ["pending_payment", "confirmed"]
    assert act(paid, action, amount="1050").status == 409


def test_part_is_noted_and_withdrawn(paid: Checkout) -> None:
    act(paid, "cash", amount="50")
    assert left(paid) == REST - 5_000
    act(paid, "terminal", amount="99999")
    assert left(paid) == 0
    assert act(paid, "withdrawn").status == 303
    assert left(paid) == REST
    assert act(paid, "withdrawn").status == 409
    assert act(paid, "cash", amount="ten").status == 400


def test_unpaid_hold_takes_no_note(deposit: Checkout) -> None:
    deposit.hold()
    assert act(deposit, "cash").status == 409


def test_member_copies_the_link_that_pays_and_sends_it(checkout: Checkout) -> None:
    form = {
        "action": "book",
        "service": checkout.salon.service,
        "date": "2027-01-18",
        "exact": "10:00",
        "outside": "1",
        "name": "Grace",
        "email": EMAIL,
        "hold": "1",
        "once": "1",
    }
    home = f"/console/w/{checkout.owner.workspace.slug}/bookings/new"
    assert desk(checkout).post(home, form).status == 303
    link = re.search(r"/pay/[\w=-]{64}", page(checkout))
    assert link is not None
    before = len(checkout.subjects())
    assert act(checkout, "send_link").status == 303
    assert checkout.subjects()[before:] == ["Запись ожидает оплаты"]
    assert link[0] in text_of(checkout.inbox.mails[-1])
    checkout.click(link[0])
    checkout.shop.pay()
    checkout.hook()
    assert "/pay/" not in page(checkout)
    assert act(checkout, "send_link").status == 409


def test_link_is_not_sent_to_a_client_without_an_address(checkout: Checkout) -> None:
    checkout.set_merchant(vatCode=None)  # a receipt would need the address
    client = {"name": "Grace", "phone": "+7 916 123-45-67"}
    booked = checkout.book_on_page(client=client)
    arguments = {"bookingId": booked["booking"]["id"]}
    reply = call_console(checkout.workspace, "get_booking_money", **arguments)
    assert reply["paymentUrl"] == booked["paymentUrl"]
    html = desk(checkout).get(path_of_booking(checkout, arguments["bookingId"])).body.decode()
    assert "/pay/" in html
    assert 'value="send_link"' not in html


def path_of_booking(checkout: Checkout, booking_id: str) -> str:
    return f"/console/w/{checkout.owner.workspace.slug}/bookings/{booking_id}"


@pytest.mark.parametrize("closed_by", ["service", "register"])
def test_closing_receipt_is_sent_unless_the_register_closes_it(
    paid: Checkout, closed_by: str
) -> None:
    settings = f"/console/w/{paid.owner.workspace.slug}/payment-settings/receipts"
    assert desk(paid).post(settings, {"closedBy": closed_by}).status == 303
    paid.console("set_booking_status", id=paid.booking.id, status="completed")
    paid.run_after(minutes=1)
    assert ("closing_receipt" in paid.shop.calls) == (closed_by == "service")
    assert ("at your register" in page(paid)) == (closed_by == "register")
