"""Members, invitations, settings and languages in a browser, on a phone and a desktop."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chalicelib.domains.identity.store import accounts, workspaces
from tests.conftest import PASSWORD, call_operator
from tests.e2e.conftest import (
    SCREENS,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place

LONG_RTL = "مخبز " + "الخبزالطازجكليومفيالصباح" * 12
INVITED = "new.colleague@example.com"


def check(page: Page) -> None:
    """Check the width, the headings and the accessibility of the open page."""
    assert elements(page, OVERFLOW) == []
    assert elements(page, UNCUT) == []
    assert page.locator("h1").count() == 1
    assert markup_errors(page) == []
    assert findings(page) == []


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_a_colleague_is_invited_joins_is_promoted_and_removed(
    screen: str, has_script: bool, workspace: Place, open_console: OpenConsole
) -> None:
    options: dict[str, Any] = {**SCREENS[screen], "java_script_enabled": has_script}
    members = f"{workspace.path}/members"
    with open_console(**options) as boss, open_console(**options) as colleague:
        boss.start_session()
        boss.open(members)
        boss.page.locator("#email").fill(INVITED)
        boss.page.locator("form.card button").click()
        link = boss.page.locator("#link").inner_text()
        if has_script:
            check(boss.page)
        page = colleague.page
        page.goto(link)
        if has_script:
            check(page)
        page.locator("#name").fill(LONG_RTL[:200])
        page.locator("#password").fill(PASSWORD)
        page.locator("form.stack button").click()
        expect(page.get_by_role("status")).to_be_visible()
        account = accounts.require_by_email(INVITED)
        assert account.name == LONG_RTL[:200].strip()
        page.goto(link)
        expect(page.locator(".notice h1")).to_be_visible()
        colleague.errors.clear()  # The browser reports the status 404.
        boss.open(members)
        if has_script:
            check(boss.page)
        save_screenshot(boss.page, f"console-members-full-{screen}-{has_script}")
        boss.page.locator("main a.row", has_text=INVITED).click()
        if has_script:
            check(boss.page)
        boss.page.locator("#currentPassword").fill(PASSWORD)
        boss.page.locator("#role").select_option("manager")
        boss.page.locator("form:has(#role) button").click()
        expect(boss.page.get_by_role("status")).to_be_visible()
        membership = workspaces.membership(account.id, workspace_id=workspace.workspace_id)
        assert membership is not None
        assert membership.role == "manager"
        boss.page.locator("main a.row", has_text=INVITED).click()
        boss.page.locator("button.danger").click()
        expect(boss.page.get_by_role("status")).to_be_visible()
        assert workspaces.membership(account.id, workspace_id=workspace.workspace_id) is None
        assert colleague.open(workspace.path).status == 404
        colleague.errors.clear()


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


def test_invited_user_with_another_account_signs_out_and_returns(
    workspace: Place, open_console: OpenConsole
) -> None:
    call_operator("create_account", email=INVITED, password=PASSWORD)
    invitation = call_operator("invite_member", workspaceId=workspace.workspace_id, email=INVITED)
    with open_console() as tab:
        page = tab.page
        tab.start_session()
        page.goto(invitation["url"])
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("link", name="Sign in").click()
        page.locator("#email").fill(INVITED)
        page.locator("#password").fill(PASSWORD)
        page.locator("form button.button").click()
        expect(page.get_by_role("button", name="Join")).to_be_visible()
        check(page)
        page.get_by_role("button", name="Join").dblclick()
        expect(page.get_by_role("status")).to_be_visible()
        assert (
            workspaces.membership(
                accounts.require_by_email(INVITED).id, workspace_id=workspace.workspace_id
            )
            is not None
        )
