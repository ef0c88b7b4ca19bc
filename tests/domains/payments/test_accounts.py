"""Accounts at a provider: which one a new key belongs to, and what becomes of a former one."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import settings as settings_module
from chalicelib.core.errors import AppError
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.payments.flows import former_accounts
from chalicelib.domains.payments.operations import merchants as operations
from chalicelib.domains.payments.store import merchants
from chalicelib.gateways.payments import stripe as stripe_gateway
from tests.conftest import Api, Owner, Time, call_operator
from tests.domains.notifications.inbox import Inbox
from tests.domains.payments.checkout import PRICE, Checkout
from tests.factories.console import person
from tests.factories.salon import Salon
from tests.fakes import JsonServer, ReceivedRequest
from tests.fakes.payment_shop import FakeShop
from tests.fakes.payments.stripe import FakeStripe, authorization, error

pytestmark = pytest.mark.usefixtures("database")


class FakeStripes(JsonServer):
    """Stripe with two accounts."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = FakeStripe(), FakeStripe()
        self.a.secret, self.b.secret = "sk_test_of_account_a", "sk_test_of_account_b"
        self.b.account_id, self.b.series = "acct_2B", "b"

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        for account in (self.a, self.b):
            if request.headers.get("authorization") == authorization(account.secret):
                return account.answer(request)
        return error(401, None)


@pytest.fixture
def stripes(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStripes]:
    """Stripe with two accounts."""
    with FakeStripes() as server, server.a, server.b:
        configured = replace(settings_module.settings(), stripe_url=server.url)
        monkeypatch.setattr(stripe_gateway, "settings", lambda: configured)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield server


@pytest.fixture
def salon(owner: Owner, api: Api, time: Time, inbox: Inbox, stripes: FakeStripes) -> Checkout:
    """A booking page whose clients pay to account A at Stripe."""
    checkout = Checkout(
        owner, Salon.opened(api, requirePayment=True, price=PRICE), time, FakeShop(), inbox
    )
    enter(checkout, stripes.a)
    checkout.console("set_booking_page", isOn=True, offer=[checkout.salon.service])
    return checkout


def enter(checkout: Checkout, account: FakeStripe) -> Any:
    """Enter the key of an account as the owner."""
    body = {"provider": "stripe", "shopId": "", "secret": account.secret, "vatCode": None}
    return checkout.set_merchant(**body)


def pay(checkout: Checkout, account: FakeStripe, start: str = "2027-01-18T10:00") -> None:
    """Book and pay at an account."""
    checkout.click(checkout.hold(start))
    account.pay(list(account.sessions)[-1])
    checkout.run_after(minutes=1)


def former(checkout: Checkout) -> list[Any]:
    return list(checkout.console("list_former_merchants")["merchants"])


@pytest.mark.parametrize("is_restricted", [False, True])
def test_key_of_another_account_leaves_the_former_one_its_payments(
    salon: Checkout, stripes: FakeStripes, is_restricted: bool
) -> None:
    pay(salon, stripes.a)
    stripes.a.is_restricted = stripes.b.is_restricted = is_restricted
    salon.click(salon.hold("2027-01-18T12:00"))  # a client is on the page of account A
    address = salon.console("get_merchant")["merchant"]["hookUrl"]
    assert enter(salon, stripes.b)["hookUrl"] != address
    stripes.a.pay(list(stripes.a.sessions)[-1])
    salon.run_after(minutes=5)
    assert salon.statuses == ["succeeded", "succeeded"]
    assert [salon.find(row.subject_id).status for row in salon.payments] == ["confirmed"] * 2
    for payment in salon.payments:
        salon.console("refund_payment", id=payment.id)
    salon.run_after(minutes=1)
    assert [row.status for row in salon.refunds] == ["done", "done"]
    assert len(stripes.a.refunds) == 2
    pay(salon, stripes.b, "2027-01-18T14:00")
    assert salon.statuses == ["succeeded"] * 3


@pytest.mark.parametrize("is_restricted", [False, True])
def test_rotated_key_of_the_same_account_replaces_its_secret(
    salon: Checkout, stripes: FakeStripes, is_restricted: bool
) -> None:
    pay(salon, stripes.a)
    stripes.a.is_restricted = is_restricted
    address = salon.console("get_merchant")["merchant"]["hookUrl"]
    stripes.a.secret = "rk_test_rotated_key"
    assert enter(salon, stripes.a)["hookUrl"] == address
    assert former(salon) == []
    salon.console("refund_payment", id=salon.payments[0].id)
    salon.run_after(minutes=1)
    assert [row.status for row in salon.refunds] == ["done"]


