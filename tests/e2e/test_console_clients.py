"""Clients of the console in a browser, with and without script."""

import pytest

from tests.conftest import call_console
from tests.e2e.conftest import SCREENS, OpenConsole, elements, save_screenshot
from tests.e2e.test_console import OVERFLOW, UNCUT
from tests.factories.console import Place

LONG = {
    "ltr": "Иван" + "Донаудампфшиффартсгезельшафт" * 6,
    "rtl": "מאפייה " + "משפחתית" * 26,
}


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
