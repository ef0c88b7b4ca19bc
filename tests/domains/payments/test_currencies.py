"""A business sells in its own currency: on pages, in mails, to bots, at the provider, in files."""

import csv
import html
import json
from collections.abc import Callable

import pytest

from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import workspace_currency
from chalicelib.gateways import post
from tests.conftest import Owner, Time, call_operator
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox, text_of
from tests.domains.payments.checkout import EMAIL, Checkout, visitor
from tests.factories.chat import ask, new_bot
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon
from tests.fakes.payment_shop import SECRET, FakeShop, shop  # noqa: F401  a fixture
from tests.fakes.receiver import Receiver

pytestmark = pytest.mark.usefixtures("database")

PRICE = 12_500  # minor units
# The price as people read it, and as programs do.
SHOWN = {
    "JPY": ("¥12,500", "12500"),
    "GBP": ("£125", "125.00"),
    "EUR": ("€125", "125.00"),
    "KWD": ("KWD\xa012.500", "12.500"),
}
START = "2027-01-18T10:00"

Open = Callable[[str], Checkout]


@pytest.fixture
def open_in(
    new_owner: Callable[..., Owner],
    time: Time,
    inbox: Inbox,  # noqa: F811  the fixture
    shop: FakeShop,  # noqa: F811  the fixture
) -> Open:
    """Return a function that opens a salon whose service is paid in advance, in a currency."""

    def open_salon(currency: str) -> Checkout:
        owner = new_owner(name="Salon")
        api = owner.api()
        api.post("/api/workspace/update", {"currency": currency})
        salon = Salon.opened(api, requirePayment=True, price=PRICE)
        checkout = Checkout(owner, salon, time, shop, inbox)
        provider = "yookassa" if currency == "RUB" else "stripe"
        checkout.set_merchant(provider=provider, vatCode=None)
        run_until_idle()
        inbox.clear()
        checkout.console("set_booking_page", isOn=True, offer=[salon.service])
        return checkout

    return open_salon


def page(path: str) -> str:
    answer = visitor.call("GET", path, headers={"Accept-Language": "en"})
    assert answer.status == 200, answer.body
    return html.unescape(answer.body.decode())


def mails_of(checkout: Checkout, recipient: str) -> str:
    run_until_idle()
    found = [mail for mail in checkout.inbox.mails if mail["To"] == recipient]
    return "\n".join(text_of(mail) for mail in found)


@pytest.mark.parametrize("currency", SHOWN)
def test_a_client_books_and_pays_in_the_currency_of_the_business(
    open_in: Open, currency: str
) -> None:
    checkout, (shown, plain) = open_in(currency), SHOWN[currency]
    slug = checkout.owner.workspace.slug
    # The page, and what it says to programs.
    book = page(f"/book/{slug}")
    assert shown in book
    assert json.dumps(plain) in book
    assert f'"priceCurrency":"{currency}"' in book
    assert f"{plain} {currency}" in page(f"/book/{slug}/llms.txt")
    for name in ("business", "services"):
        answer = visitor.get(f"/api/public/{name}?workspace={slug}")
        assert answer.get("currency", answer.get("business", {}).get("currency")) == currency
    # The provider is asked for the same amount, and its report confirms the booking.
    path = checkout.hold()
    assert shown in page(path)
    assert checkout.click(path).status in {302, 303}
    request = checkout.shop.payments[checkout.shop.last_id].request
    assert (request.amount, request.currency, request.receipt) == (PRICE, currency, None)
    checkout.shop.pay()
    assert checkout.hook().status == 200
    (payment,) = checkout.payments
    assert (payment.status, payment.currency, checkout.booking.status) == (
        "succeeded",
        currency,
        "confirmed",
    )
    # The client's mail, the console and its file.
    assert shown.replace("\xa0", " ") in mails_of(checkout, EMAIL).replace("\xa0", " ")
    reader = person(checkout.owner)
    console = f"/console/w/{slug}"
    assert shown in html.unescape(
        reader.get(f"{console}/payments", Accept_Language="en").body.decode()
    )
    file = reader.get(f"{console}/payments?format=csv", Accept_Language="en")
    text = file.body.decode("utf-8-sig")
    (row,) = csv.DictReader(text.splitlines())
    assert float(row["Amount"]) == float(plain)
    assert "\xa0" not in text
    # A part of it goes back in the same currency.
    checkout.console("refund_payment", id=payment.id, amount=2_500)
    run_until_idle()
    ((_, refund),) = checkout.shop.refunds.values()
    assert refund.amount == 2_500


@pytest.mark.parametrize("currency", SHOWN)
def test_a_bot_says_the_price_in_the_currency_of_the_business(open_in: Open, currency: str) -> None:
    checkout = open_in(currency)
    answer = ask(new_bot(checkout.owner), "How much is a haircut?").text
    assert SHOWN[currency][0] in answer


