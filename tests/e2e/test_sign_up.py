"""From a mail address to the first booking of a visitor, in a browser on a phone."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from chalicelib.domains.identity.store import accounts, workspaces
from tests.domains.notifications.inbox import Inbox, text_of
from tests.e2e.conftest import OpenConsole
from tests.e2e.test_console_services import check
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import bookings_of

MAX_TAPS = 25
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
NEW = "grace@example.com"
# The country that the browser names, and what its list offers.
LOCALES = {"ru": ("ru-RU", "RU", "Europe/Moscow"), "en": ("en-GB", "GB", "Europe/London")}
WORDS = {
    "ru": ("Добавьте услугу", "Создать услугу", "Добавить сотрудников", "Сохранить и задать часы"),
    "en": ("Add a service", "Create service", "Add staff", "Save and set hours"),
}
SAVE = {"ru": "Сохранить часы", "en": "Save hours"}


@pytest.fixture
def inbox(service: str, tmp_path: Path, reload_settings: Callable[[], None]) -> Inbox:
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path), "SIGN_UP": "open"}
    os.environ["SUPPORT_URL"] = "mailto:help@example.com"
    reload_settings()
    return Inbox(tmp_path)


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LOCALES)
def test_an_owner_with_a_mail_address_gets_a_first_booking_in_few_taps(  # noqa: PLR0915  each tap
    language: str, scheme: str, has_script: bool, inbox: Inbox, open_console: OpenConsole
) -> None:
    taps = 0

    def tap(target: Locator, text: str = "") -> None:
        nonlocal taps
        taps += 1
        target.click()
        if text:
            target.fill(text)

    locale, country, zone = LOCALES[language]
    add, create, who, hours = WORDS[language]
    options = {"locale": locale, "timezone_id": zone, "java_script_enabled": has_script}
    with open_console(**PHONE, **options, color_scheme=scheme) as tab:
        page = tab.page
        name = f"{language}-{scheme}"

        def look(step: str) -> None:
            if has_script:
                check(tab, f"sign-up-{step}-{name}")

        tab.open("/console/sign-in")
        tap(page.locator('a[href*="/console/sign-up"]'))
        look("1-address")
        tap(page.locator("#email"), NEW)
        tap(page.locator("form.stack button"))
        expect(page.get_by_role("status")).to_be_visible()
        look("2-sent")
        run_until_idle()
        (link,) = re.findall(r"http://\S+/sign-up/\S+", text_of(inbox.only()))
        page.goto(link)
        taps += 1
        look("3-details")
        tap(page.locator("#name"), "Грейс" if language == "ru" else "Grace")
        tap(page.locator("#password"), "battery staple")
        tap(page.locator("#workspace"), "Салон Грейс" if language == "ru" else "Grace's salon")
        expect(page.locator("#country")).to_have_value(re.compile(f"^{country}"))
        tap(page.locator("#terms"))
        tap(page.locator("#personalData"))
        tap(page.locator("form.stack button"))
        expect(page.locator("ol.rows li")).to_have_count(6)
        look("4-first-steps")
        account = accounts.require_by_email(NEW)
        (home,) = [row for row, _ in workspaces.read_by_account(account.id)]
        assert (home.country, home.timezone, home.awaits_review) == (country, zone, True)
        tap(page.get_by_role("link", name=add))
        tap(page.locator("#name"), "Стрижка" if language == "ru" else "Haircut")
        tap(page.locator("#durationMin"), "60")
        tap(page.locator("#price"), "1500")
        tap(page.get_by_role("button", name=create))
        tap(page.get_by_role("link", name=who))
        tap(page.locator("#name"), "Грейс" if language == "ru" else "Grace")
        tap(page.get_by_role("button", name=hours))
        tap(page.get_by_role("button", name=SAVE[language]))
        tab.open(f"/console/w/{home.slug}/booking-page")
        taps += 1
        tap(page.locator('input[name="isOn"]'))
        tap(page.locator("form.stack button.button").first)
        expect(page.locator(f'a[href="/book/{home.slug}"]')).to_be_visible()
        assert taps <= MAX_TAPS, taps
        tab.open(f"/console/w/{home.slug}/plan")
        look("5-plan")
        tab.open(f"/console/w/{home.slug}/close")
        look("6-close")
        tab.open("/console/account/workspaces")
        look("7-further")
        tab.open("/console/consents/terms")
        look("8-terms")
    with open_console(**PHONE, **options) as tab:
        page = tab.page
        page.goto(f"{tab.base}/book/{home.slug}")
        expect(page.locator('a[href^="mailto:help"]')).to_be_visible()
        for _ in range(3):
            if page.locator(".times a").count():
                break
            page.locator(".cards a").first.click()
            page.wait_for_load_state()
        page.locator(".times a").first.click()
        page.locator("#name").fill("Eve")
        page.locator("#email").fill("eve@example.com")
        page.locator("button.button").click()
        expect(page.locator("h1")).to_have_text(re.compile("You are booked|Вы записаны"))
    assert [row.status for row in bookings_of(home.id)] == ["confirmed"]
