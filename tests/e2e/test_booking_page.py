"""The booking page and the link that manages a booking, in a browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Frame, Page, expect

from tests.conftest import Api, Owner, Time, call_console
from tests.domains.notifications.clients import book, mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.e2e.conftest import (
    SCREENS,
    STILL,
    Site,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import FRIDAYS, Salon

NOON = "2027-03-03T12:00:00Z"
LONG = "Hopper" * 30
FIRST_TIME = 500
"""Pixels above the first free time on a phone, at most."""
Opened = Callable[..., Any]


@pytest.fixture
def salon(service: str, api: Api) -> Salon:
    """A salon with two members of staff, of whom one has a very long name."""
    return Salon.opened(
        api,
        resources=[{"name": "Grace"}, {"name": LONG}],
        description="Wash, cut and finish. Please come five minutes early.\n\u202bשלום\u202c",
    )


@pytest.fixture
def booking_url(service: str, salon: Salon, owner: Owner) -> str:
    """The URL of the salon's booking page."""
    where = owner.workspace
    call_console(where.id, "set_booking_page", isOn=True, offer=[salon.service])
    return f"{service}/book/{where.slug}"


def check(page: Page, name: str) -> None:
    """Check that a page is accessible, valid and not too wide, and save a picture."""
    assert findings(page) == []
    assert elements(page, OVERFLOW) == []
    if "/booking/" in page.url or not page.locator(".result").count():
        assert markup_errors(page) == []
    save_screenshot(page, name)


def choose_a_time(page: Page | Frame, check_step: Callable[[str], None] = lambda _: None) -> None:
    """Choose the service, anyone of the staff, a day and a time."""
    page.locator(".cards a").first.click()
    expect(page.locator("#staff")).to_be_visible()
    check_step("staff")
    page.locator(".cards a").first.click()
    expect(page.locator("#month")).to_be_visible()
    check_step("times")
    another_day = page.locator("td a:not([aria-current])").first
    if not another_day.count():  # On the last days of a month.
        page.locator(".turn a").last.click()
        page.wait_for_url("**month=**")
    address = str(another_day.get_attribute("href"))
    another_day.click()
    page.wait_for_url(lambda url: address in url)
    expect(page.locator("td [aria-current]")).to_be_visible()
    page.locator(".times a").first.click()
    expect(page.locator("#contacts")).to_be_visible()
    check_step("form")


def send(page: Page, inside: Page | Frame | None = None, **fields: str) -> None:
    """Fill in the form as slowly as a visitor does, and send it."""
    where = inside or page
    for name, value in fields.items():
        where.locator(f"#{name}").fill(value)
    page.clock.fast_forward(3_000)
    where.locator("button.button").click()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_visitor_books_on_any_screen_and_moves_and_cancels_the_booking(
    screen: str, booking_url: str, open_url: Opened
) -> None:
    with open_url(booking_url, **SCREENS[screen], **STILL) as page:
        check(page, f"book-{screen}-services")
        choose_a_time(page, lambda step: check(page, f"book-{screen}-{step}"))
        send(page, name="Ada", phone="12")
        expect(page.locator("#phone-error")).to_be_visible()
        expect(page.locator("#name")).to_have_value("Ada")
        check(page, f"book-{screen}-wrong")
        send(page, phone="+7 916 123-45-67")
        expect(page.locator("h1")).to_have_text(re.compile("You are booked|Вы записаны"))
        check(page, f"book-{screen}-done")
        page.goto(page.locator("#link").input_value())
        check(page, f"booking-{screen}")
        page.locator('a[href*="step=move"]').click()
        check(page, f"booking-{screen}-move")
        page.locator(".times li a").last.click()
        check(page, f"booking-{screen}-confirm")
        page.locator("button.button").click()
        expect(page.get_by_role("status")).to_be_visible()
        page.locator('a[href*="step=cancel"]').click()
        check(page, f"booking-{screen}-cancel")
        page.locator("button.button").click()
        cancelled = re.compile("Your booking is cancelled|Ваша запись отменена")
        expect(page.get_by_role("heading", level=1)).to_have_text(cancelled)
        assert page.get_by_role("button").count() == 0


