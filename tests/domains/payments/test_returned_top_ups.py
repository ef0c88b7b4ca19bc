"""Top-ups that are refunded or disputed at the provider, which a balance loses once."""

from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.rules.pricing import Prices
from chalicelib.domains.billing.rules.spending_windows import InsufficientBalanceError
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.payments.store import merchants
from tests.conftest import call_operator
from tests.domains.payments.checkout import Checkout
from tests.domains.payments.test_top_ups import AMOUNT, balance, hook, open_top_up
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.fakes.payment_shop import SECRET

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def platform(checkout: Checkout) -> Checkout:
    """A stage whose operator takes payments, and an owner who has topped up a balance of 0."""
    body = {"provider": "yookassa", "shopId": "100500", "secret": SECRET, "vatCode": "1"}
    call_operator("set_platform_merchant", **body)
    change(checkout, "adjust", -balance(checkout))
    open_top_up(checkout)
    checkout.shop.pay()
    hook("pay-1")
    assert balance(checkout) == AMOUNT
    return checkout


def change(checkout: Checkout, operation: str, kopecks: int) -> Any:
    """Credit or adjust the balance as the operator."""
    if not kopecks:
        return None
    email = accounts.get(checkout.owner.workspace.owner_id).email
    key = f"{operation} {kopecks}"
    body = {"account": email, "kopecks": kopecks, "reason": "x", "idempotencyKey": key}
    return call_operator(operation, **body)


def lines(checkout: Checkout) -> list[tuple[str, int]]:
    found = checkout.console("get_statement")["lines"]
    return [(line["kind"], line["amount"]) for line in found if "topup" in line["kind"]]


@pytest.mark.parametrize("how", ["elsewhere", "disputed"])
def test_returned_top_up_leaves_the_balance_once(platform: Checkout, how: str) -> None:
    setattr(platform.shop.payments["pay-1"], how, AMOUNT)
    for _ in range(3):
        hook("pay-1")
        platform.run_after(minutes=1)
    assert balance(platform) == 0
    assert lines(platform)[:2] == [("topup_returned", -AMOUNT), ("topup", AMOUNT)]


def test_top_up_that_is_returned_before_it_is_read_is_credited_and_returned(
    platform: Checkout,
) -> None:
    open_top_up(platform)
    platform.shop.pay()
    platform.shop.payments["pay-2"].elsewhere = 50_000
    hook("pay-2")
    assert balance(platform) == 2 * AMOUNT - 50_000


def test_parts_are_returned_one_after_another_and_a_won_dispute_comes_back(
    platform: Checkout,
) -> None:
    payment = platform.shop.payments["pay-1"]
    payment.elsewhere = 50_000
    hook("pay-1")
    payment.disputed = AMOUNT - 50_000
    platform.run_after(seconds=2)
    hook("pay-1")
    assert balance(platform) == 0
    payment.disputed = 0
    platform.run_after(seconds=2)
    hook("pay-1")
    assert balance(platform) == AMOUNT - 50_000


def test_dispute_that_becomes_a_refund_is_returned_once(platform: Checkout) -> None:
    payment = platform.shop.payments["pay-1"]
    for disputed, elsewhere in [(50_000, 0), (0, 50_000), (0, AMOUNT)]:
        payment.disputed, payment.elsewhere = disputed, elsewhere
        platform.run_after(seconds=2)
        hook("pay-1")
    rest = AMOUNT - 50_000
    returned = [("topup_returned", -rest), ("topup_returned", -50_000)]
    assert lines(platform)[:3] == [*returned, ("topup", AMOUNT)]
    found = platform.console("get_statement")["lines"][:3]
    assert len({line["requestId"] for line in found} - {None}) == 1
    assert None not in {line["requestId"] for line in found}


def test_spent_money_makes_the_balance_negative_until_the_next_top_up(platform: Checkout) -> None:
    change(platform, "adjust", 40_000 - AMOUNT)
    platform.shop.payments["pay-1"].elsewhere = AMOUNT
    hook("pay-1")
    assert balance(platform) == 40_000 - AMOUNT
    terms = charging.Terms(
        platform.owner.workspace.owner_id,
        platform.workspace,
        "agent",
        "UTC",
        Prices(1_000_000, 1_000_000),
        "model",
    )
    with pytest.raises(InsufficientBalanceError):
        charging.reserve(terms, "request", 10, max_output_tokens=100)
    with pytest.raises(AppError) as refusal:
        change(platform, "adjust", -1)
    assert refusal.value.code == "conflict"
    change(platform, "credit", 1)
    html = person(platform.owner).get(f"/console/w/{platform.owner.workspace.slug}/balance")
    assert "−2" in html.body.decode().replace("-", "−")
    open_top_up(platform)
    platform.shop.pay()
    hook("pay-2")
    assert balance(platform) == 40_001
    charging.release(charging.reserve(terms, "request", 10, max_output_tokens=100))
    assert balance(platform) == 40_001


def test_list_of_the_day_finds_what_no_notification_has_told(platform: Checkout) -> None:
    platform.run_after(minutes=2)  # the job of the new payment has ended
    platform.shop.payments["pay-1"].elsewhere = AMOUNT
    platform.run_after(hours=12)
    assert balance(platform) == AMOUNT
    platform.run_after(hours=13)
    assert balance(platform) == 0
    platform.run_after(hours=24)
    first, second = platform.shop.listed_since[0], platform.shop.listed_since[-1]
    assert 23 <= (second - first).total_seconds() / 3600 <= 26
    assert lines(platform)[0] == ("topup_returned", -AMOUNT)


def test_list_that_fails_is_repeated_from_the_same_time(platform: Checkout) -> None:
    platform.shop.faults["list_returned"] = ["before", "The key was revoked."] * 2
    for _ in range(4):
        platform.run_after(hours=24)
    since = [f"{at:%d %H}" for at in platform.shop.listed_since]  # of two accounts
    assert since == ["15 11", "15 11", "18 11", "18 11"]
    platform.shop.payments["pay-1"].elsewhere = AMOUNT
    platform.run_after(hours=25)
    assert balance(platform) == 0


def test_account_from_before_such_lists_begins_with_its_next_payment(platform: Checkout) -> None:
    merchant = merchants.find_current(PLATFORM)
    assert merchant
    merchant.returns_read_at = None
    merchant.save()
    open_top_up(platform)
    merchant = merchants.find_current(PLATFORM)
    assert merchant
    assert merchant.returns_read_at


def test_owner_and_operator_are_told(platform: Checkout, caplog: pytest.LogCaptureFixture) -> None:
    platform.shop.payments["pay-1"].disputed = AMOUNT
    hook("pay-1")
    run_until_idle()
    assert "a top-up was returned at the provider" in caplog.text
    kinds = [mail["Subject"] for mail in platform.inbox.mails]
    assert any("Пополнение возвращено или оспорено" in str(subject) for subject in kinds)


def test_disputed_payment_of_a_booking_is_shown_and_not_refunded(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    checkout.shop.payments["pay-1"].disputed = 100_000
    checkout.run_after(seconds=2)
    checkout.hook()
    (payment,) = checkout.console("list_payments")["payments"]
    assert (payment["disputed"], payment["refundable"]) == (100_000, 50_000)
    page = f"/console/w/{checkout.owner.workspace.slug}/payments"
    html = person(checkout.owner).get(page, Accept_Language="en").body.decode()
    assert ">Disputed</span>" in html
