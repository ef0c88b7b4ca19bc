"""Services, staff and hours of the console in a browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import call_console
from tests.e2e.conftest import (
    SCREENS,
    ConsoleTab,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place

LONG = "Парикмахерская" + "Донаудампфшиффартсгезельшафт" * 10
RTL = "مقص الشعر " * 15 + "للأطفال"


def check(tab: ConsoleTab, name: str) -> None:
    """Check the open page as it is: its accessibility, its width and its markup."""
    save_screenshot(tab.page, f"console-{name}")
    assert elements(tab.page, OVERFLOW) == []
    assert elements(tab.page, UNCUT) == []
    assert findings(tab.page) == []


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_hours_are_edited_by_buttons_and_wrong_ones_are_kept(
    screen: str, script: bool, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS[screen], java_script_enabled=script) as tab:
        page = tab.page
        tab.start_session()
        tab.open(f"{workspace.path}/staff/{workspace.staff}/hours")
        page.locator('[value="add:mon"]').click()
        fill(page, "mon", 0, "09:00", "13:00")
        fill(page, "mon", 1, "12:00", "18:00")
        page.locator("form.week .actions .button").first.click()
        expect(page.locator("#mon-1-error")).to_be_visible()
        expect(page.locator("#mon-1")).to_have_value("12:00")
        if script:
            check(tab, f"hours-error-{screen}-light")
        fill(page, "mon", 1, "14:00", "18:00")
        page.locator('[value="copy"]').click()
        expect(page.locator("#fri-1")).to_have_value("14:00")
        fill(page, "fri", 1, "22:00", "02:00")
        page.locator("form.week > .actions .button").first.click()
        page.locator('[name="next-fri"]').check()
        page.locator('[name="open"][value="wed"]').uncheck()
        expect(page.locator("#wed-0")).to_be_hidden()
        page.locator("form.week > .actions .button").first.click()
        expect(page.get_by_role("status").first).to_be_visible()
        tab.errors = [error for error in tab.errors if "400" not in error]
    rules = call_console(workspace.workspace_id, "list_availability", resourceId=workspace.staff)[
        "rules"
    ]
    by_day = {hours["weekday"] or hours["date"]: hours["intervals"] for hours in rules}
    assert by_day["thu"] == [
        {"start": "09:00", "end": "13:00"},
        {"start": "14:00", "end": "18:00"},
    ]
    assert by_day["fri"][1] == {"start": "22:00", "end": "02:00"}
    assert "wed" not in by_day
    assert by_day["2036-01-01"] == []


def fill(page: Page, day: str, line: int, start: str, end: str) -> None:
    """Fill in a line of a day's hours."""
    page.locator(f'[name="start-{day}"]').nth(line).fill(start)
    page.locator(f'[name="end-{day}"]').nth(line).fill(end)


@pytest.mark.parametrize("name", [LONG, RTL], ids=["long", "right-to-left"])
@pytest.mark.parametrize("screen", SCREENS)
def test_pages_stay_readable_with_long_names(
    screen: str, name: str, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        for operation, record in (
            ("update_service", workspace.service),
            ("update_resource", workspace.staff),
        ):
            call_console(workspace.workspace_id, operation, id=record, name=name[:200])
        service, staff = f"/services/{workspace.service}", f"/staff/{workspace.staff}"
        paths = ["/services", service, f"{service}/delete", "/staff", staff, f"{staff}/delete"]
        for number, path in enumerate([*paths, f"{staff}/hours", f"{staff}/time-off"]):
            tab.open(workspace.path + path)
            check(tab, f"names-{number}-{screen}")
            assert markup_errors(tab.page) == []
