"""Pages promise only e-mails that will be sent, and mails say what is due."""

from collections.abc import Callable

import pytest

from chalicelib.domains.mails.flows import mail_gate
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
    assert any(mail["To"] == EMAIL for mail in checkout.inbox.mails)


def suppress(_: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail_gate, "is_suppressed", lambda _: True)


def switch_mails_off(checkout: Checkout, _: pytest.MonkeyPatch) -> None:  # noqa: F811  the fixture
    checkout.console("update_service", id=checkout.salon.service, visitorMails=False)


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
    assert not any(mail["To"] == EMAIL for mail in checkout.inbox.mails)


def test_page_after_a_payment_says_that_the_mail_waits(
    checkout: Checkout,  # noqa: F811  the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mail_gate, "_is_used_up", lambda *_: True)
    assert "comes later" in paid_page(checkout)


def test_mails_say_what_is_due_and_what_is_left_to_pay(
    checkout: Checkout,  # noqa: F811  the fixture
) -> None:
    terms = {"depositPercent": 30, "refundUntilMin": 1_440}
    checkout.console("set_payment_terms", serviceId=checkout.salon.service, **terms)
    path = checkout.hold()
    run_until_idle()
    (pending,) = (mail for mail in checkout.inbox.mails if mail["To"] == EMAIL)
    text = text_of(pending).replace("\u00a0", " ")
    assert "To pay now: 450 ₽" in text
    assert "Pay until: " in text
    assert "To pay at the visit: 1,050 ₽" in text
    checkout.inbox.clear()
    checkout.click(path)
    checkout.shop.pay()
    checkout.hook()
    run_until_idle()
    (confirmed,) = (mail for mail in checkout.inbox.mails if mail["To"] == EMAIL)
    text = text_of(confirmed).replace("\u00a0", " ")
    assert "Paid: 450 ₽" in text
    assert "To pay at the visit: 1,050 ₽" in text
    assert "To pay now" not in text
