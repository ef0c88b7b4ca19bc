"""A second factor in a browser: switched on, asked for at sign-in, and for a new key."""

import re

import pytest
from playwright.sync_api import expect

from tests.conftest import PASSWORD
from tests.domains.identity.test_second_factor import code
from tests.e2e.conftest import EMAIL, SCREENS, OpenConsole, save_screenshot
from tests.e2e.test_team import check
from tests.factories.console import Place


@pytest.mark.parametrize("screen", SCREENS)
def test_a_second_factor_is_asked_for_at_sign_in_and_for_a_key(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS[screen]) as tab:
        page = tab.page
        tab.start_session()
        tab.open("/console/account?do=second-factor")
        expect(page.get_by_role("img", name=re.compile("QR"))).to_be_visible()
        check(page)
        save_screenshot(page, f"{screen}-second-factor")
        secret = page.locator("#secret").inner_text().strip()
        page.locator("#secondFactor").fill(code(secret))
        page.locator("#currentPassword").fill(PASSWORD)
        page.locator("form.stack button.button").last.click()
        expect(page.locator("#codes")).to_be_visible()
        recovery_codes = page.locator("#codes").inner_text().split()
        tab.open("/console/account?do=second-factor")
        check(page)
        save_screenshot(page, f"{screen}-second-factor-on")
        tab.open(f"{workspace.path}/keys/new")
        expect(page.locator("#secondFactor")).to_be_visible()
        check(page)
        save_screenshot(page, f"{screen}-key-with-code")
        page.context.clear_cookies()
        tab.open("/console/sign-in")
        page.locator("#email").fill(EMAIL)
        page.locator("#password").fill(PASSWORD)
        page.locator("form.card button.button").click()
        expect(page.locator("#secondFactor")).to_be_focused()
        check(page)
        save_screenshot(page, f"{screen}-sign-in-code")
        page.locator("#secondFactor").fill("000000")
        page.locator("form.card button.button").click()
        expect(page.locator(".field.wrong")).to_be_visible()
        tab.errors.clear()  # The browser reports the status 400.
        page.locator("#secondFactor").fill(recovery_codes[0])
        page.get_by_role("checkbox").check()
        page.locator("form.card button.button").click()
        expect(page).to_have_url(re.compile("/console/w/"))
        tab.open(f"{workspace.path}/keys/new")
        save_screenshot(page, f"{screen}-key-confirmed")