def test_a_visitor_books_moves_and_cancels_without_script(
    booking_url: str, open_url: Opened
) -> None:
    with open_url(booking_url, java_script_enabled=False) as page:
        choose_a_time(page)
        page.locator("#name").fill("Ada")
        page.locator("#email").fill("ada@example.com")
        page.locator("button.button").click()
        expect(page.locator("h1")).to_have_text("You are booked")
        page.goto(page.locator("#link").input_value())
        page.locator('a[href*="step=move"]').click()
        page.locator(".times li a").last.click()
        page.locator("button.button").click()
        expect(page.get_by_role("status")).to_have_text("The booking was moved.")
        page.locator('a[href*="step=cancel"]').click()
        page.locator("button.button").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is cancelled")


def test_the_keyboard_alone_reaches_a_day_and_a_time(booking_url: str, open_url: Opened) -> None:
    with open_url(booking_url) as page:
        page.locator(".cards a").first.focus()
        page.keyboard.press("Enter")
        page.locator(".cards a").first.focus()
        page.keyboard.press("Enter")
        page.locator("td a").last.focus()
        page.keyboard.press("Enter")
        expect(page.locator("td [aria-current]")).to_be_visible()
        page.locator(".times a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#contacts")).to_be_visible()


@pytest.mark.parametrize("language", ["en-US", "ru-RU"])
def test_the_first_time_of_a_day_is_on_the_first_screen_of_a_phone(
    language: str, booking_url: str, salon: Salon, open_url: Opened
) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "locale": language}
    with open_url(f"{booking_url}/{salon.service}?staff=any", **phone) as page:
        page.locator(".turn [rel~=next]").click()  # Of this month, little may be left.
        page.wait_for_url("**month=**")
        box = page.locator(".times li a").first.bounding_box()
        assert box
        assert box["y"] < FIRST_TIME
        weeks = page.locator(".month tbody tr")
        expect(weeks.locator("visible=true")).to_have_count(2)
        page.locator(".whole a").click()
        expect(weeks.locator("visible=true")).to_have_count(weeks.count())
        expect(page.locator(".whole a")).to_be_hidden()
        page.go_back()
        weeks.nth(1).locator("a").last.focus()
        page.keyboard.press("ArrowDown")
        expect(weeks.nth(2).locator("a:focus")).to_be_visible()


def test_visitor_in_another_zone_sees_both_times(booking_url: str, open_url: Opened) -> None:
    with open_url(booking_url, timezone_id="America/New_York") as page:
        choose_a_time(page)
        expect(page.locator(".own")).to_contain_text("By your clock:")
    with open_url(booking_url, timezone_id="Europe/Moscow") as page:
        choose_a_time(page)
        expect(page.locator(".own")).to_have_text("")


def embedded(page: Page) -> Frame:
    """Return the frame with the booking page."""
    frame = page.frame_locator("iframe").locator(".cards a").first
    expect(frame).to_be_visible()
    return page.frames[1]


def test_embedded_booking_page_has_a_frame_of_its_height(
    booking_url: str, site: Site, open_url: Opened
) -> None:
    parts = urlsplit(booking_url)
    slug = booking_url.rpartition("/")[2]
    script = f'<script src="{parts.scheme}://{parts.netloc}/book.js" data-workspace="{slug}" async>'
    site.pages["/"] = (
        '<!doctype html><html lang="en"><head><title>Salon</title></head><body>'
        f"<h1>Salon</h1>{script}</script></body></html>"
    )
    with open_url(site.url, **STILL) as page:
        frame = embedded(page)
        height = "() => document.querySelector('iframe').getBoundingClientRect().height"
        page.wait_for_function(f"() => ({height})() < 500")
        assert page.get_by_title("Online booking").count() == 1
        choose_a_time(frame)
        page.wait_for_function(f"() => ({height})() > 500")
        save_screenshot(page, "book-embedded")
        send(page, frame, name="Ada", email="ada@example.com")
        expect(page.frame_locator("iframe").locator("h1")).to_have_text("You are booked")
        link = frame.locator("#link").input_value()
        site.pages["/framed"] = f'<iframe src="{link}"></iframe>'
        page.goto(f"{site.url}/framed")
        expect(page.frame_locator("iframe").get_by_text("Your booking")).to_have_count(0)
        assert page.frames[1].url.startswith("chrome-error:"), "the secret link is never framed"


