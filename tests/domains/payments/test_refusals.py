"""Codes on receipts, and payments that the provider refuses."""

import csv

import pytest

from chalicelib.core.errors import AppError
from chalicelib.domains.payments.store import merchants
from chalicelib.gateways.payments import Account
from tests.domains.payments.checkout import PRICE, Checkout
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.fakes.payment_shop import FakeProvider

pytestmark = pytest.mark.usefixtures("database")
REASON = "YooKassa refused the request (invalid_request, receipt.items.0.vat_code)."


def page(checkout: Checkout, path: str, language: str = "en") -> str:
    path = f"/console/w/{checkout.owner.workspace.slug}/{path}"
    return person(checkout.owner).get(path, Accept_Language=language).body.decode()


@pytest.mark.parametrize(
    "codes",
    [
        *({"vatCode": code} for code in ("20", "0", "99", "13")),
        *({"taxSystemCode": code} for code in ("9", "0")),
        {"closingVatCode": "22"},
    ],
)
def test_code_that_does_not_exist_is_refused(checkout: Checkout, codes: dict[str, str]) -> None:
    with pytest.raises(AppError) as refusal:
        checkout.set_merchant(**codes)
    assert [error.field for error in refusal.value.errors] == [*codes]


def test_codes_are_offered_with_words(checkout: Checkout) -> None:
    html = page(checkout, "payment-settings")
    prepayment, closing = (
        html.split(f'name="{name}"')[1].split("</select>")[0]
        for name in ("vatCode", "closingVatCode")
    )
    assert '<option value="12">12. 22/122' in prepayment
    assert '<option value="11">11. 22%' in closing
    assert 'value="11"' not in prepayment
    assert 'value="12"' not in closing
    for code in ("1", "2"):  # without tax and 0 %, which suit both receipts
        assert f'<option value="{code}"' in prepayment
        assert f'<option value="{code}"' in closing
    assert "Патентная" in page(checkout, "payment-settings", "ru")


def test_stored_code_that_does_not_exist_is_shown_and_kept(checkout: Checkout) -> None:
    row = merchants.find_current(checkout.workspace)
    assert row
    row.vat_code, row.tax_system_code = "20", "9"
    row.save()
    merchant = checkout.console("get_merchant")["merchant"]
    assert (merchant["vatCode"], merchant["wrongCodes"]) == ("20", ["vatCode", "taxSystemCode"])
    html = page(checkout, "payment-settings")
    assert "A stored code does not exist" in html
    assert '<option value="20" selected>20: no such code' in html
    row = merchants.find_current(checkout.workspace)
    assert row
    assert row.vat_code == "20"


def test_closing_receipt_has_a_rate_of_its_own(checkout: Checkout) -> None:
    checkout.set_merchant(vatCode="12", closingVatCode="11")
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    checkout.console("set_booking_status", id=checkout.booking.id, status="completed")
    checkout.run_after(days=4)
    request = checkout.shop.payments["pay-1"].request
    assert request.receipt
    (closing,) = checkout.shop.receipts.values()
    assert (request.receipt.rate_code, closing.rate_code) == ("12", "11")


def test_shop_that_sends_receipts_needs_a_code(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account("100500", is_test=False, has_receipts=True)
    monkeypatch.setattr(FakeProvider, "inspect", lambda _: account)
    with pytest.raises(AppError) as refusal:
        checkout.set_merchant(vatCode=None)
    assert refusal.value.errors[0].field == "vatCode"
    checkout.set_merchant(vatCode="1")
    with pytest.raises(AppError):
        checkout.set_merchant(secret=None, vatCode=None)


def test_paid_booking_needs_an_address_for_the_receipt(checkout: Checkout) -> None:
    client = {"name": "Grace", "phone": "+74951234567"}
    with pytest.raises(AppError) as refusal:
        checkout.book_on_page(client=client)
    assert refusal.value.errors[0].field == "client.email"
    checkout.set_merchant(vatCode=None)
    assert checkout.book_on_page(client=client)["paymentUrl"]


def test_only_receipts_of_yookassa_need_an_address(checkout: Checkout) -> None:
    client = {"name": "Grace", "phone": "+74951234567"}
    checkout.set_merchant(provider="stripe", shopId="", vatCode="1")
    assert checkout.book_on_page(client=client)["paymentUrl"]


def test_part_below_the_providers_minimum_is_refused(checkout: Checkout) -> None:
    service = checkout.salon.service
    checkout.owner.api().post("/api/services/update", {"id": service, "price": 5_000})
    terms = {"id": service, "refundUntilMin": 60}
    with pytest.raises(AppError) as refusal:
        checkout.console("set_payment_terms", **terms, depositPercent=1)
    assert refusal.value.errors[0].field == "depositPercent"
    checkout.console("set_payment_terms", **terms, depositPercent=2)


def refuse(checkout: Checkout, start: str) -> None:
    checkout.shop.faults["create"] = [REASON]
    assert checkout.click(checkout.hold(start)).status == 409


def mails(checkout: Checkout) -> list[str]:
    run_until_idle()
    return [
        str(mail["Subject"])
        for mail in checkout.inbox.mails
        if "Платёжная система отклоняет платежи" in str(mail["Subject"])
    ]


def test_refusal_has_its_state_and_its_reason_everywhere(checkout: Checkout) -> None:
    refuse(checkout, "2027-01-18T10:00")
    (payment,) = checkout.console("list_payments")["payments"]
    assert (payment["status"], payment["reason"]) == ("refused", REASON)
    for path in ("payments", f"bookings/{checkout.booking.id}"):
        html = page(checkout, path)
        assert ">Refused</span>" in html
        assert REASON in html
    path = f"/console/w/{checkout.owner.workspace.slug}/payments?format=csv"
    text = person(checkout.owner).get(path, Accept_Language="en").body.decode("utf-8-sig")
    (row,) = csv.DictReader(text.splitlines())
    assert (row["State"], row["Reason"]) == ("Refused", REASON)


def test_owner_is_told_of_the_first_refusal_until_a_payment_is_taken_again(
    checkout: Checkout,
) -> None:
    for start in ("2027-01-18T10:00", "2027-01-18T12:00"):
        refuse(checkout, start)
    assert len(mails(checkout)) == 1
    assert "The provider refuses payments since" in page(checkout, "payment-settings")
    checkout.run_after(hours=1)  # the holds end
    checkout.click(checkout.hold("2027-01-18T14:00"))
    assert checkout.console("get_merchant")["merchant"]["refusedAt"] is None
    refuse(checkout, "2027-01-18T16:00")
    assert len(mails(checkout)) == 2


def test_payment_that_a_client_did_not_make_is_not_refused(checkout: Checkout) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay(status="failed")
    checkout.hook()
    (payment,) = checkout.console("list_payments")["payments"]
    assert payment["status"] == "failed"
    assert payment["amount"] == PRICE
