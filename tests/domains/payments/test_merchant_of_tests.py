"""Payments in a test workspace: held, paid, declined, cancelled and refunded as real ones."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.errors import InTestWorkspaceError, NotFoundError
from chalicelib.domains.payments.flows import merchant_pages
from chalicelib.domains.payments.store import merchants
from tests.conftest import Answer, Owner, Time, call_console
from tests.domains.notifications.inbox import Inbox
from tests.domains.payments.checkout import FORM, PRICE, Checkout, visitor
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database")
BODY = {"provider": "test", "shopId": "", "secret": "test_anything", "vatCode": None}


@pytest.fixture
def shop() -> None:
    """No provider can be reached."""


@pytest.fixture
def tested(tester: Owner, time: Time, inbox: Inbox, shop: Any) -> Iterator[Checkout]:
    """A checkout in a test workspace."""
    api = tester.api()
    checkout = Checkout(
        tester, Salon.opened(api, requirePayment=True, price=PRICE), time, shop, inbox
    )
    checkout.set_merchant(**BODY)
    run_until_idle()
    inbox.clear()
    checkout.console("set_booking_page", isOn=True, offer=[checkout.salon.service])
    yield checkout
    assert inbox.mails == []


def page_of(checkout: Checkout, path: str) -> str:
    """Click the button that pays, and return the path of the merchant's page."""
    answer = checkout.click(path)
    assert answer.status == 303
    page = answer.headers["Location"].partition("8000")[2]
    assert re.fullmatch(r"/pay/test/[0-9A-Za-z]{58}", page)
    return page


def choose(page: str, **fields: str) -> Answer:
    answer = visitor.call("POST", page, urlencode(fields).encode(), FORM)
    run_until_idle()
    return answer


def paid(checkout: Checkout, **fields: str) -> str:
    page = page_of(checkout, checkout.hold())
    assert choose(page, outcome="pay", **fields).status == 303
    return page


def test_a_booking_is_confirmed_after_the_tester_has_paid(tested: Checkout) -> None:
    path = tested.hold()
    assert tested.booking.status == "pending_payment"
    page = page_of(tested, path)
    shown = visitor.call("GET", page, headers={"Accept-Language": "en"})
    assert (shown.status, shown.headers["X-Robots-Tag"]) == (200, "noindex")
    assert "Nothing here is real" in shown.body.decode()
    answer = choose(page, outcome="pay")
    assert path in answer.headers["Location"]
    assert (tested.booking.status, int(tested.booking.paid or 0)) == ("confirmed", PRICE)
    assert tested.statuses == ["succeeded"]
    assert tested.payments[0].is_test
    assert "Booking paid" in tested.view(path)


def test_a_declined_payment_can_be_repeated(tested: Checkout) -> None:
    page = page_of(tested, tested.hold())
    choose(page, outcome="decline")
    assert tested.booking.status == "pending_payment"
    choose(page, outcome="pay")
    assert tested.booking.status == "confirmed"


def test_a_paid_payment_stays_paid(tested: Checkout) -> None:
    page = paid(tested)
    choose(page, outcome="decline")
    tested.run_after(minutes=1)
    assert tested.statuses == ["succeeded"]


def test_a_cancelled_booking_is_refunded(tested: Checkout) -> None:
    paid(tested)
    tested.cancel_by_link()
    tested.run_after(minutes=1)
    assert tested.booking.status == "cancelled"
    assert [(int(row.amount), row.status) for row in tested.refunds] == [(PRICE, "done")]


def test_a_refund_fails_until_the_tester_lets_it_pass(tested: Checkout) -> None:
    page = paid(tested, refundsFail="1")
    tested.console("refund_payment", id=tested.payments[0].id)
    tested.run_after(minutes=1)
    (refund,) = tested.refunds
    assert refund.status == "failed"
    choose(page)
    tested.console("retry_refund", id=tested.payments[0].id, refundId=refund.id)
    tested.run_after(minutes=1)
    assert [row.status for row in tested.refunds] == ["done"]


@pytest.mark.parametrize("provider", ["yookassa", "stripe"])
def test_a_real_provider_is_refused_in_a_test_workspace(tester: Owner, provider: str) -> None:
    body = {"provider": provider, "shopId": "1", "secret": "sk_live_1"}
    with pytest.raises(InTestWorkspaceError):
        call_console(
            tester.workspace.id, "set_merchant", account_id=tester.workspace.owner_id, **body
        )
    assert merchants.find_current(tester.workspace.id) is None


@pytest.mark.parametrize("id_", ["x", "7" * 58, "0" * 58, "7" + "A" * 25 + "0" * 32])
def test_an_unknown_page_is_404(database: None, id_: str) -> None:
    assert visitor.call("GET", f"/pay/test/{id_}").status == 404
    assert visitor.call("POST", f"/pay/test/{id_}", b"outcome=pay", FORM).status == 404


@pytest.mark.parametrize("workspace_id", ["x", "7" * 25, "7" + "#" * 25, "0" * 26])
def test_a_page_is_of_a_test_workspace(workspace_id: str) -> None:
    with pytest.raises(NotFoundError) as refusal:
        merchant_pages.place_of(workspace_id + "p" * 32)
    assert refusal.value.key == "payment"


def test_the_settings_offer_the_test_merchant_only(tester: Owner) -> None:
    page = person(tester).get(f"/console/w/{tester.workspace.slug}/payment-settings")
    offered = re.findall(r'<option value="(\w+)"', page.body.decode())
    assert {"yookassa", "stripe", "test"} & set(offered) == {"test"}
