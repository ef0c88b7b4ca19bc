"""The adapters of payment providers, against fakes that check requests by published schemas."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.gateways.payments import (
    Created,
    Merchant,
    PaymentProvider,
    PaymentRequest,
    PaymentState,
    PaymentUnknownError,
    ProviderError,
    Receipt,
    RefundRequest,
    RefundState,
    UnknownOutcomeError,
    client,
    provider_for,
)
from chalicelib.gateways.payments.local_merchant import return_payment, settle_payment
from tests import fakes
from tests.fakes.payments import FakeStripe, FakeYooKassa
from tests.fakes.payments.stripe import SECRET as STRIPE_SECRET
from tests.fakes.payments.yookassa import SECRET, SHOP_ID

SHOP = Merchant("yookassa", SHOP_ID, SECRET)
ACCOUNT = Merchant("stripe", "", STRIPE_SECRET)
REFERENCE = "01KDVDNA00VJ4NM46H08VSTAQG"
LOCAL = Merchant("test", "shop", "test_1")
RECEIPT = Receipt(
    "ada@example.com", None, "Мастер-класс «Хлеб»", 250050, "1", "2", "full_prepayment"
)


def payment_request(**changes: Any) -> PaymentRequest:
    """Return a request of 2,500.50 roubles that ends in 31 minutes."""
    request = PaymentRequest(
        250050,
        "RUB",
        "Мастер-класс «Хлеб», 1 декабря, 12:00",
        "https://bakery.example/pay/token",
        "payment-1",
        RECEIPT,
        clock.now() + timedelta(minutes=31),
        REFERENCE,
    )
    return request._replace(**changes)


class Shop:
    """An account at a provider, and how a client pays there."""

    def __init__(self, merchant: Merchant, server: Any, pay: Callable[[str], None]) -> None:
        self.provider: PaymentProvider = provider_for(merchant)
        self.server = server
        self.pay = pay

    def paid(self) -> tuple[Created, str | None]:
        """Return a payment that the client has paid, and its reference."""
        created = self.provider.create(payment_request())
        self.pay(created.provider_id)
        return created, self.provider.state(created.provider_id).payment_ref

    def refund(self, key: str, amount: int, payment: tuple[Created, str | None]) -> RefundState:
        created, payment_ref = payment
        receipt = RECEIPT._replace(amount=amount)
        return self.provider.refund(
            RefundRequest(created.provider_id, payment_ref, amount, "RUB", key, receipt)
        )


@pytest.fixture(params=["yookassa", "stripe", "test"])
def account(request: pytest.FixtureRequest) -> Shop:
    """Return an account of each provider."""
    match request.param:
        case "yookassa":
            shop: FakeYooKassa = request.getfixturevalue("yookassa")
            return Shop(SHOP, shop, lambda id_: shop.settle(id_, "succeeded"))
        case "stripe":
            server: FakeStripe = request.getfixturevalue("stripe")
            return Shop(ACCOUNT, server, server.pay)
    request.getfixturevalue("local_merchant")
    return Shop(LOCAL, None, lambda id_: settle_payment(id_, "succeeded"))


class TestAnyProvider:
    def test_a_payment_is_pending_until_the_client_pays(self, account: Shop) -> None:
        created = account.provider.create(payment_request())
        assert created.url.startswith(("https://", "http://127.0.0.1"))
        state = account.provider.state(created.provider_id)
        assert (state.status, state.amount, state.currency) == ("pending", 250050, "RUB")
        account.pay(created.provider_id)
        paid = account.provider.state(created.provider_id)
        assert (state.paid_at, paid.status) == (None, "succeeded")
        assert paid.paid_at is not None
        assert paid.paid_at.tzinfo is not None

    def test_a_report_names_the_reference_and_the_mode(self, account: Shop) -> None:
        created = account.provider.create(payment_request())
        state = account.provider.state(created.provider_id)
        assert (state.reference, state.is_test) == (REFERENCE, True)
        older = account.provider.create(payment_request(idempotency_key="older", reference=None))
        assert account.provider.state(older.provider_id).reference is None

    def test_the_same_key_returns_the_same_payment(self, account: Shop) -> None:
        request = payment_request()
        assert account.provider.create(request) == account.provider.create(request)
        other = account.provider.create(request._replace(idempotency_key="payment-2"))
        assert other.provider_id != account.provider.create(request).provider_id

    def test_refunds_are_made_once_for_a_key_and_listed(self, account: Shop) -> None:
        payment = account.paid()
        refunds = [account.refund(f"refund-{number}", 50000, payment) for number in range(5)]
        assert account.refund("refund-0", 50000, payment) == refunds[0]
        assert [refund.status for refund in refunds] == ["done"] * 5
        assert account.provider.refund_state(refunds[1].provider_id) == refunds[1]
        assert list(account.provider.list_refunds(payment[0].provider_id, payment[1])) == refunds
        assert account.provider.state(payment[0].provider_id).refunded == 250000

    def test_payments_that_were_returned_are_listed(self, account: Shop) -> None:
        payment, payment_ref = account.paid()
        begin, later = clock.now() - timedelta(days=30_000), clock.now() + timedelta(days=30)
        if account.server is None:
            return_payment(payment.provider_id, "returned", 100)
        else:
            for number in range(3):
                account.refund(f"refund-{number}", 100, (payment, payment_ref))
        assert account.provider.list_returned(begin) == {payment_ref or payment.provider_id}
        assert not account.provider.list_returned(later)

    def test_more_than_the_payment_is_not_refunded(self, account: Shop) -> None:
        payment = account.paid()
        account.refund("refund-1", 250000, payment)
        with pytest.raises(ProviderError):
            account.refund("refund-2", 51, payment)

    def test_what_is_not_paid_is_not_refunded(self, account: Shop) -> None:
        created = account.provider.create(payment_request())
        with pytest.raises(ProviderError):
            account.refund("refund-1", 100, (created, None))

    def test_an_unknown_payment_is_an_error(self, account: Shop) -> None:
        with pytest.raises(ProviderError, match="does not have this payment"):
            account.provider.state("../../2da5c87d-0384-50e8-a7f3-8d5646dd9e10")

    def test_working_credentials_name_their_account_and_mode(self, account: Shop) -> None:
        facts = account.provider.inspect()
        assert facts.account_id
        assert facts.is_test

    @pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000])
    def test_a_notification_without_an_id_is_ignored(self, account: Shop, body: bytes) -> None:
        assert account.provider.read_hook(body) is None

    def test_a_closing_receipt_is_accepted(self, account: Shop) -> None:
        payment, _ = account.paid()
        closing = RECEIPT._replace(payment_mode="full_payment")
        account.provider.closing_receipt(payment.provider_id, closing, "receipt-1")


@pytest.mark.parametrize(
    "merchant",
    [
        Merchant("yookassa", SHOP_ID, "wrong"),
        Merchant("yookassa", "1", SECRET),
        Merchant("yookassa", "магазин", "ключ\n"),
        Merchant("stripe", "", "pk_test_1"),
        Merchant("test", "shop", "live_1"),
    ],
    ids=str,
)
def test_wrong_credentials_are_found_by_the_check(
    merchant: Merchant, yookassa: FakeYooKassa, stripe: FakeStripe, local_merchant: None
) -> None:
    with pytest.raises(ProviderError) as refusal:
        provider_for(merchant).inspect()
    assert merchant.secret.strip() not in refusal.value.reason
    with pytest.raises(ProviderError):
        provider_for(merchant).create(payment_request())


class TestFailures:
    @pytest.fixture(params=["yookassa", "stripe"])
    def remote(self, request: pytest.FixtureRequest) -> Shop:
        merchant = SHOP if request.param == "yookassa" else ACCOUNT
        return Shop(merchant, request.getfixturevalue(request.param), lambda _: None)

    @pytest.mark.parametrize("status", [301, 409, 429, 500, 503])
    def test_statuses_after_which_the_outcome_is_unknown(self, remote: Shop, status: int) -> None:
        remote.server.breaks = fakes.status(status)
        with pytest.raises(UnknownOutcomeError):
            remote.provider.create(payment_request())

    def test_no_response_in_time_leaves_the_outcome_unknown(
        self, remote: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "SECONDS", 0.2)
        remote.server.breaks = fakes.silent
        with pytest.raises(UnknownOutcomeError):
            remote.provider.create(payment_request())

    @pytest.mark.parametrize("raw", fakes.GARBAGE, ids=lambda raw: raw[:20])
    def test_unusable_responses_leave_the_outcome_unknown(self, remote: Shop, raw: bytes) -> None:
        remote.server.breaks = fakes.body(raw)
        for call in (
            lambda: remote.provider.create(payment_request()),
            lambda: remote.provider.state("cs_1"),
            lambda: remote.provider.refund_state("re_1"),
        ):
            with pytest.raises(UnknownOutcomeError):
                call()

    def test_a_refusal_names_the_parameter_and_not_the_providers_message(
        self, yookassa: FakeYooKassa
    ) -> None:
        receipt = RECEIPT._replace(vat_code="99")
        with pytest.raises(ProviderError) as error:
            provider_for(SHOP).create(payment_request(receipt=receipt))
        assert error.value.reason == (
            "YooKassa refused the request (invalid_request, receipt.items.0.vat_code)."
        )


class TestYooKassa:
    def test_the_request_has_what_the_owner_and_the_law_require(
        self, yookassa: FakeYooKassa
    ) -> None:
        provider_for(SHOP).create(payment_request())
        request = yookassa.requests[0]
        assert request.headers["idempotence-key"] == "payment-1"
        assert json.loads(request.body) == {
            "amount": {"value": "2500.50", "currency": "RUB"},
            "capture": True,
            "confirmation": {
                "type": "redirect",
                "return_url": "https://bakery.example/pay/token",
            },
            "description": "Мастер-класс «Хлеб», 1 декабря, 12:00",
            "metadata": {"payment": REFERENCE},
            "receipt": {
                "customer": {"email": "ada@example.com"},
                "items": [
                    {
                        "description": "Мастер-класс «Хлеб»",
                        "quantity": 1,
                        "amount": {"value": "2500.50", "currency": "RUB"},
                        "vat_code": 1,
                        "payment_mode": "full_prepayment",
                        "payment_subject": "service",
                    }
                ],
                "tax_system_code": 2,
            },
        }

    def test_a_receipt_can_go_to_a_phone_and_be_of_a_deposit(self, yookassa: FakeYooKassa) -> None:
        receipt = RECEIPT._replace(
            email=None, phone="+79001234567", payment_mode="prepayment", tax_system_code=None
        )
        provider_for(SHOP).create(payment_request(receipt=receipt, purpose="x" * 300))
        receipt_json = json.loads(yookassa.requests[0].body)["receipt"]
        assert receipt_json["customer"] == {"phone": "79001234567"}
        assert receipt_json["items"][0]["payment_mode"] == "partial_prepayment"
        assert "tax_system_code" not in receipt_json

    @pytest.mark.parametrize(
        ("status", "reason", "expected"),
        [
            ("waiting_for_capture", None, "pending"),
            ("succeeded", None, "succeeded"),
            ("canceled", "expired_on_confirmation", "expired"),
            ("canceled", "insufficient_funds", "failed"),
            ("a_new_one", None, "pending"),
        ],
    )
    def test_states(
        self, yookassa: FakeYooKassa, status: str, reason: str | None, expected: str
    ) -> None:
        payment_id = provider_for(SHOP).create(payment_request()).provider_id
        yookassa.settle(payment_id, status, reason)
        state = provider_for(SHOP).expire(payment_id)
        assert (state.paid_at is not None) is (expected == "succeeded")
        assert state._replace(paid_at=None) == PaymentState(
            expected,  # type: ignore[arg-type]
            250050,
            "RUB",
            SHOP_ID,
            0,
            None,
            reference=REFERENCE,
            is_test=True,
        )

    @pytest.mark.parametrize("moment", ["yesterday", "2026-11-27", "2026-11-27T09:40:00", 5, None])
    def test_a_payment_without_a_valid_time_is_a_payment(
        self, yookassa: FakeYooKassa, moment: object
    ) -> None:
        payment_id = provider_for(SHOP).create(payment_request()).provider_id
        yookassa.settle(payment_id, "succeeded", None)
        yookassa.payments[payment_id]["captured_at"] = moment
        state = provider_for(SHOP).state(payment_id)
        assert (state.status, state.paid_at) == ("succeeded", None)

    @pytest.mark.parametrize("value", ["2500.505", "NaN", "1e999999", "", "2 500,50"])
    def test_an_amount_of_another_form_is_not_trusted(
        self, yookassa: FakeYooKassa, value: str
    ) -> None:
        payment_id = provider_for(SHOP).create(payment_request()).provider_id
        yookassa.payments[payment_id]["amount"]["value"] = value
        with pytest.raises(UnknownOutcomeError):
            provider_for(SHOP).state(payment_id)

    def test_another_payment_in_the_response_is_not_trusted(self, yookassa: FakeYooKassa) -> None:
        payment_id = provider_for(SHOP).create(payment_request()).provider_id
        yookassa.payments[payment_id]["id"] = "2da5c87d-0384-50e8-a7f3-8d5646dd9e10"
        with pytest.raises(UnknownOutcomeError):
            provider_for(SHOP).state(payment_id)

    @pytest.mark.parametrize("has_receipts", [True, False])
    def test_the_account_says_whether_it_sends_receipts(
        self, yookassa: FakeYooKassa, has_receipts: bool
    ) -> None:
        yookassa.has_receipts = has_receipts
        assert provider_for(SHOP).inspect() == (SHOP_ID, True, has_receipts)

    def test_a_shop_that_is_not_enabled_fails_the_check(self, yookassa: FakeYooKassa) -> None:
        yookassa.shop_status = "disabled"
        with pytest.raises(ProviderError, match="has not enabled this shop"):
            provider_for(SHOP).inspect()

    def test_the_closing_receipt_settles_the_prepayment(self, yookassa: FakeYooKassa) -> None:
        provider = provider_for(SHOP)
        payment_id = provider.create(payment_request()).provider_id
        provider.closing_receipt(
            payment_id, RECEIPT._replace(payment_mode="full_payment"), "receipt-1"
        )
        (receipt,) = yookassa.receipts
        assert receipt["items"][0]["payment_mode"] == "full_payment"
        assert receipt["settlements"] == [
            {"type": "prepayment", "amount": {"value": "2500.50", "currency": "RUB"}}
        ]

    def test_notifications_name_the_payment_also_for_refunds(self) -> None:
        payment = {"event": "payment.succeeded", "object": {"id": "p1", "status": "succeeded"}}
        refund = {"event": "refund.succeeded", "object": {"id": "r1", "payment_id": "p1"}}
        read = [provider_for(SHOP).read_hook(json.dumps(it).encode()) for it in (payment, refund)]
        assert read == [("p1", None), ("p1", "r1")]


class TestStripe:
    def test_the_request_is_for_a_card_and_ends_with_the_hold(self, stripe: FakeStripe) -> None:
        request = payment_request()
        provider_for(ACCOUNT).create(request)
        assert request.expires_at
        assert stripe_form(stripe) == {
            "mode": "payment",
            "payment_method_types": ["card"],
            "line_items": [
                {
                    "quantity": "1",
                    "price_data": {
                        "currency": "rub",
                        "unit_amount": "250050",
                        "product_data": {"name": "Мастер-класс «Хлеб», 1 декабря, 12:00"},
                    },
                }
            ],
            "adaptive_pricing": {"enabled": "false"},
            "success_url": "https://bakery.example/pay/token",
            "cancel_url": "https://bakery.example/pay/token",
            "expires_at": str(int(request.expires_at.timestamp())),
            "customer_email": "ada@example.com",
            "client_reference_id": REFERENCE,
            "metadata": {"payment": REFERENCE},
            "payment_intent_data": {"metadata": {"payment": REFERENCE}},
        }

    def test_an_open_session_is_expired(self, stripe: FakeStripe) -> None:
        session_id = provider_for(ACCOUNT).create(payment_request()).provider_id
        assert provider_for(ACCOUNT).expire(session_id).status == "expired"

    def test_a_session_that_is_paid_meanwhile_stays_paid(self, stripe: FakeStripe) -> None:
        session_id = provider_for(ACCOUNT).create(payment_request()).provider_id
        stripe.pay(session_id)
        state = provider_for(ACCOUNT).expire(session_id)
        assert (state.status, state.account) == ("succeeded", None)
        assert state.payment_ref == stripe.sessions[session_id]["payment_intent"]["id"]

    @pytest.mark.parametrize(
        ("status", "expected"),
        [("requires_action", "pending"), ("canceled", "failed"), ("failed", "failed")],
    )
    def test_refund_states(self, stripe: FakeStripe, status: str, expected: str) -> None:
        account = Shop(ACCOUNT, stripe, stripe.pay)
        payment = account.paid()
        stripe.refund_status = status
        assert account.refund("refund-1", 100, payment).status == expected

    @pytest.mark.parametrize(
        ("status", "taken"),
        [
            ("needs_response", 250050),
            ("under_review", 250050),
            ("lost", 250050),
            ("won", 0),
            ("warning_needs_response", 0),
        ],
    )
    def test_disputes(self, stripe: FakeStripe, status: str, taken: int) -> None:
        payment, payment_ref = Shop(ACCOUNT, stripe, stripe.pay).paid()
        stripe.dispute(payment.provider_id, status)
        provider = provider_for(ACCOUNT)
        assert provider.state(payment.provider_id).disputed == taken
        assert provider.list_returned(clock.now() - timedelta(days=30_000)) == {payment_ref}

    def test_a_key_without_rights_fails_the_check(self, stripe: FakeStripe) -> None:
        stripe.allows = False
        with pytest.raises(ProviderError, match="does not allow this"):
            provider_for(ACCOUNT).inspect()

    @pytest.mark.parametrize(
        ("secret", "is_test"),
        [(STRIPE_SECRET, True), ("rk_test_1", True), ("rk_live_1", False), ("sk_live_1", False)],
    )
    def test_a_restricted_key_names_its_mode_by_its_prefix(
        self, stripe: FakeStripe, secret: str, is_test: bool
    ) -> None:
        stripe.secret, stripe.is_restricted = secret, True
        facts = provider_for(Merchant("stripe", "", secret)).inspect()
        assert facts[:2] == (None, is_test)

    def test_a_payment_of_another_account_is_unknown(self, stripe: FakeStripe) -> None:
        with pytest.raises(PaymentUnknownError):
            provider_for(ACCOUNT).state("cs_test_of_another_account")

    def test_notifications_name_the_session_or_the_intent(self) -> None:
        session = {"object": "checkout.session", "id": "cs_1", "payment_intent": "pi_1"}
        charge = {"object": "charge", "id": "ch_1", "payment_intent": "pi_1"}
        refund = {"object": "refund", "id": "re_1", "payment_intent": "pi_1"}
        dispute = {"object": "dispute", "id": "du_1", "charge": "ch_1", "payment_intent": "pi_1"}
        ids = [
            provider_for(ACCOUNT).read_hook(json.dumps({"data": {"object": it}}).encode())
            for it in (session, charge, refund, dispute)
        ]
        assert ids == [("cs_1", None), ("pi_1", None), ("pi_1", "re_1"), ("pi_1", None)]


def stripe_form(server: FakeStripe) -> Any:
    """Return the form of the first request."""
    from tests.fakes.payments.stripe import nested

    return nested(server.requests[0].body)
