"""Payments to the platform, which are credited to the balance of an account once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core import settings as settings_module
from chalicelib.core.errors import AppError
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.flows import settling
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS
from chalicelib.domains.payments.store import merchants
from tests.conftest import call_console, call_operator
from tests.domains.payments.checkout import Checkout, visitor
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.fakes.payment_shop import SECRET

pytestmark = pytest.mark.usefixtures("database")
AMOUNT = 250_000


@pytest.fixture
def platform(checkout: Checkout) -> Checkout:
    """A stage whose operator takes payments."""
    body = {"provider": "yookassa", "shopId": "100500", "secret": SECRET, "vatCode": "1"}
    call_operator("set_platform_merchant", **body)
    return checkout


def balance(checkout: Checkout) -> int:
    return int(ledger.wallet(checkout.owner.workspace.owner_id).available)


def open_top_up(checkout: Checkout, amount: int = AMOUNT) -> Any:
    return checkout.console("start_top_up", amount=amount)


def hook(body: str) -> None:
    merchant = merchants.find_current(PLATFORM)
    assert merchant
    path = f"/api/public/payments/hooks/{merchant.merchant_id}"
    assert visitor.call("POST", path, body.encode()).status == 200
    run_until_idle()


def changed_by_jobs(checkout: Checkout) -> list[tuple[str, str]]:
    """Return the type and the id of what the jobs of top-ups have changed, by the audit log."""
    entries = checkout.console("list_audit_log", limit=100)["entries"]
    return [
        (changed["type"], changed["id"])
        for entry in entries
        if entry["operation"] == PAYMENT_JOBS["top_up"]
        for changed in entry["resources"]
    ]


def test_top_up_is_credited_once(platform: Checkout) -> None:
    former = balance(platform)
    top_up = open_top_up(platform)
    request = platform.shop.payments["pay-1"].request
    assert (request.amount, top_up["url"]) == (AMOUNT, "https://pay.example/pay-1")
    assert request.return_url.endswith(f"/balance?payment={top_up['id']}")
    assert request.receipt is not None
    assert request.receipt.payment_mode == "advance"
    assert request.expires_at == clock.now() + timedelta(hours=1)
    assert platform.console("get_top_up", id=top_up["id"])["topUp"]["status"] == "pending"
    platform.shop.pay()
    for _ in range(2):
        assert platform.console("get_top_up", id=top_up["id"])["topUp"]["status"] == "succeeded"
        hook("pay-1")
        platform.run_after(minutes=1)
    assert balance(platform) == former + AMOUNT
    line = platform.console("get_statement")["lines"][0]
    assert (line["kind"], line["amount"], line["requestId"]) == ("topup", AMOUNT, top_up["id"])
    assert ("account", platform.owner.workspace.owner_id) in changed_by_jobs(platform)


@pytest.mark.parametrize("setting", ["PAYMENTS_LIVE=1", "STAGE=prod"])
def test_test_payment_credits_nothing_where_only_live_ones_count(
    platform: Checkout, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = balance(platform)
    open_top_up(platform)
    platform.shop.pay()
    platform.shop.payments["pay-1"].is_test = True
    name, _, value = setting.partition("=")
    live = settings_module.read({name: value}).payments_live
    now = replace(settings_module.settings(), payments_live=live)
    monkeypatch.setattr(settling, "settings", lambda: now)
    hook("pay-1")
    platform.run_after(minutes=1)
    assert balance(platform) == former


def test_top_up_whose_notification_is_lost_is_credited_by_the_job(platform: Checkout) -> None:
    former = balance(platform)
    open_top_up(platform)
    platform.shop.pay()
    platform.run_after(minutes=1)
    assert balance(platform) == former + AMOUNT


@pytest.mark.parametrize(
    ("country", "text"), [("RU", "Пополнение баланса"), ("DE", "Balance top-up")]
)
def test_receipt_is_in_the_language_of_the_workspace(
    platform: Checkout, country: str, text: str
) -> None:
    workspace = workspaces.get(platform.workspace)
    workspace.country = country
    workspace.save()
    open_top_up(platform)
    request = platform.shop.payments["pay-1"].request
    assert request.receipt is not None
    assert {request.purpose, request.receipt.description} == {text}


@pytest.mark.parametrize("amount", [9_999, 10_000_001])
def test_amounts_have_bounds(platform: Checkout, amount: int) -> None:
    with pytest.raises(AppError) as refusal:
        open_top_up(platform, amount)
    assert refusal.value.errors[0].field == "amount"


def test_top_up_of_another_account_is_not_found(platform: Checkout) -> None:
    top_up = open_top_up(platform)
    with pytest.raises(AppError) as refusal:
        call_console(platform.workspace, "get_top_up", account_id="other", id=top_up["id"])
    assert refusal.value.code == "not_found"


def test_top_up_without_an_account_of_the_operator_is_refused(checkout: Checkout) -> None:
    with pytest.raises(AppError) as refusal:
        open_top_up(checkout)
    assert refusal.value.code == "not_configured"


def test_top_up_that_the_provider_refuses_is_told_to_the_operator_only(
    platform: Checkout, caplog: pytest.LogCaptureFixture
) -> None:
    platform.shop.faults["create"] = ["The key was revoked."]
    with pytest.raises(AppError) as refusal:
        open_top_up(platform)
    assert refusal.value.code == "payment_refused"
    run_until_idle()
    assert platform.inbox.mails == []
    assert [record.msg for record in caplog.records if record.levelname == "ERROR"] == [
        "a payment provider refuses top-ups"
    ]


def test_top_up_is_no_payment_of_a_booking(platform: Checkout) -> None:
    top_up = open_top_up(platform)
    assert platform.console("list_payments")["payments"] == []
    with pytest.raises(AppError):
        platform.console("refund_payment", id=top_up["id"])


def test_an_account_opens_twenty_top_ups_a_day(
    platform: Checkout,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    user, path = person(platform.owner), f"/console/w/{platform.owner.workspace.slug}/balance"
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    answers = [user.post(path, {"amount": "100"}, Accept_Language="en") for _ in range(21)]
    assert [answer.status for answer in answers] == [200] * 20 + [429]
    assert "Try again tomorrow" in answers[-1].body.decode()
    assert len(platform.shop.payments) == 20
    platform.time.pass_by(days=1)
    user.start_session()
    assert user.post(path, {"amount": "100"}).status == 200
