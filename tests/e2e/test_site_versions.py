"""Versions of a page in the console, in a browser: seen as a page, and undone with one press."""

import pytest
from playwright.sync_api import expect

from tests.conftest import Api, call_operator
from tests.e2e.conftest import (
    SCREENS,
    OpenConsole,
    elements,
    findings,
    markup_errors,
    save_screenshot,
)
from tests.e2e.test_console import OVERFLOW
from tests.factories.console import Place
from tests.factories.pages import create, new_site, save

RED = "<style>h1 { color: rgb(255, 0, 0) }</style><h1 style='margin: 7px'>Menu</h1>"
VIDEO = '<h1>Oops</h1><iframe src="https://video.example/x"></iframe>'


@pytest.mark.parametrize("screen", SCREENS)
def test_a_change_is_undone_and_a_version_looks_as_its_page(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    token = call_operator(
        "create_key", workspaceId=workspace.workspace_id, name="Pages", scopes=["*:read", "*:write"]
    )["token"]
    api = Api(token)
    site = new_site(api)
    page = create(api, site, "Menu")
    for html in (RED, VIDEO):
        save(api, page, html)
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        path = f"{workspace.path}/sites/{site}/pages/{page['id']}"

        def check(name: str) -> None:
            assert findings(tab.page) == []
            assert elements(tab.page, OVERFLOW) == []
            assert markup_errors(tab.page) == []
            save_screenshot(tab.page, f"site-{screen}-{name}")

        tab.open(f"{path}/html?done=page_saved")
        check("saved")
        tab.open(f"{path}/sections?done=page_saved")
        check("sections")
        tab.open(path)
        check("versions")
        tab.page.locator("ul.rows a").first.click()
        heading = tab.page.frame_locator("iframe").locator("h1")
        expect(heading).to_have_css("color", "rgb(255, 0, 0)")
        expect(heading).to_have_css("margin-left", "7px")
        check("version")
        tab.page.go_back()
        tab.page.locator("form[action$='/undo'] button").click()
        expect(tab.page.get_by_role("status")).to_be_visible()
        check("undone")
        assert api.get(f"/api/pages/{page['id']}")["page"]["html"] == RED