def test_a_sandboxed_page_of_a_site_embeds_the_booking(
    booking_url: str, service: str, api: Api, open_url: Opened
) -> None:
    slug = booking_url.rpartition("/")[2]
    project = api.post("/api/projects/create", {"title": "Salon"})["project"]
    page_made = api.post("/api/pages/create", {"projectId": project["id"], "title": "Book"})["page"]
    html = (
        '<!doctype html><html lang="en"><title>Salon</title><h1>Salon</h1>'
        f'<script src="{service}/book.js" data-workspace="{slug}" async></script></html>'
    )
    api.post("/api/pages/save-html", {"id": page_made["id"], "html": html})
    with open_url(f"{service}/s/{project['slug']}/{page_made['slug']}", **STILL) as page:
        frame = embedded(page)
        assert frame.evaluate("origin") == "null"
        choose_a_time(frame)
        send(page, frame, name="Ada", email="ada@example.com")
        expect(page.frame_locator("iframe").locator("h1")).to_have_text("You are booked")


@pytest.fixture
def booking_link(
    salon: Salon,
    time: Time,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> str:
    """The link in the mail about a new booking."""
    monkeypatch.setenv("MAIL", "file")
    monkeypatch.setenv("MAIL_FOLDER", str(tmp_path))
    reload_settings()
    book(salon, NOON)
    run_until_idle()
    link_match = re.search(r"http\S+/booking/[\w=-]+", text_of(mails_to(Inbox(tmp_path))[0]))
    assert link_match
    return link_match[0]


@pytest.mark.parametrize("screen", SCREENS)
def test_a_client_cancels_by_the_link_of_the_mail_on_any_screen(
    screen: str, booking_link: str, open_url: Opened
) -> None:
    with open_url(booking_link, **SCREENS[screen] | {"locale": "en-GB"}) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is confirmed")
        page.locator('a[href*="step=cancel"]').click()
        page.get_by_role("button").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is cancelled")
        assert urlsplit(page.url).path == urlsplit(booking_link).path
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Your booking is cancelled")


SMALL = """() => [...document.querySelectorAll("a, button, input, select, textarea")]
  .filter((each) => each.checkVisibility() && !each.closest("[hidden]") && each.type !== "hidden"
    && !each.matches(".skip, p.lead a, .marks a"))
  .map((each) => [each.outerHTML.slice(0, 90), each.getBoundingClientRect()])
  .filter(([, box]) => box.height < 24 || box.width < 24)
  .map(([html]) => html)"""
"""Targets under 24 pixels, except links within a sentence (WCAG 2.2, 2.5.8)."""


def test_arrows_move_between_free_days_and_to_the_months_beside_them(
    salon: Salon, booking_url: str, open_url: Opened
) -> None:
    for resource in salon.resources:
        salon.set_hours(salon.api, resource, FRIDAYS)
    with open_url(f"{booking_url}/{salon.service}?staff=any") as page:
        days = page.locator("td a")
        days.last.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".turn [rel~=next]")).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**month=**")
        days.first.focus()
        page.keyboard.press("ArrowRight")
        expect(days.nth(1)).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(days.first).to_be_focused()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".turn [rel~=prev]")).to_be_focused()


def test_screen_readers_hear_the_number_of_times(booking_url: str, open_url: Opened) -> None:
    with open_url(booking_url) as page:
        choose_a_time(page)
        page.go_back()
        count = page.get_by_role("status")
        expect(count).to_have_text(f"{page.locator('.times li').count()} free times")


def test_targets_are_large_enough_for_a_finger(booking_url: str, open_url: Opened) -> None:
    with open_url(booking_url, **SCREENS["phone"]) as page:
        found: dict[str, Any] = {"services": elements(page, SMALL)}
        choose_a_time(page, lambda step: found.update({step: elements(page, SMALL)}))
        send(page, name="Ada", phone="+7 916 123-45-67")
        expect(page.locator("#link")).to_be_visible()
        found["done"] = elements(page, SMALL)
        page.goto(page.locator("#link").input_value())
        found["manage"] = elements(page, SMALL)
        assert {step: small for step, small in found.items() if small} == {}
