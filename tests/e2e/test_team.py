"""Members, invitations, settings and languages in a browser, on a phone and a desktop."""

import pytest
from playwright.sync_api import Page, expect

from chalicelib.domains.identity.store import workspaces
from tests.e2e.conftest import (
    SCREENS,
    OpenConsole,
    elements,
    findings,
    markup_errors,
)
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place

LONG_RTL = "مخبز " + "الخبزالطازجكليومفيالصباح" * 12


def check(page: Page) -> None:
    """Check the width, the headings and the accessibility of the open page."""
    assert elements(page, OVERFLOW) == []
    assert elements(page, UNCUT) == []
    assert page.locator("h1").count() == 1
    assert markup_errors(page) == []
    assert findings(page) == []


@pytest.mark.parametrize("screen", SCREENS)
def test_settings_and_the_language_are_changed(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    settings = f"{workspace.path}/settings"
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        tab.open(settings)
        page = tab.page
        page.locator("#name").fill(LONG_RTL[:200])
        page.locator("#timezone").fill("Mars/Base")
        page.locator("form.stack button.button:not([type])").click()
        expect(page.locator("#timezone-error")).to_be_visible()
        expect(page.locator("#name")).to_have_value(LONG_RTL[:200].strip())
        check(page)
        tab.errors.clear()  # The browser reports the status 400.
        page.locator("#timezone").fill("Asia/Tomsk")
        page.locator("form.stack button.button:not([type])").click()
        expect(page.get_by_role("status")).to_be_visible()
        check(page)
        assert workspaces.get(workspace.workspace_id).timezone == "Asia/Tomsk"
        old_language = page.locator("html").get_attribute("lang")
        page.locator("footer button").click()
        expect(page.locator("html")).to_have_attribute(
            "lang", "en" if old_language == "ru" else "ru"
        )
        assert tab.path == settings
