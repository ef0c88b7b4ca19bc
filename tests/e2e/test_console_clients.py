"""Clients of the console in a browser, with and without script."""

import pytest
from playwright.sync_api import expect

from chalicelib.domains.clients.store.clients import CLIENTS
from tests.conftest import call_console
from tests.e2e.conftest import SCREENS, OpenConsole, elements, findings, save_screenshot
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place

LONG = {
    "ltr": "Иван" + "Донаудампфшиффартсгезельшафт" * 6,
    "rtl": "מאפייה " + "משפחתית" * 26,
}


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("screen", SCREENS)
def test_a_client_is_found_changed_and_erased(
    screen: str, script: bool, workspace: Place, open_console: OpenConsole
) -> None:
    with open_console(**SCREENS["desktop"] | {"viewport": SCREENS[screen]["viewport"]}
                      | {"java_script_enabled": script}) as tab:  # fmt: skip
        page = tab.page
        tab.start_session()
        page.get_by_role("link", name="Clients", exact=True).click()
        page.locator(f'a.row[href$="{workspace.client}"]').click()
        page.get_by_label("Name", exact=True).fill("Ivan")
        page.get_by_label("Notes").fill("Likes rye")
        call_console(
            workspace.workspace_id, "update_client", id=workspace.client, name="Theirs", tags=[]
        )
        page.get_by_role("button", name="Save client").click()
        expect(page.get_by_text("Someone changed this")).to_be_visible()
        assert all("409" in error for error in tab.errors)
        tab.errors.clear()
        expect(page.get_by_text("Now: Theirs")).to_be_visible()
        expect(page.get_by_label("Name", exact=True)).to_have_value("Ivan")
        if script:
            assert findings(page) == []
        save_screenshot(page, f"console-client-conflict-{screen}-light")
        page.get_by_role("button", name="Save client").dblclick()
        expect(page.get_by_role("status")).to_have_text("Client saved.")
        page.get_by_role("link", name="Erase data").click()
        expect(page.get_by_role("heading", name="Erase the data of Ivan?")).to_be_visible()
        page.get_by_role("button", name="Erase the data of Ivan").dblclick()
        expect(page.get_by_role("heading", name="Data erased")).to_be_visible()
        if script:
            assert findings(page) == []
        save_screenshot(page, f"console-client-erased-{screen}-light")
    row = CLIENTS.find(workspace.workspace_id, record_id=workspace.client)
    assert row is not None
    assert row.is_nobody


@pytest.mark.parametrize("direction", LONG)
@pytest.mark.parametrize("screen", SCREENS)
def test_a_long_name_stays_within_the_screen(
    screen: str, direction: str, workspace: Place, open_console: OpenConsole
) -> None:
    name = LONG[direction][:200]
    call_console(
        workspace.workspace_id,
        "update_client",
        id=workspace.client,
        name=name,
        email=f"{'x' * 60}@{'y' * 60}.example.com",
        tags=[f"{name[:45]}{number}" for number in range(4)],
        notes=name * 2,
    )
    call_console(workspace.workspace_id, "update_agent", id=workspace.bot, name=name[:100])
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        for path in (
            "/clients",
            f"/clients/{workspace.client}",
            f"/clients/{workspace.client}/erase",
            "/audit",
            "/balance",
        ):
            tab.open(workspace.path + path)
            assert elements(tab.page, OVERFLOW) == [], path
            assert elements(tab.page, UNCUT) == [], path
            page_name = path.replace(workspace.client, "client").strip("/").replace("/", "-")
            save_screenshot(tab.page, f"console-{direction}-{page_name}-{screen}")
