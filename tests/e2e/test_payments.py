"""Clients pay bookings at the test merchant in a browser, and get their money back."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chalicelib.domains.identity.store import accounts
from chalicelib.transports import scheduled_functions
from tests.conftest import PASSWORD, Api, Owner, Time, call_console
from tests.domains.notifications.clients import ADA, mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.e2e.conftest import SCREENS, STILL, OpenConsole, save_screenshot
from tests.e2e.test_booking_page import Opened, booking_url, check, choose_a_time, salon, send
from tests.factories.event_runs import run_until_idle
from tests.factories.payments import MERCHANT
from tests.factories.salon import Salon

__all__ = ["booking_url", "salon"]

PAYABLE, DECLINED, PENDING = "Payment", "Payment declined", "Payment not finished"
PAID, REFUNDED = "Booking paid", "Your payment is being returned"
ENGLISH = {**STILL, "locale": "en-US"}


@pytest.fixture
def paid_service(
    salon: Salon,
    owner: Owner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    """A service that is paid in advance, to the test merchant, with e-mails in a folder."""
    monkeypatch.setenv("MAIL", "file")
    monkeypatch.setenv("MAIL_FOLDER", str(tmp_path))
    reload_settings()
    call_console(owner.workspace.id, "set_merchant", **MERCHANT)
    call_console(
        owner.workspace.id, "update_service", id=salon.service, requirePayment=True, price=390_000
    )


pytestmark = pytest.mark.usefixtures("paid_service")


def hold_a_time(page: Page) -> str:
    """Book a time, and return the link that pays the booking."""
    choose_a_time(page)
    send(page, name="Ada", email=ADA)
    return str(page.locator('a[href*="/pay/"]').get_attribute("href"))


def act(page: Page, action: str, title: str) -> None:
    """Go to the page of the provider, and do there what the client does."""
    page.locator("button.button").click()
    page.wait_for_url("**/dev/pay/**")
    page.locator(f"button[value={action}]").click()
    expect(page.locator("h1")).to_have_text(title)


def the_booking(api: Api) -> dict[str, Any]:
    """Return the only booking of the client."""
    (booking,) = api.get("/api/bookings/list")["bookings"]
    return dict(booking)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_payment_that_was_declined_and_closed_is_made_by_the_link_of_the_mail(
    screen: str, booking_url: str, api: Api, open_url: Opened, tmp_path: Path
) -> None:
    with open_url(booking_url, **SCREENS[screen] | ENGLISH) as page:
        page.goto(hold_a_time(page))
        expect(page.locator("h1")).to_have_text(PAYABLE)
        check(page, f"pay-{screen}")
        act(page, "decline", DECLINED)
        act(page, "close", PENDING)
        check(page, f"pay-{screen}-pending")
    assert the_booking(api)["status"] == "pending_payment"
    run_until_idle()
    (mail,) = mails_to(Inbox(tmp_path))
    link = re.search(r"http\S+/pay/[\w=-]+", text_of(mail))
    assert link is not None
    with open_url(link.group(), **SCREENS[screen] | ENGLISH) as page:
        act(page, "pay", PAID)
        check(page, f"pay-{screen}-paid")
    assert the_booking(api)["status"] == "confirmed"
    run_until_idle()
    confirmation = mails_to(Inbox(tmp_path))[-1]
    assert [part.get_filename() for part in confirmation.iter_attachments()] == ["booking.ics"]


WORDS = {
    "ru": {
        "now": "Оплата при записи: 1 170 ₽. Остальное, 2 730 ₽, — на месте.",
        "button": "Записаться и оплатить 1 170 ₽",
        "declined": "Платёж отклонён",
        "paid": "Запись оплачена",
        "left": "Останется оплатить на месте",
        "refund": "Вам вернётся 1 170 ₽",
        "returning": "1 170 ₽: ",
    },
    "en": {
        "now": "Paid when booking: 1,170 ₽. The rest, 2,730 ₽, is paid at the visit.",
        "button": "Book and pay 1,170 ₽",
        "declined": "Payment declined",
        "paid": "Booking paid",
        "left": "To pay at the visit",
        "refund": "You get back 1,170 ₽",
        "returning": "1,170 ₽: ",
    },
}
"""What a client reads about a deposit of 30 percent, from the terms to the refund."""


def plain(text: str | None) -> str:
    """Return a text with ordinary spaces."""
    return (text or "").replace("\xa0", " ").replace("\u202f", " ")


@pytest.mark.parametrize("language", WORDS)
def test_a_client_reads_the_terms_pays_after_a_decline_and_is_refunded_after_a_move(
    language: str,
    booking_url: str,
    api: Api,
    salon: Salon,
    owner: Owner,
    open_url: Opened,
) -> None:
    words, workspace_id = WORDS[language], owner.workspace.id
    terms = {"id": salon.service, "depositPercent": 30, "refundUntilMin": 60}
    call_console(workspace_id, "set_payment_terms", **terms)
    screen = {**SCREENS["phone"], **STILL, "locale": {"ru": "ru-RU", "en": "en-US"}[language]}
    with open_url(booking_url, **screen) as page:

        def see(name: str, *keys: str) -> None:
            text = plain(page.locator("main").text_content())
            assert [words[key] for key in keys if words[key] not in text] == []
            check(page, f"deposit-{language}-{name}")

        see("1-list", "now")
        choose_a_time(page)
        see("2-form", "now", "button")
        send(page, name="Ada", email=ADA)
        see("3-held", "left")
        booking_link = page.locator("#link").input_value()
        page.goto(str(page.locator('a[href*="/pay/"]').get_attribute("href")))
        see("4-pay", "left")
        act(page, "decline", words["declined"])
        see("5-declined", "declined", "left")
        act(page, "pay", words["paid"])
        see("6-paid", "paid", "left")
        call_console(
            workspace_id,
            "reschedule_booking",
            id=the_booking(api)["id"],
            startAt="2027-01-29T12:00:00+03:00",
            ignoreSchedule=True,
        )
        page.goto(booking_link)
        see("7-moved", "left")
        page.locator('a[href*="step=cancel"]').click()
        see("8-cancel", "refund")
        page.locator("button.button").click()
        expect(page.locator("button.button")).to_have_count(0)
        see("9-cancelled", "returning")
    scheduled_functions.run_jobs()
    payments = call_console(workspace_id, "list_payments")["payments"]
    assert [payment["refunded"] for payment in payments] == [117_000, 0]


def test_a_member_sends_the_link_and_notes_the_rest_on_a_phone(
    booking_url: str,
    api: Api,
    salon: Salon,
    owner: Owner,
    open_url: Opened,
    open_console: OpenConsole,
) -> None:
    terms = {"id": salon.service, "depositPercent": 30, "refundUntilMin": 60}
    call_console(owner.workspace.id, "set_payment_terms", **terms)
    with open_url(booking_url, **ENGLISH) as page:
        pay_link = hold_a_time(page)
    path = f"/console/w/{owner.workspace.slug}/bookings/{the_booking(api)['id']}"
    with open_console(**SCREENS["phone"]) as tab:
        tab.start_session(accounts.get(owner.workspace.owner_id).email)
        tab.open(path)
        expect(tab.page.locator("#pay-link")).to_have_text(pay_link)
        save_screenshot(tab.page, "deposit-console-1-link")
        tab.page.locator("button[value=send_link]").click()
        expect(tab.page.get_by_role("status").first).to_be_visible()
        with open_url(pay_link, **ENGLISH) as page:
            act(page, "pay", PAID)
        tab.open(path)
        save_screenshot(tab.page, "deposit-console-2-paid")
        tab.page.locator("button[value=cash]").click()
        expect(tab.page.get_by_text("Оплачено наличными")).to_be_visible()
        save_screenshot(tab.page, "deposit-console-3-noted")


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_payment_after_the_hold_confirms_a_free_time_or_is_refunded(
    is_taken: bool, booking_url: str, api: Api, salon: Salon, time: Time, open_url: Opened
) -> None:
    with open_url(booking_url, **ENGLISH) as page:
        page.goto(hold_a_time(page))
        page.locator("button.button").click()
        page.wait_for_url("**/dev/pay/**")
        booking = the_booking(api)
        time.pass_by(minutes=31)
        scheduled_functions.run_jobs()
        assert the_booking(api)["status"] == "cancelled"
        if is_taken:
            order = salon.order(booking["startAt"]) | {"ignoreSchedule": True}
            for resource_id in salon.resources:
                body = order | {
                    "resourceId": resource_id,
                    "client": {"name": "Bo", "email": "bo@example.com"},
                }
                api.post("/api/bookings/create", body)
        page.locator("button[value=pay]").click()
        expect(page.locator("h1")).to_have_text(REFUNDED if is_taken else PAID)
    bookings = api.get("/api/bookings/list")["bookings"]
    status_by_id = {row["id"]: row["status"] for row in bookings}
    assert status_by_id[booking["id"]] == ("cancelled" if is_taken else "confirmed")


@pytest.mark.parametrize("is_in_time", [True, False])
def test_a_client_who_cancels_reads_before_the_click_what_comes_back(
    is_in_time: bool, booking_url: str, salon: Salon, owner: Owner, time: Time, open_url: Opened
) -> None:
    # The first free time is 18 hours away.
    limit = 60 if is_in_time else 24 * 60
    call_console(
        owner.workspace.id,
        "set_payment_terms",
        id=salon.service,
        depositPercent=50,
        refundUntilMin=limit,
    )
    with open_url(booking_url, **ENGLISH) as page:
        pay_link = hold_a_time(page)
        booking_link = page.locator("#link").input_value()
        page.goto(pay_link)
        act(page, "pay", PAID)
        page.goto(booking_link)
        page.locator('a[href*="step=cancel"]').click()
        notice = "You get back" if is_in_time else "It is too late for a refund"
        expect(page.get_by_text(notice)).to_be_visible()
        page.locator("button.button").click()
        expect(page.locator("h1")).to_have_text("Your booking is cancelled")
    scheduled_functions.run_jobs()
    (payment,) = call_console(owner.workspace.id, "list_payments")["payments"]
    assert payment["refunded"] == (195_000 if is_in_time else 0)


def test_a_member_refunds_a_part_of_a_payment_in_the_console(
    booking_url: str, api: Api, owner: Owner, open_url: Opened, open_console: OpenConsole
) -> None:
    with open_url(booking_url, **ENGLISH) as page:
        page.goto(hold_a_time(page))
        act(page, "pay", PAID)
    with open_console(locale="en-US") as tab:
        tab.start_session(accounts.get(owner.workspace.owner_id).email)
        tab.open(f"/console/w/{owner.workspace.slug}/bookings/{the_booking(api)['id']}")
        tab.page.get_by_role("link", name="Refund").click()
        tab.page.get_by_label("Amount,").fill("900")
        tab.page.locator("#currentPassword").fill(PASSWORD)
        tab.page.get_by_role("button", name="Refund").click()
        expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
        scheduled_functions.run_jobs()
        tab.page.reload()
        expect(tab.page.locator("main")).to_contain_text("900 ₽")
    (payment,) = call_console(owner.workspace.id, "list_payments")["payments"]
    assert (payment["refunded"], payment["refundable"]) == (90_000, 300_000)
