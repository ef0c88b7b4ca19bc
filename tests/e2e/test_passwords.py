"""A forgotten password in a browser, on a phone and a desktop, with and without script."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Request, expect

from tests.domains.notifications.inbox import Inbox, text_of
from tests.e2e.conftest import EMAIL, SCREENS, OpenConsole, save_screenshot
from tests.e2e.test_team import check
from tests.factories.console import Place
from tests.factories.event_runs import run_until_idle

NEW_PASSWORD = "battery staple"


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_new_password_is_set_by_the_link_in_an_e_mail(
    screen: str,
    has_script: bool,
    workspace: Place,
    open_console: OpenConsole,
    tmp_path: Path,
    reload_settings: Callable[[], None],
) -> None:
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path)}
    reload_settings()
    run_until_idle()
    inbox = Inbox(tmp_path)
    inbox.clear()
    options: dict[str, Any] = {**SCREENS[screen], "java_script_enabled": has_script}
    with open_console(**options) as tab:
        page = tab.page
        requests: list[Request] = []
        page.on("request", lambda request: requests.append(request))  # noqa: PLW0108  Playwright requires a function
        tab.open("/console/sign-in")
        page.get_by_role("link", name=re.compile("Forgot|Забыли")).click()
        if has_script:
            check(page)
            save_screenshot(page, f"{screen}-forgot-password")
        page.locator("#email").fill(EMAIL)
        page.locator("form.stack button").click()
        expect(page.get_by_role("status")).to_be_visible()
        run_until_idle()
        (link,) = re.findall(r"http://\S+/reset-password/\S+", text_of(inbox.only()))
        page.goto(link)
        if has_script:
            check(page)
            save_screenshot(page, f"{screen}-reset-password")
        page.locator("#password").fill("short")
        page.locator("#password").evaluate("e => e.form.noValidate = true")
        page.locator("form.stack button").click()
        expect(page.locator(".field.wrong")).to_be_visible()
        page.locator("#password").fill(NEW_PASSWORD)
        page.locator("form.stack button").click()
        expect(page.get_by_role("status")).to_be_visible()
        assert tab.path == "/console/sign-in"
        page.locator("#email").fill(EMAIL)
        page.locator("#password").fill(NEW_PASSWORD)
        page.locator("form.card button").click()
        expect(page.locator("header nav a, .rows, h1").first).to_be_visible()
        assert "/sign-in" not in page.url
        names = {cookie["name"] for cookie in page.context.cookies()}
        assert names == {"__Host-session", "__Host-device"}
        token = link.rpartition("/")[2]
        hosts = {urlsplit(request.url).netloc for request in requests}
        assert hosts == {urlsplit(link).netloc}
        assert not any(token in request.all_headers().get("referer", "") for request in requests)
        page.goto(link)
        expect(page.locator(".notice h1")).to_be_visible()
        tab.errors.clear()  # the browser reports the 400 and the 404