def test_restricted_key_finds_the_account_among_the_former_ones(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    address = salon.console("get_merchant")["merchant"]["hookUrl"]
    enter(salon, stripes.b)
    stripes.a.is_restricted, stripes.a.secret = True, "rk_test_restricted"
    assert enter(salon, stripes.a)["hookUrl"] == address
    assert [it["accountId"] for it in former(salon)] == ["acct_2B"]


def test_live_key_of_the_same_account_is_another_place(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    assert salon.console("get_merchant")["merchant"]["isTest"] is True
    stripes.b.account_id, stripes.b.is_live = stripes.a.account_id, True
    merchant = enter(salon, stripes.b)
    assert merchant["isTest"] is False
    assert [it["isTest"] for it in former(salon)] == [True]


def test_account_from_before_identities_is_compared_by_its_payments(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    row = merchants.find_current(salon.workspace)
    assert row
    row.account_id = row.is_test = None
    row.save()
    stripes.a.secret = "sk_test_rotated_key"
    enter(salon, stripes.a)
    assert former(salon) == []
    enter(salon, stripes.b)
    assert [it["lastFour"] for it in former(salon)] == ["_key"]


def test_payment_that_its_account_does_not_have_is_shown_to_the_owner(
    salon: Checkout, stripes: FakeStripes
) -> None:
    salon.click(salon.hold())
    session = stripes.a.sessions.popitem()
    salon.run_after(minutes=1)
    assert salon.payments[0].problem == "Stripe does not have this payment."
    page = f"/console/w/{salon.owner.workspace.slug}/bookings/{salon.booking.id}"
    html = person(salon.owner).get(page, Accept_Language="en").body.decode()
    assert "Stripe does not have this payment." in html
    page = page.rpartition("/bookings")[0] + "/payments"
    html = person(salon.owner).get(page, Accept_Language="ru").body.decode()
    assert ">Сверьте</span>" in html
    stripes.a.sessions.update([session])
    stripes.a.pay(session[0])
    salon.run_after(minutes=5)
    assert (salon.statuses, salon.payments[0].problem) == (["succeeded"], None)


def has_secret(checkout: Checkout) -> list[bool]:
    return [it["secretRemovedAt"] is None for it in former(checkout)]


def test_secret_of_a_former_account_goes_when_nothing_can_be_refunded(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    enter(salon, stripes.b)
    salon.run_after(days=10)
    assert has_secret(salon) == [True]
    salon.console("refund_payment", id=salon.payments[0].id)
    salon.run_after(minutes=1)
    assert [row.status for row in salon.refunds] == ["done"]
    salon.run_after(days=30)
    assert has_secret(salon) == [False]
    (row,) = [row for row in merchants.read_all(salon.workspace) if row.replaced_at]
    assert row.sealed_secret == ""


def test_secret_of_a_former_account_goes_after_400_days(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    enter(salon, stripes.b)
    for _ in range(13):
        salon.run_after(days=30)
        assert has_secret(salon) == [True]
    salon.run_after(days=11)
    assert has_secret(salon) == [False]
    salon.console("refund_payment", id=salon.payments[0].id)
    salon.run_after(minutes=1)
    (refund,) = salon.refunds
    assert (refund.status, "at the provider" in str(refund.failure)) == ("failed", True)


def test_owner_removes_the_secret_and_reads_what_is_left_to_do(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    enter(salon, stripes.b)
    path, user = f"/console/w/{salon.owner.workspace.slug}/payment-settings", person(salon.owner)
    html = user.get(path, Accept_Language="en").body.decode()
    (link,) = re.findall(rf'href="({path}/former/[^"]+)"', html)
    html = user.get(link, Accept_Language="en").body.decode()
    assert "1,500" in html.replace("\u00a0", " ")
    assert user.post(link, {}).status == 303
    assert has_secret(salon) == [False]
    assert user.get(link).status == 200
    pay(salon, stripes.b, "2027-01-18T14:00")


def test_payments_that_need_the_secret_of_a_former_account_are_counted(
    salon: Checkout, stripes: FakeStripes
) -> None:
    pay(salon, stripes.a)
    pay(salon, stripes.a, "2027-01-18T12:00")
    first, second = (row.id for row in salon.payments)
    salon.console("refund_payment", id=first, amount=PRICE - 1)
    salon.console("refund_payment", id=second)
    salon.click(salon.hold("2027-01-18T14:00"))
    enter(salon, stripes.b)
    pay(salon, stripes.b, "2027-01-18T16:00")
    (account,) = former(salon)
    use = salon.console("get_former_merchant", id=account["id"])
    counts = use["refundablePayments"], use["refundable"], use["openPayments"]
    assert counts == (1, 1, 1)
    needs = former_accounts.read_needs(salon.workspace, merchant_id=account["id"], limit=1)
    assert needs == (0, 0, 1)


def test_account_that_returns_gets_a_new_secret(salon: Checkout, stripes: FakeStripes) -> None:
    pay(salon, stripes.a)
    enter(salon, stripes.b)
    salon.console("remove_merchant_secret", id=former(salon)[0]["id"])
    enter(salon, stripes.a)
    assert [it["accountId"] for it in former(salon)] == ["acct_2B"]
    salon.console("refund_payment", id=salon.payments[0].id)
    salon.run_after(minutes=1)
    assert [row.status for row in salon.refunds] == ["done"]


def test_current_account_is_no_former_one(salon: Checkout) -> None:
    merchant_id = salon.console("get_merchant")["merchant"]["hookUrl"].rpartition("/")[2]
    for merchant in (merchant_id, "-", "unknown"):
        with pytest.raises(AppError) as refusal:
            salon.console("remove_merchant_secret", id=merchant)
        assert refusal.value.code == "not_found"


def test_test_key_takes_no_top_ups_where_only_live_ones_count(
    stripes: FakeStripes, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = replace(settings_module.settings(), payments_live=True)
    monkeypatch.setattr(operations, "settings", lambda: live)
    body = {"provider": "stripe", "secret": stripes.a.secret}
    with pytest.raises(AppError) as refusal:
        call_operator("set_platform_merchant", **body)
    assert refusal.value.errors[0].field == "secret"
    assert merchants.find_current(PLATFORM) is None
    stripes.a.is_live = True
    call_operator("set_platform_merchant", **body)
    assert merchants.find_current(PLATFORM) is not None
