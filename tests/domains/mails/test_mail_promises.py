"""Pages promise only e-mails that will be sent, and mails say what is due."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.bookings.operations.visit_payments import NoMailError
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.rules import mail_budgets
from chalicelib.domains.mails.rules.mail_budgets import BUDGETS
from chalicelib.domains.mails.store import mail_rates
from chalicelib.engine import limits
from chalicelib.gateways import mail
from chalicelib.lib import mailboxes
from tests.conftest import call_operator
from tests.domains.notifications.inbox import text_of
from tests.domains.payments.checkout import EMAIL, Checkout
from tests.domains.payments.conftest import checkout, shop  # noqa: F401  fixtures
from tests.factories.event_runs import run_until_idle

pytestmark = pytest.mark.usefixtures("database")


def paid_page(checkout: Checkout) -> str:  # noqa: F811  the fixture
    """Pay a booking, and return the page that the client then sees."""
    path = checkout.hold()
    checkout.click(path)
    checkout.shop.pay()
    return checkout.view(path, is_back=True)


def test_page_after_a_payment_says_that_the_details_come_by_mail(
    checkout: Checkout,  # noqa: F811  the fixture
) -> None:
    page = paid_page(checkout)
    assert "The details of your booking come by e-mail." in page
    assert ".ics" not in page
    run_until_idle()
    assert any(each["To"] == EMAIL for each in checkout.inbox.mails)


def suppress(_: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_gate, "is_suppressed", lambda *_: True)


def switch_mails_off(checkout: Checkout, _: pytest.MonkeyPatch) -> None:  # noqa: F811  the fixture
    checkout.console("update_service", id=checkout.salon.service, visitorMails=False)


def pause(checkout: Checkout, _: pytest.MonkeyPatch) -> None:  # noqa: F811  the fixture
    mail_rates.pause(checkout.workspace, "stranger", "complaints")


def mails_are_off(_: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "is_on", lambda: False)


@pytest.fixture
def real_limits(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()


@pytest.mark.parametrize("silence", [suppress, switch_mails_off])
def test_page_after_a_payment_gives_the_calendar_file_if_no_mail_follows(
    silence: Callable[[Checkout, pytest.MonkeyPatch], None],
    checkout: Checkout,  # noqa: F811  the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silence(checkout, monkeypatch)
    page = paid_page(checkout)
    assert "There will be no e-mail about it." in page
    assert ".ics" in page
    run_until_idle()
    assert not any(each["To"] == EMAIL for each in checkout.inbox.mails)


def use_up(address: str, workspace_id: str) -> None:
    """Use up the e-mails of businesses to an address, and what the workspace has in reserve."""
    budget = BUDGETS["business"]
    reserved = mail_budgets.reserve("business", budget)
    assert reserved is not None
    mailbox = mailboxes.mailbox_key(address)
    limits.take(budget, mailbox, budget.max_requests)
    limits.take(reserved, f"{mailbox}#{workspace_id}", reserved.max_requests)


def test_page_after_a_payment_says_that_the_mail_waits(
    checkout: Checkout,  # noqa: F811  the fixture
    real_limits: None,
) -> None:
    use_up(EMAIL, checkout.workspace)
    assert "comes later" in paid_page(checkout)


def call_as(who: str, operation: str, body: dict[str, Any]) -> Any:
    principal = VisitorPrincipal(visitor=who)
    reply = invoke(REGISTRY[operation], principal, lambda: body, request_id="r")
    return json.loads(reply.body)["data"]


class TestBookings:
    """What a booking says of its e-mail, compared with what is sent."""

    def test_a_booking_says_that_its_mail_is_sent(
        self,
        checkout: Checkout,  # noqa: F811  the fixture
    ) -> None:
        assert checkout.book_on_page()["mail"] == "sent"
        run_until_idle()
        assert any(each["To"] == EMAIL for each in checkout.inbox.mails)

    @pytest.mark.parametrize("silence", [suppress, switch_mails_off, pause, mails_are_off])
    def test_a_booking_says_that_no_mail_follows(
        self,
        silence: Callable[[Checkout, pytest.MonkeyPatch], None],
        checkout: Checkout,  # noqa: F811  the fixture
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        silence(checkout, monkeypatch)
        assert checkout.book_on_page()["mail"] == "none"
        run_until_idle()
        assert not any(each["To"] == EMAIL for each in checkout.inbox.mails)

    def test_a_booking_without_an_address_has_no_mail(
        self,
        checkout: Checkout,  # noqa: F811  the fixture
    ) -> None:
        checkout.set_merchant(vatCode=None)
        contact = {"name": "Grace", "phone": "+79161234567"}
        assert checkout.book_on_page(client=contact)["mail"] == "none"

    def test_a_booking_says_so_when_its_visitor_has_caused_too_many(
        self,
        checkout: Checkout,  # noqa: F811  the fixture
        real_limits: None,
    ) -> None:
        checkout.console("update_service", id=checkout.salon.service, requirePayment=False)
        call_operator("set_plan", workspaceId=checkout.workspace, plan="free")
        said = []
        for number in range(10):
            start = f"2027-01-{18 + number // 5}T{8 + number % 5:02}:00:00Z"
            contact = {"name": "Grace", "email": f"v{number}@example.com"}
            body = {"serviceId": checkout.salon.service, "startAt": start, "client": contact}
            made = call_as("attacker", "create_public_booking", body)
            said.append(made["mail"])
            run_until_idle()
        sent = [each for each in checkout.inbox.mails if str(each["To"]).startswith("v")]
        assert said == ["sent"] * 5 + ["none"] * 5
        assert len(sent) == 5


class TestPaymentLinks:
    """The link that a member mails to the client from the console."""

    def test_a_link_that_cannot_be_mailed_is_refused(
        self,
        checkout: Checkout,  # noqa: F811  the fixture
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        checkout.hold()
        switch_mails_off(checkout, monkeypatch)
        with pytest.raises(NoMailError):
            checkout.console("send_payment_link", bookingId=checkout.booking.id)

    def test_a_link_that_waits_says_so(
        self,
        checkout: Checkout,  # noqa: F811  the fixture
        real_limits: None,
    ) -> None:
        checkout.hold()
        booking = {"bookingId": checkout.booking.id}
        assert checkout.console("send_payment_link", **booking)["mail"] == "sent"
        use_up(EMAIL, checkout.workspace)
        assert checkout.console("send_payment_link", **booking)["mail"] == "waiting"


def test_mails_say_what_is_due_and_what_is_left_to_pay(
    checkout: Checkout,  # noqa: F811  the fixture
) -> None:
    terms = {"depositPercent": 30, "refundUntilMin": 1_440}
    checkout.console("set_payment_terms", id=checkout.salon.service, **terms)
    path = checkout.hold()
    run_until_idle()
    (pending,) = (each for each in checkout.inbox.mails if each["To"] == EMAIL)
    text = text_of(pending).replace("\u00a0", " ")
    assert "To pay now: 450 ₽" in text
    assert "Pay until: " in text
    assert "To pay at the visit: 1,050 ₽" in text
    checkout.inbox.clear()
    checkout.click(path)
    checkout.shop.pay()
    checkout.hook()
    run_until_idle()
    (confirmed,) = (each for each in checkout.inbox.mails if each["To"] == EMAIL)
    text = text_of(confirmed).replace("\u00a0", " ")
    assert "Paid: 450 ₽" in text
    assert "To pay at the visit: 1,050 ₽" in text
    assert "To pay now" not in text