def test_records_and_webhooks_have_integers_and_no_currency(
    open_in: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, receiver = open_in("KWD"), Receiver()
    monkeypatch.setattr(post, "post", receiver.post)
    url = "https://receiver.example/events"
    call_operator("create_webhook", workspaceId=checkout.workspace, url=url)
    checkout.book_by_key()
    run_until_idle()
    sent = b"".join(request.body for request in receiver.requests)
    assert b"12500" in sent
    assert b"KWD" not in sent
    service = checkout.salon.api.get(f"/api/services/{checkout.salon.service}")["service"]
    assert service["price"] == PRICE
    assert "currency" not in service


def test_a_report_in_another_currency_confirms_nothing(open_in: Open) -> None:
    checkout = open_in("GBP")
    checkout.click(checkout.hold())
    paid = checkout.shop.payments[checkout.shop.last_id]
    paid.request = paid.request._replace(currency="USD")
    checkout.shop.pay()
    checkout.hook()
    (payment,) = checkout.payments
    assert (payment.status, payment.problem) == ("pending", "another amount")
    assert checkout.booking.status == "pending_payment"


def test_a_payment_in_a_former_currency_is_settled_and_refunded_in_it(open_in: Open) -> None:
    checkout = open_in("GBP")
    checkout.click(checkout.hold())
    # No operation does this: the payment is older than the currency, as after a restored backup.
    row = WorkspaceRow.find(f"WORKSPACE#{checkout.workspace}", "workspace")
    assert row is not None
    row.update([WorkspaceRow.currency.set("JPY")])
    workspace_currency.forget()
    checkout.shop.pay()
    checkout.hook()
    (payment,) = checkout.payments
    assert (payment.status, payment.currency) == ("succeeded", "GBP")
    slug = checkout.owner.workspace.slug
    reader = person(checkout.owner)
    shown = html.unescape(
        reader.get(f"/console/w/{slug}/payments", Accept_Language="en").body.decode()
    )
    assert "£125" in shown
    # It has no sum with payments in yen.
    assert checkout.console("list_payments")["totals"]["paid"] == 0
    checkout.console("refund_payment", id=payment.id)
    run_until_idle()
    assert [state.amount for _, state in checkout.shop.refunds.values()] == [PRICE]


class TestDinars:
    """Stripe takes amounts of dinars whose last digit is 0."""

    def test_a_deposit_is_rounded_up_to_what_stripe_takes(self, open_in: Open) -> None:
        checkout = open_in("KWD")
        checkout.salon.api.post(
            "/api/services/update", {"id": checkout.salon.service, "price": 1_505}
        )
        for percent, due in ((50, 760), (100, 1_500)):
            checkout.console(
                "set_payment_terms",
                id=checkout.salon.service,
                depositPercent=percent,
                refundUntilMin=60,
            )
            slug = checkout.owner.workspace.slug
            (service,) = visitor.get(f"/api/public/services?workspace={slug}")["services"]
            assert service["amountDue"] == due
        checkout.click(checkout.hold())
        assert checkout.shop.payments[checkout.shop.last_id].request.amount == 1_500

    def test_a_refund_that_stripe_does_not_take_is_refused(self, open_in: Open) -> None:
        checkout = open_in("KWD")
        checkout.click(checkout.hold())
        checkout.shop.pay()
        checkout.hook()
        (payment,) = checkout.payments
        reader, slug = person(checkout.owner), checkout.owner.workspace.slug
        path = f"/console/w/{slug}/bookings/{checkout.booking.id}/payments/{payment.id}"
        answer = reader.post(path, {"amount": "1.005"})
        assert answer.status == 400
        assert not checkout.refunds
        assert reader.post(path, {"amount": "1.01"}).status == 303
        assert [int(refund.amount) for refund in checkout.refunds] == [1_010]


def test_prices_in_a_form_are_bounded_by_the_digits_of_the_currency(open_in: Open) -> None:
    checkout = open_in("JPY")
    reader, slug = person(checkout.owner), checkout.owner.workspace.slug
    path = f"/console/w/{slug}/products"
    form = reader.get(f"{path}/new", Accept_Language="en").body.decode()
    assert "Price, ¥" in html.unescape(form)
    assert reader.post(path, {"name": "Tea", "price": "12.5"}).status == 400
    assert reader.post(path, {"name": "Tea", "price": "1250"}).status == 303
    (product,) = checkout.salon.api.get("/api/products/list")["products"]
    assert product["price"] == 1_250


def test_the_settings_page_offers_the_currency_until_it_stays(
    new_owner: Callable[..., Owner],
) -> None:
    owner = new_owner()
    reader, path = person(owner), f"/console/w/{owner.workspace.slug}/settings"
    assert '<select id="currency"' in reader.get(path).body.decode()
    owner.api().post("/api/workspace/update", {"country": "GB"})
    # The zone and the currency of the country are offered, and filled in by a link.
    offered = reader.get(path).body.decode()
    assert "Europe/London, GBP" in offered
    filled = reader.get(f"{path}?fill=1").body.decode()
    assert 'value="Europe/London"' in filled
    assert '<option value="GBP" selected>' in filled
    owner.api().post("/api/products/create", {"name": "Tea", "price": 1})
    assert '<select id="currency"' not in reader.get(path).body.decode()
