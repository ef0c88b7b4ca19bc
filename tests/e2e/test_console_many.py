"""Many products are changed in a table in a browser, with and without script."""

import pytest
from playwright.sync_api import expect

from tests.conftest import call_console
from tests.e2e.conftest import OpenConsole, elements, findings, save_screenshot
from tests.e2e.test_console import OVERFLOW
from tests.factories.console import Place

WIDTHS = {"phone": 390, "narrow": 320, "desktop": 1440}
MAX_BYTES = 60_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", WIDTHS)
def test_prices_are_typed_saved_and_raised_by_a_rule_once(
    screen: str, scheme: str, workspace: Place, open_console: OpenConsole
) -> None:
    home = workspace.workspace_id
    ids = [
        call_console(home, "create_product", name=f"Rye bread {n:02}", price=n * 10_000)["product"][
            "id"
        ]
        for n in range(1, 26)
    ]
    viewport = {"width": WIDTHS[screen], "height": 844}
    script = scheme == "light"  # the other half of the runs has none
    with open_console(viewport=viewport, java_script_enabled=script, color_scheme=scheme) as tab:
        page = tab.page
        tab.start_session()

        def check(name: str) -> None:
            assert elements(page, OVERFLOW) == [] if script else True
            assert findings(page) == [] if script else True
            assert len(page.content().encode()) <= MAX_BYTES
            save_screenshot(page, f"console-many-{name}-{screen}-{scheme}")

        tab.open(f"{workspace.path}/products/many?q=Rye+bread")
        check("table")
        page.locator(f"#price-{ids[0]}").fill("150")
        page.locator(f"#stock-{ids[1]}").fill("7")
        page.get_by_role("button", name="Save all").first.dblclick()
        expect(page.get_by_text("All changes are saved.")).to_be_visible()
        page.get_by_role("button", name="Tick all rows").click()
        page.get_by_label("By", exact=True).fill("5")
        page.get_by_label("Round to").fill("10")
        page.get_by_role("button", name="Show what would change").click()
        expect(page.get_by_role("heading", name="What would change")).to_be_visible()
        check("preview")
        page.get_by_role("button", name="Change 25 prices").dblclick()
        expect(page.get_by_text("The prices are changed.")).to_be_visible()
    shown = [call_console(home, "get_product", id=i)["product"]["price"] for i in ids[:3]]
    assert shown == [16_000, 21_000, 32_000]
