"""Versions of a page in the console, in a browser: seen as a page, and undone with one press."""

from typing import Any, NamedTuple, Self

import pytest
from playwright.sync_api import expect

from tests.conftest import Api, call_operator
from tests.e2e.conftest import (
    SCREENS,
    ConsoleTab,
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


class PageOfSite(NamedTuple):
    """A page of a new site, with the API and the path of the page in the console."""

    api: Api
    page: Any
    path: str

    @classmethod
    def saved(cls, workspace: Place, *versions: str) -> Self:
        key = call_operator(
            "create_key",
            workspaceId=workspace.workspace_id,
            name="Pages",
            scopes=["*:read", "*:write"],
        )
        api = Api(key["token"])
        site = new_site(api)
        page = create(api, site, "Menu")
        for html in versions:
            save(api, page, html)
        return cls(api, page, f"{workspace.path}/sites/{site}/pages/{page['id']}")

    @property
    def html(self) -> str:
        html: str = self.api.get(f"/api/pages/{self.page['id']}")["page"]["html"]
        return html


def check(tab: ConsoleTab, name: str) -> None:
    """Find no fault on the open page, and keep a picture of it."""
    assert findings(tab.page) == []
    assert elements(tab.page, OVERFLOW) == []
    assert markup_errors(tab.page) == []
    save_screenshot(tab.page, name)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_change_is_undone_and_a_version_looks_as_its_page(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    of_site = PageOfSite.saved(workspace, RED, VIDEO)
    path = of_site.path
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        tab.open(f"{path}/html?done=page_saved")
        check(tab, f"site-{screen}-saved")
        tab.open(f"{path}/sections?done=page_saved")
        check(tab, f"site-{screen}-sections")
        tab.open(path)
        check(tab, f"site-{screen}-versions")
        tab.page.locator("ul.rows a").first.click()
        frames = tab.page.locator("iframe")
        expect(frames).to_have_count(2)
        left, right = (frames.nth(number).bounding_box() for number in range(2))
        assert left
        assert right
        assert (left["y"] == right["y"]) is (screen == "desktop")
        heading = tab.page.frame_locator("iframe").first.locator("h1")
        expect(heading).to_have_css("color", "rgb(255, 0, 0)")
        expect(heading).to_have_css("margin-left", "7px")
        check(tab, f"site-{screen}-version")
        tab.page.go_back()
        tab.page.locator("form[action$='/undo'] button").click()
        expect(tab.page.get_by_role("status")).to_be_visible()
        check(tab, f"site-{screen}-undone")
        assert of_site.html == RED
        # A frame of the console shows no frames of others.
        tab.errors = [error for error in tab.errors if "video.example" not in error]


SCRIPT = """<h1>Soon</h1><script>
document.querySelector("h1").dataset.origin = self.origin;
try { document.cookie } catch (error) { document.querySelector("h1").dataset.cookies = error.name }
fetch("/console", { credentials: "include" })
  .catch((error) => { document.querySelector("h1").dataset.console = error.name });
</script>"""


@pytest.mark.parametrize("screen", SCREENS)
def test_a_draft_is_looked_at_and_published_and_its_script_reaches_nothing(
    screen: str, workspace: Place, open_console: OpenConsole
) -> None:
    of_site = PageOfSite.saved(workspace, RED)
    path = of_site.path
    with open_console(**SCREENS[screen]) as tab:
        tab.start_session()
        tab.open(f"{path}/html")
        tab.page.locator("#html").fill(SCRIPT)
        tab.page.locator("button[value=draft]").click()
        expect(tab.page.get_by_role("status")).to_be_visible()
        check(tab, f"draft-{screen}-saved")
        with tab.page.context.expect_page() as opened:
            tab.page.locator("a[href*='?_draft=']").click()
        heading = opened.value.locator("h1")
        expect(heading).to_have_attribute("data-origin", "null")
        expect(heading).to_have_attribute("data-cookies", "SecurityError")
        expect(heading).to_have_attribute("data-console", "TypeError")
        opened.value.close()
        for name, where in (("site", path.partition("/pages")[0]), ("page", path)):
            tab.open(where)
            check(tab, f"draft-{screen}-{name}")
        tab.open(f"{path}/sections")
        check(tab, f"draft-{screen}-sections")
        save(of_site.api, of_site.page, VIDEO)
        tab.open(f"{path}/draft")
        draft = tab.page.frame_locator("iframe").nth(1).locator("h1")
        expect(draft).to_have_text("Soon")
        assert draft.get_attribute("data-origin") is None, "the frame runs no script"
        check(tab, f"draft-{screen}-outdated")
        tab.page.locator(f"form[action='{path}/draft'] button").click()
        expect(tab.page.get_by_role("status")).to_be_visible()
        assert of_site.html == SCRIPT
        tab.errors.clear()
