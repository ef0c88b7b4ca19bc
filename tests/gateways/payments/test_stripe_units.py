"""Amounts in Stripe's units, where these are not those of ISO 4217."""

from datetime import timedelta

import pytest

from chalicelib.core import clock
from chalicelib.gateways.payments import (
    Merchant,
    PaymentRequest,
    ProviderError,
    RefundRequest,
    provider_for,
    stripe_units,
)
from chalicelib.lib.currencies import DIGITS
from tests.fakes.payments import FakeStripe
from tests.fakes.payments.stripe import SECRET
from tests.fakes.payments.yookassa import SECRET as YOOKASSA_SECRET
from tests.fakes.payments.yookassa import SHOP_ID


def request_of(amount: int, currency: str) -> PaymentRequest:
    until = clock.now() + timedelta(minutes=31)
    return PaymentRequest(amount, currency, "Haircut", "https://a.example/", "key", None, until)


# What Stripe's page says of each: "To charge 5 UGX, provide an amount value of 500" and so on.
@pytest.mark.parametrize(
    ("currency", "amount", "theirs"),
    [
        ("RUB", 150_050, 150_050),
        ("GBP", 1_250, 1_250),
        ("EUR", 1_250, 1_250),
        ("JPY", 500, 500),
        ("KRW", 500, 500),
        ("KWD", 5_120, 5_120),
        ("TND", 10, 10),
        ("UGX", 5, 500),
        ("ISK", 5, 500),
        ("MGA", 500, 5),
        ("HUF", 1_000, 1_000),
        ("TWD", 80_045, 80_045),
    ],
)
def test_a_payment_and_its_refund_have_stripes_units_there_and_ours_here(
    stripe: FakeStripe, currency: str, amount: int, theirs: int
) -> None:
    provider = provider_for(Merchant("stripe", "", SECRET))
    created = provider.create(request_of(amount, currency))
    session = stripe.sessions[created.provider_id]
    assert (session["amount_total"], session["currency"]) == (theirs, currency.lower())
    stripe.pay(created.provider_id)
    state = provider.state(created.provider_id)
    assert (state.amount, state.currency) == (amount, currency)
    refund = RefundRequest(created.provider_id, state.payment_ref, amount, currency, "r", None)
    assert provider.refund(refund).amount == amount
    assert [each["amount"] for each in stripe.refunds.values()] == [theirs]
    assert provider.state(created.provider_id).refunded == amount


@pytest.mark.parametrize(("currency", "amount"), [("KWD", 1_505), ("MGA", 150), ("IQD", 1_000)])
def test_what_stripe_cannot_take_is_refused_and_never_rounded(
    stripe: FakeStripe, currency: str, amount: int
) -> None:
    provider = provider_for(Merchant("stripe", "", SECRET))
    with pytest.raises(ProviderError, match=currency):
        provider.create(request_of(amount, currency))
    assert not stripe.sessions


@pytest.mark.parametrize("currency", sorted(DIGITS.keys() - stripe_units.NOT_TAKEN))
def test_units_are_converted_without_a_loss(currency: str) -> None:
    amount = 7 * stripe_units.step(currency)
    theirs = stripe_units.to_stripe(amount, currency)
    assert theirs is not None
    assert stripe_units.from_stripe(theirs, currency) == amount


@pytest.mark.usefixtures("yookassa")
def test_yookassa_refuses_another_currency_than_rubles() -> None:
    provider = provider_for(Merchant("yookassa", SHOP_ID, YOOKASSA_SECRET))
    with pytest.raises(ProviderError, match="GBP"):
        provider.create(request_of(1_250, "GBP"))
