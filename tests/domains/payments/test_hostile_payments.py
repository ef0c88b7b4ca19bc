"""Forged, foreign, repeated and contradictory reports of payments."""

import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.domains.payments.store import merchants
from chalicelib.engine.events import wake
from chalicelib.gateways.payments.yookassa import YooKassa
from tests.conftest import Owner, all_rows, call_console
from tests.domains.payments.checkout import PRICE, Checkout, visitor
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.fakes.payment_shop import SECRET, FakeProvider, FakeShop
from tests.support.sweep import sweep

load_all()
pytestmark = pytest.mark.usefixtures("database")


def test_forged_notification_confirms_nothing(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    assert checkout.hook().status == 200
    assert checkout.booking.status == "pending_payment"


@pytest.mark.parametrize(
    "body", ["unknown", "", "{", '{"object": {"id": "pay-1"}}', "\x00", "x" * 2_000]
)
def test_notification_about_an_unknown_payment_changes_nothing(
    checkout: Checkout, body: str
) -> None:
    checkout.click(checkout.hold())
    calls = list(checkout.shop.calls)
    merchant_id = checkout.console("get_merchant")["merchant"]["hookUrl"].rpartition("/")[2]
    path = f"/api/public/payments/hooks/{merchant_id}"
    assert visitor.call("POST", path, body.encode()).status == 200
    assert checkout.shop.calls == calls


def test_notification_with_a_surrogate_changes_nothing(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = staticmethod(YooKassa.read_hook)
    monkeypatch.setattr(FakeProvider, "read_hook", read)
    assert checkout.hook('{"object": {"id": "\\ud800"}}').status == 200


def test_response_to_a_notification_waits_for_no_provider(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    checkout.shop.refund_status = "pending"
    (payment,) = checkout.payments
    for _ in range(40):
        checkout.console("refund_payment", id=payment.id, amount=100)
    run_until_idle()
    checkout.shop.calls.clear()
    merchant_id = checkout.console("get_merchant")["merchant"]["hookUrl"].rpartition("/")[2]
    path = f"/api/public/payments/hooks/{merchant_id}"
    for _ in range(3):
        assert visitor.call("POST", path, b"pay-1").status == 200
    assert checkout.shop.calls == []
    assert wake._awake.is_set()
    run_until_idle()
    assert Counter(checkout.shop.calls) == {"state": 1, "refund_state": 40}


def test_notification_to_an_unknown_address_is_not_found(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    assert checkout.hook(merchant_id="unknown").status == 404
    path = "/api/public/payments/hooks/unknown"
    assert visitor.call("POST", path, b"\xff").status == 400
    assert visitor.call("POST", path, b"x" * 40_000).status == 413


def test_payment_of_another_workspace_is_not_found_by_its_id(
    checkout: Checkout, new_owner: Any, shop: FakeShop
) -> None:
    checkout.click(checkout.hold())
    shop.pay()
    other: Owner = new_owner()
    body = {"provider": "yookassa", "shopId": "100500", "secret": SECRET}
    merchant = call_console(other.workspace.id, "set_merchant", **body)["merchant"]
    assert checkout.hook(merchant_id=merchant["hookUrl"].rpartition("/")[2]).status == 200
    assert checkout.booking.status == "pending_payment"
    for name, arguments in (
        ("refund_payment", {"id": checkout.payments[0].id}),
        ("get_top_up", {"id": checkout.payments[0].id}),
    ):
        with pytest.raises(AppError) as refusal:
            call_console(other.workspace.id, name, **arguments)
        assert refusal.value.code == "not_found"


@pytest.mark.parametrize("fields", [{"amount": PRICE - 1}, {"account": "another shop"}])
def test_report_of_another_amount_or_account_is_not_believed(
    checkout: Checkout, fields: dict[str, Any]
) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    vars(checkout.shop.payments["pay-1"]).update(fields)
    checkout.hook()
    checkout.run_after(minutes=1)
    assert checkout.booking.status == "pending_payment"
    (payment,) = checkout.console("list_payments")["payments"]
    assert payment["problem"].startswith("another")


def test_report_of_another_currency_is_not_believed(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    payment = checkout.shop.payments["pay-1"]
    payment.request = payment.request._replace(currency="KRW")
    checkout.hook()
    assert checkout.booking.status == "pending_payment"


def test_client_who_returns_while_the_notification_arrives_pays_once(checkout: Checkout) -> None:
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay()
    with ThreadPoolExecutor(2) as pool:
        page = pool.submit(checkout.view, path, is_back=True)
        hook = pool.submit(checkout.hook)
        assert hook.result().status == 200
    assert "Booking paid" in page.result()
    assert (checkout.booking.paid, checkout.refunds) == (PRICE, [])
    assert checkout.subjects() == ["Booking confirmed"]


def test_creation_that_names_another_payment_opens_nothing(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.mistaken_id = "pay-1"
    second = checkout.click(checkout.hold("2027-01-18T12:00"))
    assert second.status == 409
    checkout.shop.pay("pay-1")
    checkout.hook("pay-1")
    checkout.run_after(minutes=5)
    rows = [checkout.find(row.subject_id) for row in checkout.payments]
    assert [row.paid for row in rows] == [PRICE, None]
    assert checkout.statuses == ["succeeded", "failed"]


@pytest.mark.parametrize("fault", ["reference", "intent"])
def test_report_of_another_payment_is_not_believed(checkout: Checkout, fault: str) -> None:
    for start in ("2027-01-18T10:00", "2027-01-18T12:00"):
        checkout.click(checkout.hold(start))
        checkout.shop.pay()
    first, second = checkout.shop.payments.values()
    if fault == "reference":
        second.reference = first.request.reference
    else:
        second.intent = "pay-1"
    for provider_id in ("pay-1", "pay-2"):
        checkout.hook(provider_id)
    checkout.run_after(minutes=1)
    assert checkout.statuses == ["succeeded", "pending"]
    assert checkout.payments[1].problem == "another payment"


def test_payment_from_before_references_is_applied(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    (payment,) = checkout.payments
    payment.reference = None
    payment.save()
    checkout.shop.payments["pay-1"].reference = "of another program"
    checkout.shop.pay()
    checkout.hook()
    checkout.run_after(minutes=1)
    assert checkout.booking.status == "confirmed"


def test_test_payment_is_shown_as_one(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.shop.payments["pay-1"].is_test = True
    checkout.hook()
    checkout.run_after(minutes=1)
    (payment,) = checkout.console("list_payments")["payments"]
    assert payment["isTest"]
    path = f"/console/w/{checkout.owner.workspace.slug}"
    for page in (f"{path}/payments", f"{path}/bookings/{checkout.booking.id}"):
        html = person(checkout.owner).get(page, Accept_Language="en").body.decode()
        assert '<span class="tag warn">Test</span>' in html


def test_repeated_notifications_apply_a_payment_once(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    for _ in range(3):
        assert checkout.hook().status == 200
        checkout.run_after(minutes=1)
    assert checkout.booking.paid == PRICE
    assert checkout.refunds == []


def test_payment_that_is_reported_as_paid_and_then_as_failed_is_paid(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    checkout.shop.pay(status="failed")
    checkout.hook()
    assert (checkout.statuses, checkout.booking.status) == (["succeeded"], "confirmed")


def test_provider_that_fails_delays_a_payment(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.shop.faults["state"] = ["before", "The key was revoked."]
    assert checkout.hook().status == 200
    checkout.run_after(minutes=1)
    assert checkout.booking.status == "pending_payment"
    checkout.run_after(minutes=5)
    assert checkout.booking.status == "confirmed"


def test_tokens_for_other_purposes_do_not_pay(checkout: Checkout) -> None:
    response = checkout.book_on_page()
    pay = response["paymentUrl"].rpartition("/")[2]
    calendar = response["icsUrl"].rpartition("/")[2].removesuffix(".ics")
    others = (response["cancelToken"], calendar, "unknown", f"{pay[:-4]}AAAA")
    for path in (f"/booking/{pay}", *(f"/pay/{token}" for token in others)):
        assert visitor.call("GET", path).status == 404
        assert visitor.call("POST", path, b"", {"Content-Type": "text/plain"}).status in {404, 415}


def test_secret_is_stored_encrypted_and_never_returned(checkout: Checkout) -> None:
    merchant = checkout.console("get_merchant")
    assert merchant["merchant"]["lastFour"] == SECRET[-4:]
    assert SECRET not in json.dumps(merchant)
    assert SECRET not in repr(all_rows())


def test_sealed_secret_of_another_workspace_cannot_be_used(
    checkout: Checkout, new_owner: Any
) -> None:
    other: Owner = new_owner()
    body = {"provider": "yookassa", "shopId": "1", "secret": SECRET}
    call_console(other.workspace.id, "set_merchant", **body)
    stolen, row = (
        merchants.find_current(workspace_id)
        for workspace_id in (checkout.workspace, other.workspace.id)
    )
    assert stolen
    assert row
    row.sealed_secret = stolen.sealed_secret
    row.save()
    reason = call_console(other.workspace.id, "check_merchant")["reason"]
    assert "Enter it again" in reason


def test_wrong_secret_is_found_when_it_is_entered(checkout: Checkout) -> None:
    rows = all_rows()
    with pytest.raises(AppError) as refusal:
        checkout.set_merchant(secret="a-wrong-secret")
    assert refusal.value.errors[0].field == "secret"
    assert all_rows().keys() == rows.keys()


def test_a_workspace_tries_ten_secrets_an_hour(
    checkout: Checkout,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    path = f"/console/w/{checkout.owner.workspace.slug}/payment-settings"
    account = {"provider": "yookassa", "shopId": "100500", "vatCode": "1"}
    user, asked_before = person(checkout.owner), checkout.shop.calls.count("inspect")
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    checkout.time.pass_by(hours=1)
    answers = [user.post(path, account | {"secret": f"sk_live_stolen_{n}"}) for n in range(8)]
    answers += [user.get(f"{path}?check=1") for _ in range(4)]
    answers.append(user.post(path, account | {"secret": SECRET}))
    statuses = [answer.status for answer in answers]
    assert statuses == [400] * 8 + [200] * 2 + [429] * 3
    assert checkout.shop.calls.count("inspect") - asked_before == 10
    checkout.time.pass_by(hours=1)
    assert user.post(path, account | {"secret": SECRET}).status == 303


def test_another_account_leaves_payments_of_the_former_one_refundable(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    former = checkout.console("get_merchant")["merchant"]["hookUrl"]
    checkout.set_merchant(shopId="200600")
    assert checkout.console("get_merchant")["merchant"]["hookUrl"] != former
    assert checkout.hook(merchant_id=former.rpartition("/")[2]).status == 200
    checkout.console("refund_payment", id=checkout.payments[0].id)
    checkout.run_after(minutes=1)
    assert checkout.shop.refunded("pay-1") == PRICE


def test_account_that_is_set_up_again_keeps_its_address_and_its_payments(
    checkout: Checkout,
) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    former = checkout.console("get_merchant")["merchant"]["hookUrl"]
    for number in range(2):
        checkout.set_merchant(shopId="200600")
        assert checkout.console("get_merchant")["merchant"]["hookUrl"] != former
        checkout.shop.secret = f"another-secret-of-the-shop-{number}"
        checkout.set_merchant(secret=checkout.shop.secret)
        assert checkout.console("get_merchant")["merchant"]["hookUrl"] == former
        assert checkout.console("check_merchant")["reason"] is None
        checkout.shop.secret = SECRET
    assert checkout.hook().status == 200
    assert checkout.booking.status == "confirmed"


WORDS = re.compile("paid|pay(?!load)|refund|deposit|merchant|topup|due(?!at)", re.IGNORECASE)
ALLOWED = {"requirePayment", "depositPercent", "paymentTerms", "refundUntilMin", "takesPayments"}
ALLOWED |= {"hasPayments"}  # of an export, false for each export by a key
"""Settings of a service, and whether clients can pay at all."""


def field_names(schema: Any) -> set[str]:
    """Return the names of all fields in a JSON Schema."""
    if isinstance(schema, list):
        return {name for part in schema for name in field_names(part)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})).union(*map(field_names, schema.values()))


@sweep("operation", REGISTRY.select(Audience.KEY))
def test_no_response_to_a_key_or_a_tool_has_a_field_of_a_payment(operation: Operation) -> None:
    models = (operation.input, operation.output)
    names = set().union(*(field_names(model.model_json_schema()) for model in models))
    assert [name for name in names - ALLOWED if WORDS.search(name)] == []


VISITORS = {"pay_booking"}
"""Operations of payments that a client calls by the token of the client's own booking."""
SETTINGS = {"get_payment_terms", "set_payment_terms"}
"""Operations that read and set what a service asks for in advance."""


def test_operations_of_payments_have_no_route_for_keys_and_no_tool() -> None:
    ours = [
        entry
        for entry in REGISTRY.entries()
        if any(word in entry.name for word in ("pay", "merchant", "refund", "top_up"))
    ]
    assert len(ours) > 12
    assert {entry.name for entry in ours if entry.path or entry.tool} == VISITORS | SETTINGS
    for name in VISITORS:
        assert REGISTRY.entry(name).audience == {Audience.PUBLIC}
    for name in SETTINGS:
        entry = REGISTRY.entry(name)
        assert entry.tool is None
        assert entry.scope in {Scope.SETTINGS_READ, Scope.SETTINGS_WRITE}
