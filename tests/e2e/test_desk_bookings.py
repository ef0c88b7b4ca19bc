"""A receptionist's day in a browser, on a phone and on a desktop, with and without script."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chalicelib.domains.identity.store import accounts
from tests.conftest import Owner, Time, call_console
from tests.e2e.conftest import (
    SCREENS,
    ConsoleTab,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import MOST_BYTES, OVERFLOW, UNCUT
from tests.e2e.test_console_jobs import Walk
from tests.factories.salon import CREATE, Salon

DAY = "2027-01-18"
MORNING = datetime(2027, 1, 18, 2, tzinfo=UTC)
"""Noon in Vladivostok."""
RTL = "שָׁלוֹם " * 20
WAYS = {
    "phone": {**SCREENS["phone"], "java_script_enabled": False},
    "desktop": {**SCREENS["desktop"], "timezone_id": "Europe/Moscow"},
}
TEXTS = {
    "phone": {
        "list": "Список",
        "search": "Имя, телефон или почта",
        "show": "Показать",
        "new": "Новая запись",
        "name": "Имя",
        "book": "Записать",
        "move": "Перенести",
        "do_move": "Перенести запись",
        "moved": "Запись перенесена.",
        "no_show": "Отметить неявку",
        "no_show_done": "Неявка отмечена.",
        "cancel": "Отменить…",
        "do_cancel": "Отменить запись",
        "reason": "Причина",
        "cancelled": "Запись отменена.",
        "made": "Запись создана.",
    },
    "desktop": {
        "list": "List",
        "search": "Name, phone or e-mail",
        "show": "Show",
        "new": "New booking",
        "name": "Name",
        "book": "Book",
        "move": "Move",
        "do_move": "Move booking",
        "moved": "Booking moved.",
        "no_show": "Mark as a no-show",
        "no_show_done": "Marked as a no-show.",
        "cancel": "Cancel…",
        "do_cancel": "Cancel booking",
        "reason": "Reason",
        "cancelled": "Booking cancelled.",
        "made": "Booking made.",
    },
}


@dataclass(frozen=True)
class Desk:
    """A salon in Vladivostok in the middle of its day."""

    owner: Owner
    salon: Salon

    @property
    def path(self) -> str:
        return f"/console/w/{self.owner.workspace.slug}/bookings"

    @property
    def email(self) -> str:
        return accounts.get(self.owner.workspace.owner_id).email

    def book(self, hour: int, name: str, staff: int = 0, **fields: Any) -> str:
        """Book by phone, and return the booking."""
        body = self.salon.order(f"{DAY}T{hour:02}:00", resourceId=self.salon.resources[staff])
        client = {"name": name, "phone": f"8 914 700-12-{hour}"}
        body |= {"client": client, "ignoreSchedule": True, **fields}
        booking: str = self.salon.api.post(CREATE, body)["booking"]["id"]
        return booking

    def statuses(self) -> dict[str, str]:
        bookings = call_console(self.owner.workspace.id, "list_bookings", size=100)["bookings"]
        return {booking["client"]["name"]: booking["status"] for booking in bookings}


@pytest.fixture
def desk(service: str, new_owner: Callable[..., Owner], time: Time) -> Desk:
    time.now = MORNING
    owner = new_owner(timezone="Asia/Vladivostok", name="Salon")
    return Desk(owner, Salon.opened(owner.api(), [{"name": "Anna"}, {"name": "Olga"}]))


def check(tab: ConsoleTab, name: str, screen: str) -> None:
    """Check the open page, and save a picture."""
    assert findings(tab.page) == []
    assert markup_errors(tab.page) == []
    assert elements(tab.page, OVERFLOW) == []
    save_screenshot(tab.page, f"desk-{name}-{screen}")


@pytest.mark.parametrize("screen", WAYS)
def test_a_receptionist_works_through_the_day(  # noqa: PLR0915  the steps of a day
    screen: str, desk: Desk, open_console: OpenConsole
) -> None:
    say = TEXTS[screen]
    desk.book(11, "Ada")
    desk.book(14, "Bob", notes="No sugar")
    desk.book(16, "Eve", 1)
    has_script = WAYS[screen].get("java_script_enabled", True)
    with open_console(**WAYS[screen]) as tab:
        page = tab.page

        def check_part(name: str) -> None:
            if has_script:
                check(tab, name, screen)
            else:
                save_screenshot(page, f"desk-{name}-{screen}")

        tab.start_session(desk.email)
        tab.open(desk.path)
        expect(page.get_by_role("link", name=re.compile("Ada"))).to_be_visible()
        expect(page.get_by_role("link", name=re.compile("Bob"))).to_contain_text("14:00–15:00")
        expect(page.locator("main")).to_contain_text("Asia/Vladivostok")
        if has_script:
            expect(page.locator("[data-zone]")).to_contain_text("Europe/Moscow")
        check_part("day")

        page.get_by_role("link", name=say["list"], exact=True).click()
        page.get_by_label(say["search"]).fill("700-12-14")
        page.get_by_role("button", name=say["show"]).click()
        expect(page.locator(".rows a.row")).to_have_count(1)
        check_part("found")
        page.get_by_role("link", name=re.compile("Bob")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Bob")
        expect(page.locator("main")).to_contain_text("No sugar")
        check_part("booking")
        page.get_by_role("link", name=say["move"], exact=True).click()
        check_part("move")
        page.get_by_text("15:00", exact=True).click()
        page.get_by_role("button", name=say["do_move"]).click()
        expect(page.get_by_role("status")).to_have_text(say["moved"])

        tab.open(desk.path)
        page.get_by_role("link", name=re.compile("12:00–13:00")).first.click()
        check_part("new")
        page.get_by_label(say["name"], exact=True).fill("Walk-in")
        book = page.get_by_role("button", name=say["book"], exact=True)
        book.dblclick() if has_script else book.click()
        expect(page.get_by_role("status")).to_have_text(say["made"])

        tab.open(desk.path)
        page.get_by_role("link", name=re.compile("Ada")).click()
        page.get_by_role("button", name=say["no_show"]).click()
        expect(page.get_by_role("status")).to_have_text(say["no_show_done"])

        tab.open(desk.path)
        page.get_by_role("link", name=re.compile("Eve")).click()
        page.get_by_role("link", name=say["cancel"]).click()
        page.get_by_label(say["reason"]).fill("Fell ill")
        check_part("cancel")
        page.get_by_role("button", name=say["do_cancel"]).click()
        expect(page.get_by_role("status")).to_have_text(say["cancelled"])
        expect(page.locator("main")).to_contain_text("Fell ill")

        tab.open(desk.path)
        page.emulate_media(media="print")
        expect(page.get_by_role("link", name=re.compile("Bob"))).to_contain_text("No sugar")
        expect(page.get_by_role("link", name=re.compile("Bob"))).to_contain_text("+7 914 700-12-14")
        for hidden in (page.locator("nav"), page.locator(".button"), page.locator(".free")):
            assert not any(element.is_visible() for element in hidden.all())
        save_screenshot(page, f"desk-print-{screen}")
    assert desk.statuses() == {
        "Ada": "no_show",
        "Bob": "confirmed",
        "Eve": "cancelled",
        "Walk-in": "confirmed",
    }


def test_the_keyboard_passes_the_free_times_of_a_day_by_one_stop(
    desk: Desk, open_console: OpenConsole
) -> None:
    desk.book(11, "Ada")
    with open_console(**WAYS["desktop"]) as tab:
        tab.start_session(desk.email)
        tab.open(desk.path)
        gaps = tab.page.locator(".col").first.locator(".free a")
        assert gaps.count() > 3
        assert [gap.get_attribute("tabindex") for gap in gaps.all()].count("0") == 1
        gaps.first.focus()
        tab.page.keyboard.press("ArrowDown")
        expect(gaps.nth(1)).to_be_focused()
        tab.page.keyboard.press("Shift+Tab")
        assert not tab.page.locator(".free a:focus").count(), "they are one stop"


@pytest.mark.parametrize("screen", SCREENS)
def test_a_busy_week_with_long_names_fits_the_page(
    screen: str, desk: Desk, open_console: OpenConsole
) -> None:
    names = ["Щ" * 200, RTL[:200], "W" * 200]
    long = desk.salon.api.post("/api/resources/create", {"name": "Щ" * 150})["resource"]["id"]
    desk.salon.api.post(
        "/api/services/update",
        {"id": desk.salon.service, "name": "W" * 150, "resourceIds": [*desk.salon.resources, long]},
    )
    start, booking = datetime.fromisoformat(f"{DAY}T08:00"), ""
    for number in range(36):
        at = start + timedelta(days=number % 3, hours=number // 3)
        booking = desk.book(10, names[number % 3], startAt=at.isoformat(), notes="Ж" * 2000)
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session(desk.email)
        for query in ("", "?view=week", "?view=list", f"/{booking}", f"/{booking}?do=move", "/new"):
            tab.open(desk.path + query)
            check(tab, f"long{re.sub(r'[^a-z]+', '-', query.replace(booking, 'one'))}", screen)
            assert elements(tab.page, UNCUT) == [], query
            assert sum(len(response.body()) for response in tab.responses) <= MOST_BYTES, query


def test_slot_taken_by_another_client_keeps_the_form(desk: Desk, open_console: OpenConsole) -> None:
    with open_console() as tab:
        page: Page = tab.page
        tab.start_session(desk.email)
        tab.open(f"{desk.path}/new?date={DAY}&time=15:00&staff={desk.salon.resource}")
        page.get_by_label("Name", exact=True).fill("Walk-in")
        page.get_by_label("Notes").fill("Tea, please")
        desk.book(15, "Faster")
        page.get_by_role("button", name="Book", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("is already taken")
        expect(page.get_by_label("Name", exact=True)).to_have_value("Walk-in")
        expect(page.get_by_label("Notes")).to_have_value("Tea, please")
        check(tab, "taken", "desktop")
        page.get_by_text("Mon 18 Jan, 16:00").click()
        page.get_by_role("button", name="Book", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("Booking made.")
        tab.errors = [error for error in tab.errors if "409" not in error]
    assert desk.statuses() == {"Faster": "confirmed", "Walk-in": "confirmed"}


ILL = {
    "en": {"away": "Anna: not at work", "carry_out": "Carry out", "done": "Done as chosen."},
    "ru": {
        "away": "Anna: не выйдет на работу",
        "carry_out": "Выполнить",
        "done": "Сделано, как выбрано.",
    },
}
LOOKS = [
    (language, width, scheme)
    for language in ILL
    for width in (320, 390, 1280)
    for scheme in ("light", "dark")
]


@pytest.mark.parametrize(("language", "width", "scheme"), LOOKS)
def test_an_ill_member_of_the_staff_is_covered_in_two_taps(
    language: str, width: int, scheme: str, desk: Desk, open_console: OpenConsole
) -> None:
    say = ILL[language]
    desk.salon.api.post("/api/resources/update", {"id": desk.salon.resource, "name": "Anna"})
    for hour in (14, 15, 16):
        desk.book(hour, f"Client {hour} {'W' * 40 if hour == 15 else ''}")
    desk.book(16, "Eve", 1)
    screen = {"viewport": {"width": width, "height": 800}, "locale": language}
    with open_console(**screen, color_scheme=scheme) as tab:
        page = tab.page
        tab.start_session(desk.email)
        tab.open(desk.path)
        page.get_by_role("link", name=say["away"]).click()
        check(tab, f"absence-{language}-{scheme}", str(width))
        assert len(page.content().encode()) <= MOST_BYTES
        page.get_by_role("button", name=say["carry_out"]).click()
        expect(page.get_by_role("status")).to_contain_text(say["done"])
        check(tab, f"absence-done-{language}-{scheme}", str(width))
        tab.open(f"{desk.path}/new")
        page.get_by_role("searchbox").first.fill("Client")
        page.locator('button[value="find"]').click()
        check(tab, f"new-found-{language}-{scheme}", str(width))


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no-script"])
def test_a_known_client_is_booked_in_six_taps_and_a_walk_in_of_the_calendar_in_three(
    scripts: bool, desk: Desk, open_console: OpenConsole
) -> None:
    desk.book(11, "Ada")
    body = {"name": "Beard", "durationMin": 30, "resourceIds": desk.salon.resources}
    desk.salon.api.post("/api/services/create", body)
    phone = {"viewport": SCREENS["phone"]["viewport"], "locale": "en-US"}
    with open_console(**phone, java_script_enabled=scripts) as tab:
        page = tab.page
        tab.start_session(desk.email)
        tab.open(desk.path)
        known = Walk(page)
        known.tap(page.get_by_role("link", name="New booking").first)
        known.fill(page.get_by_role("searchbox").first, "700-12-11")
        known.tap(page.locator('button[value="find"]'))
        known.tap(page.get_by_role("button", name=re.compile("had before")))
        known.tap(page.locator("#start label").first)
        known.tap(page.get_by_role("button", name="Book", exact=True))
        expect(page.get_by_role("status")).to_have_text("Booking made.")
        assert known.taps == 6
        tab.open(desk.path)
        walk_in = Walk(page)
        walk_in.tap(page.get_by_role("link", name=re.compile("17:00–18:00")).first)
        walk_in.tap(page.locator("button.chip", has_text="Haircut"))
        walk_in.fill(page.get_by_label("Name", exact=True), "Walk-in")
        walk_in.tap(page.get_by_role("button", name="Book", exact=True))
        expect(page.get_by_role("status")).to_have_text("Booking made.")
        assert walk_in.taps == 4, "three, and one for one of two services"
    assert desk.statuses()["Walk-in"] == "confirmed"
